"""The page of evidence: results are the lines that an experiment printed, and what was not run says so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.evidence import __main__ as page
from benchmarks.evidence.__main__ import CLAIMS
from benchmarks.evidence.claims import Claim

TABLE = Claim(
    "It adds", "It adds up.", "Adding.", "numbers", ("adding", "DATA/sums.csv"), (r"\| [^-].*",), "it does not"
)
PLAIN = Claim("It runs", "It runs.", "Running.", "none", ("running",), (r".*passed.*",), "it stops")


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(page, "PAGE", tmp_path / "evidence.md")
    monkeypatch.setattr(page, "CLAIMS", (TABLE, PLAIN))
    outputs = {
        "adding": "heading\n\n| sum | share |\n| --- | --- |\n| 3 | 40 % (30 to 50) |\n",
        "running": "4 passed in 1 s\n",
    }
    monkeypatch.setattr(page, "printed", lambda command, _: outputs[command[0]])
    return tmp_path / "evidence.md"


def test_a_table_keeps_its_head_and_other_lines_are_a_list() -> None:
    lines = page.result_of(TABLE, "x\n| a | b |\n| --- | --- |\n| 1 | 2 |\n").splitlines()
    assert (lines[0], lines[1], lines[-1]) == ("| a | b |", "| --- | --- |", "| 1 | 2 |")
    assert page.result_of(PLAIN, "noise\n4 passed in 1 s\n") == "- 4 passed in 1 s"
    assert "no result" in page.result_of(PLAIN, "noise")


def test_what_has_no_data_is_listed_as_not_run_and_keeps_its_last_result(written: Path, tmp_path: Path) -> None:
    page.main([])
    text = written.read_text(encoding="utf-8")
    assert "*Not run this time: sums.csv not given.*" in text
    assert "- 4 passed in 1 s" in text
    (tmp_path / "sums.csv").write_text("", encoding="utf-8")
    page.main(["--data", str(tmp_path)])
    assert "Not run" not in written.read_text(encoding="utf-8")
    for _ in range(2):
        page.main([])
    text = written.read_text(encoding="utf-8")
    assert text.count("*Not run this time") == 1
    assert "| 3 | 40 % (30 to 50) |" in text
    assert len(page.sections_of(text)) == 2


def test_only_the_claims_that_are_named_are_run(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page.main(["runs"])
    before = written.read_text(encoding="utf-8")
    monkeypatch.setattr(page, "printed", lambda *_: pytest.fail("it was run"))
    page.main(["nothing of that name"])
    assert written.read_text(encoding="utf-8") == before


def test_every_claim_says_how_it_is_tested_and_what_would_refute_it() -> None:
    assert len({claim.title for claim in CLAIMS}) == len(CLAIMS)
    for claim in CLAIMS:
        assert all((claim.claim, claim.experiment, claim.data, claim.refuted))
        assert all(re.compile(pattern) for pattern in claim.results)
        assert not [part for part in claim.command if part.startswith("/")]  # no path of somebody's machine


def test_the_page_in_the_docs_is_that_of_the_claims() -> None:
    sections = page.sections_of((Path(page.ROOT) / "docs" / "evidence.md").read_text(encoding="utf-8"))
    assert list(sections) == [claim.title for claim in CLAIMS]
