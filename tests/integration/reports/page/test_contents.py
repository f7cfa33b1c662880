"""What the page holds for runs that are out of the ordinary."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.support.run_folders import make_run, random_matrix, unanswered
from twothirds.reports.export.formats import export_run
from twothirds.reports.finished_run import Run
from twothirds.reports.run.summary import SkippedExample
from twothirds.sources.load import load_dataset

IDS = [f"t{number}" for number in range(30)]


@pytest.fixture
def texts(tmp_path: Path) -> str:
    path = tmp_path / "texts.csv"
    pd.DataFrame({"id": IDS, "text": [f"text number {number}" for number in range(30)]}).to_csv(path, index=False)
    return str(path)


def written(run: Run, **options: str) -> str:
    return run.report(**options).path.read_text(encoding="utf-8")


def test_a_run_that_found_nothing_still_has_a_report_and_exports(tmp_path: Path, texts: str) -> None:
    further = [unanswered(IDS, "none"), unanswered(IDS, "unreadable", "no name", "gibberish")]
    run = make_run(tmp_path / "run", texts, IDS, [], np.empty((0, 30), np.int8), further=further)
    page = written(run)
    assert "No feature was found" in page
    assert "gibberish" in page
    export_run(run, ["all"], load_dataset(texts))
    assert pd.read_parquet(run.folder / "export" / "wide.parquet")["id"].tolist() == IDS


def test_a_run_stopped_before_the_first_question_has_a_report(tmp_path: Path, texts: str) -> None:
    run = make_run(tmp_path / "run", texts, IDS, [], np.empty((0, 30), np.int8), stopped_because="budget")
    assert "budget used up" in written(run)


def test_money_is_drawn_only_where_answers_cost_something(tmp_path: Path, texts: str) -> None:
    free = written(make_run(tmp_path / "free", texts, IDS, ["a", "b"], random_matrix(2, 30)))
    paid = written(make_run(tmp_path / "paid", texts, IDS, ["a", "b"], random_matrix(2, 30), price=1000))
    assert "US dollars" not in free
    assert re.search(r"\d+ questions? asked</dd>", free)
    assert "questions paid" not in free, "labels that cost nothing are not paid"
    assert "Features against US dollars" in paid
    assert "g against US dollars" in paid


def test_the_cost_is_what_the_answers_cost_also_when_a_repetition_paid_nothing(tmp_path: Path, texts: str) -> None:
    labels = random_matrix(1, 30, unknown=0)
    run = make_run(tmp_path / "run", texts, IDS, ["a"], labels, price=10_000, divided=0, total_usd=0.61)
    page = written(run)
    assert "$0.61" in page  # one comparison and two votes on each of 30 examples
    assert "$0.00 by the last call" in page


def test_a_feature_that_its_question_contradicts_is_doubtful_and_one_of_doubtful_labels_divided(
    tmp_path: Path, texts: str
) -> None:
    run = make_run(tmp_path / "run", texts, IDS, ["sure", "divided"], random_matrix(2, 30, unknown=0), divided=0.0)
    assert [found.is_doubtful for found in run.findings.found] == [False, False]
    divided = make_run(tmp_path / "other", texts, IDS, ["divided"], random_matrix(1, 30), divided=0.5)
    assert divided.findings.found[0].is_divided
    assert not divided.findings.found[0].is_doubtful
    assert '<dd>2</dd><dd class="small">interesting and distinct, of 2 found</dd>' in written(run)
    assert run.findings.counting == 2
    table = pd.read_csv(run.folder / "features.csv")
    table["consistent"] = [True, False]
    table.to_csv(run.folder / "features.csv", index=False)
    assert [found.is_doubtful for found in Run(run.folder).findings.found] == [False, True]
    page = written(Run(run.folder))
    assert "its own question contradicts it" in page
    assert '<dd>1</dd><dd class="small">interesting and distinct, of 2 found</dd>' in page
    assert (
        "1 doubtful feature, contradicted by the labels of the examples asked about: divided; not counted, and left "
        "out of exports" in page
    )


def test_rows_left_out_of_the_data_set_are_reported_with_their_reason(tmp_path: Path, texts: str) -> None:
    run = make_run(tmp_path / "run", texts, IDS, ["a"], random_matrix(1, 30))
    run.summary.dataset.left_out.append(SkippedExample(id="broken.png", reason="damaged image (truncated)"))
    page = written(run)
    assert "broken.png" in page
    assert "damaged image (truncated)" in page


def test_features_stand_in_a_tree(tmp_path: Path, texts: str) -> None:
    matrix = np.zeros((3, 30), np.int8)
    matrix[0, :20], matrix[1, :8], matrix[2, 20:] = 1, 1, 1
    page = written(make_run(tmp_path / "run", texts, IDS, ["animal", "dog", "plant"], matrix))
    tree = page[page.index('<ul class="tree">') : page.index("Below and above no other")]
    assert re.search(r"animal.*<ul>.*dog", tree, re.DOTALL)
    assert "plant" not in tree


def test_a_feature_that_repeats_or_inverts_another_says_so(tmp_path: Path, texts: str) -> None:
    matrix = random_matrix(2, 30, unknown=0)
    matrix = np.stack([matrix[0], 1 - matrix[0], matrix[1], matrix[1]])
    page = written(make_run(tmp_path / "run", texts, IDS, ["round", "square", "red", "crimson"], matrix))
    assert "the opposite of “round”" in page
    assert "the same as “red”" in page
    assert page.count("the same as") == 1


def test_the_page_names_no_other_address_than_those_it_was_given(tmp_path: Path, texts: str) -> None:
    page = written(make_run(tmp_path / "run", texts, IDS, ["a", "b"], random_matrix(2, 30)))
    assert not re.findall(r"https?://", page)
    assert "default-src 'none'" in page.replace("&#39;", "'")
