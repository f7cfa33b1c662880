"""`replicate` as a person meets it, and the page it leaves."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from flows.__main__ import main
from flows.compare.replicate import ReplicateSettings, run_replication
from reports.replicate.claim import TRIAL
from reports.replicate.page import TOPICS

ROOT = Path(__file__).parents[3]


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of the page, without the one line that says when it was written."""
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    files["README.md"] = re.sub(rb"(?m)^Written on .*$", b"", files["README.md"])
    return files


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page written in this process from the smallest simulations that there are."""
    out = tmp_path_factory.mktemp("page")
    summary = run_replication(ReplicateSettings(quick=True, out=str(out), processes=1), TRIAL)
    assert len(summary) == len(TOPICS)
    return out


@pytest.mark.slow
def test_the_page_does_not_depend_on_the_number_of_processes(folder: Path, tmp_path: Path) -> None:
    run_replication(ReplicateSettings(quick=True, out=str(tmp_path), processes=2), TRIAL)
    assert contents(tmp_path) == contents(folder)


def test_every_picture_of_the_page_is_there_and_no_other(folder: Path) -> None:
    page = (folder / "README.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"!\[[^]]*\]\(([^)]+)\)", page))
    assert {"figure-3.svg", "figure-4.svg"} <= shown == {path.name for path in folder.glob("*.svg")}
    assert (folder / "figure-3.svg").read_text(encoding="utf-8").count("<image ") == 15
    headings = {line[3:].lower().replace(".", "").replace(" ", "-") for line in page.splitlines() if line[:3] == "## "}
    assert set(re.findall(r"\]\(#([^)]+)\)", page)) <= headings


@pytest.mark.parametrize(
    ("arguments", "said"), [(["--seed", "-1"], "--seed '-1'"), (["--processes", "0"], "--processes '0'")]
)
def test_bad_settings_are_refused_in_one_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replicate", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_simulated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert main(["replicate", "--quick", "--out", str(tmp_path / "file" / "page")]) == 2
    assert "give another folder with --out" in capsys.readouterr().err


@pytest.mark.slow
def test_the_quick_command_writes_the_page_as_a_flow(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "flows", "replicate", "--quick", "--out", str(tmp_path)],
        cwd=ROOT,
        env=os.environ | {"NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("runs)") == len(TOPICS)
    assert "Traceback" not in done.stderr
    assert (tmp_path / "README.md").exists()
