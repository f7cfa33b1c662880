"""A process killed in the middle of a write leaves a hidden file; whoever writes the same file next removes it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from reports.run import replace_file

ROOT = Path(__file__).parents[2]
WRITER = """
import sys, time
from pathlib import Path
from reports.run import replace_file

def write(file):
    file.write("half of ")
    file.flush()
    print("writing", flush=True)
    sys.stdin.readline()
    file.write("it")

replace_file(Path(sys.argv[1]), write)
"""


@contextmanager
def writing(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process in the middle of writing the path; a line lets it go on."""
    command = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "writing\n"
            yield process
        finally:
            process.kill()


def hidden(folder: Path) -> set[str]:
    return {path.name for path in folder.glob(".*")}


def test_what_a_killed_process_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    others = {".labels.csv.abcd1234", ".labels.csv.bak", ".hidden", ".features.csv.abcd1234.twothirds"}
    for name in others:
        (tmp_path / name).write_text("somebody's")
    with writing(path) as killed:
        [left] = hidden(tmp_path) - others
    assert killed.returncode < 0
    assert (hidden(tmp_path), path.exists()) == (others | {left}, False)
    with writing(path) as living:
        [written] = hidden(tmp_path) - others
        assert written != left, "the one of the killed process is gone"
        replace_file(path, lambda file: file.write("mine"))
        assert hidden(tmp_path) == others | {written}, "the one of the living process is left alone"
        assert path.read_text() == "mine"
        living.communicate("go on\n", timeout=60)
    assert (living.returncode, path.read_text(), hidden(tmp_path)) == (0, "half of it", others)


def test_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError):
        replace_file(path, lambda _: 1 // 0)
    assert [one.name for one in tmp_path.iterdir()] == ["labels.csv"]
    assert path.read_text() == "old"
