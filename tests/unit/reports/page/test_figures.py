"""Minimal pairs, best matches, rates and drawings: the figures that the page shows."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import matthews_corrcoef, precision_score, recall_score

from tests.support.run_folders import HOSTILE, random_matrix
from twothirds.reports.page.browser_data import script_json
from twothirds.reports.page.correlations import ordered, related
from twothirds.reports.page.feature_cards import minimal_pairs
from twothirds.reports.page.history import RunHistory, outlook_of
from twothirds.reports.page.truth import against_truth
from twothirds.sources.dataset import Truth
from twothirds.studio.web.charts import Series, curve, element, nice_ticks
from twothirds.studio.web.numbers import duration, percent, usd


@pytest.mark.parametrize("seed", range(5))
def test_the_first_minimal_pair_differs_in_as_few_other_features_as_any(seed: int) -> None:
    matrix = random_matrix(6, 25, seed, unknown=0)
    for feature in range(6):
        pairs = minimal_pairs(matrix, feature, np.zeros(25, np.bool_))
        having, lacking = np.flatnonzero(matrix[feature] == 1), np.flatnonzero(matrix[feature] == 0)
        fewest = min(int((matrix[:, a] != matrix[:, b]).sum()) - 1 for a, b in product(having, lacking))
        assert len(pairs[0].differing) == fewest
        used = [row for pair in pairs for row in (pair.having, pair.lacking)]
        assert len(used) == len(set(used))
        for pair in pairs:
            assert (matrix[feature, pair.having], matrix[feature, pair.lacking]) == (1, 0)


def test_a_feature_that_all_have_has_no_minimal_pair() -> None:
    assert minimal_pairs(np.ones((2, 5), np.int8), 0, np.zeros(5, np.bool_)) == []


@pytest.mark.parametrize("seed", range(4))
def test_the_best_match_and_its_figures_are_those_of_scikit_learn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = random_matrix(5, 60, seed, unknown=0)
    matrix = np.stack([truth[1], 1 - truth[3], truth[2]]).astype(np.int8)
    matrix[rng.random(matrix.shape) < 0.1] ^= 1
    result = against_truth(["a", "b", "c"], matrix, Truth(tuple("vwxyz"), truth.T))
    assert [(match.attribute, match.complement) for match in result.matches if match] == [
        ("w", False),
        ("y", True),
        ("x", False),
    ]
    for labels, match in zip(matrix, result.matches, strict=True):
        assert match is not None
        column = truth["vwxyz".index(match.attribute)]
        wanted = 1 - column if match.complement else column
        assert match.precision == pytest.approx(precision_score(wanted, labels))
        assert match.recall == pytest.approx(recall_score(wanted, labels))
        best = max(abs(matthews_corrcoef(other, labels)) for other in truth)
        assert abs(matthews_corrcoef(column, labels)) == pytest.approx(best)
    assert 0.5 < result.by_chance < result.accuracy


def test_of_two_attributes_that_match_alike_the_one_with_the_name_is_taken() -> None:
    column = np.array([1, 0, 1, 0, 1], np.int8)
    truth = Truth(("milk", "mammal", "one"), np.stack([column, column, np.eye(5, dtype=np.int8)[0]], axis=1))
    result = against_truth(["Mammal"], column[None], truth)
    assert result.matches[0] is not None
    assert result.matches[0].attribute == "mammal"
    assert [(missing.attribute, missing.why) for missing in result.missed] == [
        ("milk", ""),
        ("one", "true of one example only: no two can share it"),
    ]


def test_unknown_labels_count_neither_for_nor_against_a_match() -> None:
    truth = Truth(("a",), np.array([[1], [1], [0], [0], [-1], [1]], np.int8))
    result = against_truth(["f"], np.array([[1, 1, 0, 0, 1, -1]], np.int8), truth)
    assert result.matches[0] is not None
    assert (result.matches[0].precision, result.matches[0].recall) == (1.0, 1.0)


def test_the_outlook_is_the_rate_of_the_last_questions() -> None:
    found = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 10, 11, 11, 12]
    history = RunHistory(found, found, [0.1] * 15, [0.5 * count for count in range(1, 16)])
    outlook = outlook_of(history, recent=5)
    assert outlook is not None
    assert (outlook["questions"], outlook["features"]) == (5, 2)
    assert outlook["questions_each"] == 2.5
    assert outlook["usd_each"] == pytest.approx(1.25)
    assert outlook_of(RunHistory([], [], [], [])) is None


def test_without_a_new_feature_no_price_of_the_next_is_made_up() -> None:
    outlook = outlook_of(RunHistory([1, 1, 1], [1, 1, 1], [0.5] * 3, [1.0, 2.0, 3.0]), recent=2)
    assert outlook is not None
    assert outlook["usd_each"] is None
    assert outlook["unusable"] == 0


def test_answers_that_could_not_be_used_are_counted_among_the_last_questions() -> None:
    outlook = outlook_of(RunHistory([1] * 4, [1] * 4, [0.5] * 4, [0.0] * 4, unusable=[0, 1, 2, 3]), recent=2)
    assert outlook is not None
    assert (outlook["questions"], outlook["unusable"]) == (2, 2)


@given(st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_json_in_a_script_element_can_end_nothing_and_is_read_back(value: object) -> None:
    written = str(script_json(value))
    assert not set("<>&") & set(written)
    assert written.isascii()
    assert json.loads(written) == value


@pytest.mark.parametrize("text", HOSTILE)
def test_drawings_escape_their_texts(text: str) -> None:
    drawn = str(element("text", text, title=text))
    assert "<script" not in drawn
    assert "<img" not in drawn
    assert drawn.count("<") == 2


@given(st.floats(1e-6, 1e6), st.booleans())
def test_ticks_are_few_and_reach_the_top(top: float, beyond: bool) -> None:
    ticks = nice_ticks(top, beyond=beyond)
    assert 2 <= len(ticks) <= 7
    assert ticks[0] == 0
    if beyond:
        assert ticks[-1] >= top * (1 - 1e-6)
    else:
        assert ticks[-1] <= top * (1 + 1e-6)


def test_a_curve_ends_at_its_last_value() -> None:
    drawn = str(curve("title", "questions", [Series("g", [1, 2], [0.5, 0.25])], start=1.0))
    assert drawn.count("<path") == 1
    assert "questions" in drawn


def test_correlations_are_symmetric_and_the_chain_holds_every_feature_once() -> None:
    table = related(random_matrix(7, 50))
    np.testing.assert_array_equal(table, table.T)
    assert sorted(ordered(table)) == list(range(7))


@pytest.mark.parametrize(
    ("amount", "words"), [(0, "$0.00"), (12.3456, "$12.35"), (0.0512, "$0.0512"), (0.000004, "$0.000004")]
)
def test_money_is_never_rounded_to_nothing(amount: float, words: str) -> None:
    assert usd(amount) == words


def test_shares_and_times_are_read_easily() -> None:
    assert [percent(share) for share in (None, 0, 0.004, 0.5, 0.996, 1)] == [
        "–",
        "0 %",
        "0.4 %",
        "50 %",
        "99.6 %",
        "100 %",
    ]
    assert [duration(time) for time in (None, 0.2, 59, 61, 3700)] == [
        "not recorded",
        "under a second",
        "59 s",
        "1 min 1 s",
        "1 h 1 min",
    ]
