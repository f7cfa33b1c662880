"""A process killed in the middle of a write leaves a hidden file or folder; whoever writes the same next removes it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from twothirds.reports.run.files import RunError, replace_file, replaced_folder

ROOT = Path(__file__).parents[4]
WRITER = """
import sys, time
from pathlib import Path
from twothirds.reports.run.files import replace_file

def write(file):
    file.write("half of ")
    file.flush()
    print("writing", flush=True)
    sys.stdin.readline()
    file.write("it")

replace_file(Path(sys.argv[1]), write)
"""


BUILDER = """
import sys
from pathlib import Path
from twothirds.reports.run.files import replaced_folder

with replaced_folder(Path(sys.argv[1])) as building:
    (building / "README.md").write_text('tags:\\n- twothirds\\n')
    print("writing", flush=True)
    sys.stdin.readline()
"""


@contextmanager
def writing(path: Path, program: str = WRITER) -> Iterator[subprocess.Popen[str]]:
    """A process in the middle of writing the path; a line lets it go on."""
    command = [sys.executable, "-c", program, str(path)]
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
        living.communicate("go on\n", timeout=500)
    assert (living.returncode, path.read_text(), hidden(tmp_path)) == (0, "half of it", others)


def test_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError):
        replace_file(path, lambda _: 1 // 0)
    assert [one.name for one in tmp_path.iterdir()] == ["labels.csv"]
    assert path.read_text() == "old"


def export_to(folder: Path) -> None:
    with replaced_folder(folder) as building:
        (building / "images").mkdir()
        (building / "images" / "000001.png").write_bytes(b"mine")
        (building / "README.md").write_text("---\ntags:\n- twothirds\n---")


def test_a_folder_that_a_killed_export_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "imagefolder"
    others = {".imagefolder.abcd1234", ".imagefolder-parquet.abcd1234.twothirds", ".hidden"}
    for name in others:
        (tmp_path / name).mkdir()
    with writing(folder, BUILDER) as killed:
        [left] = hidden(tmp_path) - others
    assert killed.returncode < 0
    assert (hidden(tmp_path), folder.exists()) == (others | {left}, False)
    with writing(folder, BUILDER) as living:
        [written] = hidden(tmp_path) - others
        export_to(folder)
        assert hidden(tmp_path) == others | {written}, "the one of the living process is left alone"
        living.communicate("go on\n", timeout=500)
    assert (living.returncode, [path.name for path in folder.iterdir()]) == (0, ["README.md"])
    assert hidden(tmp_path) == others


def test_an_export_replaces_what_it_wrote_itself(tmp_path: Path) -> None:
    for _ in range(2):
        export_to(tmp_path / "imagefolder")
    (tmp_path / "huggingface").mkdir()
    export_to(tmp_path / "huggingface")
    assert {path.name for path in tmp_path.iterdir()} == {"huggingface", "imagefolder"}


@pytest.mark.parametrize("name", ["notes.txt", "images/own.png", "images/deep/000001.png", "metadata.jsonl", ".hidden"])
def test_a_folder_that_holds_a_file_of_others_is_refused_and_left_as_it_is(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "imagefolder"
    export_to(folder)
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("dear to somebody")
    with pytest.raises(RunError, match=r"is in the way, and it was not written by export: move it away, or give") as no:
        export_to(folder)
    assert name in str(no.value)
    assert (folder / name).read_text() == "dear to somebody"
    assert hidden(tmp_path) == set()


def test_a_folder_of_the_same_shape_without_our_card_a_file_and_links_are_refused(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    (theirs / "images").mkdir(parents=True)
    (theirs / "images" / "000001.png").write_bytes(b"theirs")
    (theirs / "README.md").write_text("my own pictures")
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(theirs)
    export_to(tmp_path / "mine")
    (tmp_path / "mine" / "data").symlink_to(theirs)
    for name in ("theirs", "file", "link", "mine"):
        with pytest.raises(RunError, match=f"{tmp_path / name}.* is in the way"):
            export_to(tmp_path / name)
    assert (theirs / "images" / "000001.png").read_bytes() == b"theirs"
