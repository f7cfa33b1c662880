"""Every command of docs/enrich.md is run, and every option of enrich and rediscover is on a page."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from tests.e2e.flows.runs.test_docs import ROOT, blocks_of, run_block
from tests.support.command_line import options_of


@pytest.mark.slow
def test_the_commands_of_the_page_work(
    prefect_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert prefect_url
    monkeypatch.chdir(tmp_path)
    (tmp_path / "datasets").symlink_to(ROOT / "datasets")
    for kind, text in blocks_of("enrich.md"):
        run_block(kind, text)
    printed = capsys.readouterr().out
    assert "100 added, 0 unchanged; 100 rows" in printed
    assert "proposals.csv" in printed
    table = pd.read_parquet(tmp_path / "enriched" / "two" / "labels.parquet")
    assert list(table.columns) == ["id", "digest", "version", "glasses", "smile"]


def test_every_option_is_on_a_page() -> None:
    pages = "".join(
        (ROOT / "docs" / name).read_text(encoding="utf-8")
        for name in ("enrich.md", "predicted.md", "scaling.md", "discover.md")
    )
    for command in ("enrich", "rediscover"):
        for option in {*options_of(command), "--json"}:
            assert option in pages, f"{command} {option} is on no page"
