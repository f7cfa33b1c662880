"""What the pages say in words: differences by name, verdicts first, simulated crowds as such, numbers unbroken."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.support.comparisons import compared, feature_list, make_world, prepared
from tests.support.run_folders import make_run
from twothirds.reports.compare.exports import write_comparison

IDS = [f"t{number}" for number in range(8)]
BROKEN = re.compile(r"\d %")


def visible(page: str) -> str:
    """The page's text without scripts, styles and tags."""
    return re.sub(r"<[^>]*>", " ", re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL))


def test_minimal_pairs_name_in_what_else_they_differ(tmp_path: Path) -> None:
    texts = tmp_path / "texts.csv"
    pd.DataFrame({"id": IDS, "text": [f"text {number}" for number in range(8)]}).to_csv(texts, index=False)
    alike, apart = [0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0, 0, 1]
    for number, (names, rows, said) in enumerate(
        [
            (["hat", "beard"], [alike, apart], "differ in no other known feature"),
            (["hat", "beard"], [alike, alike], "also differ in"),
        ]
    ):
        run = make_run(tmp_path / f"run{number}", str(texts), IDS, names, np.array(rows, np.int8))
        page = run.report().path.read_text(encoding="utf-8")
        assert said in visible(page)
        assert "nothing else differs" not in page
        assert "other difference" not in page
        assert BROKEN.search(visible(page)) is None
    pairs = re.findall(r'<div class="pair">.*?</div>\s*</div>', page, re.DOTALL) or [page]
    assert any("beard" in visible(pair) for pair in pairs), "by name, without a tooltip"


@pytest.fixture(scope="module")
def compare_page(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("compare")
    dataset, crowd = make_world(folder, n=30), "simulated?flip=0.2&seed=2"
    settings = {"features": feature_list(folder / "f.csv"), "people": crowd, "votes": "3"}
    found = compared(folder, dataset, "simulated?flip=0.01&seed=1", crowd, **settings)
    data = prepared(folder, dataset, "simulated?flip=0.01&seed=1", crowd, **settings)
    return write_comparison(found, folder / "out", data.dataset, {}).read_text(encoding="utf-8")


def test_a_comparison_starts_with_its_verdict(compare_page: str) -> None:
    head = compare_page.partition("<h1>")[2]
    assert (
        head.index('class="who"')
        < head.index("Right labels against what 1,000 votes cost")
        < head.index('class="verdict"')
    )


def test_a_simulated_crowd_is_called_one_with_its_parameters(compare_page: str) -> None:
    table = visible(compare_page.partition('<table class="who">')[2].partition("</table>")[0])
    methods = visible(compare_page.partition('id="methods-text"')[2].partition("</p>")[0])
    assert table.count("simulated crowd") == 2
    for text in (table, methods):
        assert "crowd salience" in text
        assert "flip 0.2" in text
        assert re.search(r"\w{40}", text) is None, "a digest tells nobody anything, and does not fit on a phone"
    assert methods.count("(simulated crowd: ") == 2
    assert "(a simulated crowd)" in visible(compare_page.partition('class="verdict"')[2].partition("</ul>")[0])
    assert "people, up to" not in methods


def test_no_percent_sign_is_torn_from_its_number(compare_page: str) -> None:
    assert BROKEN.findall(visible(compare_page)) == []
