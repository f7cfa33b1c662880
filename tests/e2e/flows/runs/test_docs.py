"""Every command of docs/report.md and docs/export.md is run, in the order in which a reader meets it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pandas as pd
import pytest

from flows.__main__ import main
from tests.support.command_line import options_of

ROOT = Path(__file__).parents[4]
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks_of(page: str) -> list[tuple[str, str]]:
    return BLOCK.findall((ROOT / "docs" / page).read_text(encoding="utf-8"))


def correct(table: Path) -> None:
    """What the page tells its reader to do in an editor: a row with a correction."""
    rows = pd.read_csv(table, dtype=object)
    rows.loc[len(rows), ["id", "feature"]] = ["face-007", "smile"]
    rows.loc[rows.index[-1], "corrected"] = "no"
    rows.to_csv(table, index=False)


def run_block(kind: str, text: str) -> None:
    if kind == "python":
        exec(compile(text, "docs", "exec"), {})
        return
    for line in text.splitlines():
        words = shlex.split(line)
        assert words[:3] == ["python", "-m", "flows"], line
        if words[5:6] == ["import"]:
            correct(Path(words[6]))
        assert main(words[3:]) == 0, line


@pytest.mark.slow
def test_the_commands_of_the_pages_work(
    prefect_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert prefect_url
    monkeypatch.chdir(tmp_path)
    (tmp_path / "datasets").symlink_to(ROOT / "datasets")
    for page in ("report.md", "export.md"):
        for kind, text in blocks_of(page):
            run_block(kind, text)
    printed = capsys.readouterr().out
    assert "discovered features" in printed
    assert "nothing was changed" in printed
    assert (tmp_path / "runs" / "faces" / "export" / "imagefolder" / "metadata.csv").exists()
    assert (tmp_path / "exported" / "huggingface" / "README.md").exists()


def test_every_option_of_the_commands_is_on_a_page() -> None:
    pages = "".join(
        (ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("report.md", "export.md", "discover.md")
    )
    for command in ("report", "export", "tree", "features"):
        for option in options_of(command):
            assert option in pages, f"{command} {option} is on no page"
