"""What counts as a discovery, how far the examples are told apart, and how features compare with the truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import balanced_accuracy_score

from twothirds.discovery.metrics import (
    LabelMatrix,
    distinct,
    g,
    g_curve,
    interesting,
    interesting_and_distinct,
    matches_with_truth,
    mean_match_by_chance,
    none_bound,
    queries_to_reach,
)
from twothirds.discovery.questions import UNKNOWN, Labels

matrices = st.tuples(st.integers(0, 5), st.integers(1, 14)).flatmap(
    lambda shape: arrays(np.int8, shape, elements=st.sampled_from([UNKNOWN, 0, 1]))
)


def first(ones: int, n: int) -> Labels:
    return (np.arange(n) < ones).astype(np.int8)


@pytest.mark.parametrize(
    ("ones", "expected"), [(0, False), (2, False), (3, True), (27, True), (28, False), (30, False)]
)
def test_a_feature_is_interesting_from_a_tenth_to_nine_tenths(ones: int, expected: bool) -> None:
    assert interesting(first(ones, 30)) is expected


def test_missing_labels_make_no_feature_interesting() -> None:
    labels = np.full(100, UNKNOWN, np.int8)
    labels[:9] = 1
    labels[50:80] = 0
    assert not interesting(labels)
    labels[9] = 1
    assert interesting(labels)


def test_a_complement_is_distinct_and_a_near_copy_is_not() -> None:
    kept = first(50, 100)
    assert distinct((1 - kept).astype(np.int8), [kept])
    assert not distinct(first(59, 100), [kept])
    assert distinct(first(60, 100), [kept])


def test_a_feature_is_compared_with_the_kept_ones_only() -> None:
    chain = np.stack([first(50, 100), first(55, 100), first(60, 100), first(2, 100), first(10, 100)])
    assert interesting_and_distinct(chain) == [True, False, True, False, True]
    doubted = interesting_and_distinct(chain, doubtful=[True, False, False, False, False])
    assert doubted == [False, True, False, False, True], "nor does a doubtful feature keep another from counting"


def naive_g(matrix: LabelMatrix) -> float:
    n = matrix.shape[1]
    apart = np.zeros((n, n), np.bool_)
    for labels in matrix:
        apart |= (labels[:, None] == 1) & (labels[None, :] == 0) | (labels[:, None] == 0) & (labels[None, :] == 1)
    return float((~apart).mean())


@given(matrices)
def test_g_is_the_share_of_ordered_pairs_that_no_known_labels_tell_apart(matrix: LabelMatrix) -> None:
    assert g(matrix, matrix.shape[1]) == pytest.approx(naive_g(matrix))


@given(matrices.map(lambda matrix: np.abs(matrix)))
def test_with_complete_labels_g_is_the_sum_of_squared_class_shares(matrix: LabelMatrix) -> None:
    n = matrix.shape[1]
    _, sizes = np.unique(matrix.T, axis=0, return_counts=True) if len(matrix) else (None, np.array([n]))
    assert g(matrix, n) == pytest.approx(float((sizes**2).sum()) / n**2)


def test_the_curve_has_one_value_per_query_and_stands_still_at_a_none() -> None:
    curve = g_curve([[], [first(50, 100)], [], [np.arange(100, dtype=np.int8) % 2]], 100)
    assert curve == [1.0, 0.5, 0.5, 0.25]
    assert queries_to_reach(curve, 0.5) == 2
    assert queries_to_reach(curve, 0.05) is None


@settings(max_examples=40, deadline=None)  # scikit-learn is slow, the first time above all
@given(matrices)
def test_matches_agree_with_scikit_learn(matrix: LabelMatrix) -> None:
    n = matrix.shape[1]
    truth = np.random.default_rng(n).integers(0, 2, size=(3, n)).astype(np.int8)
    match = matches_with_truth(matrix, truth)
    for labels, best, score, complement in zip(
        matrix, match.best, match.balanced_accuracy, match.complement, strict=True
    ):
        scores = [s for s in (sklearn_score(labels, column) for column in truth) if s is not None]
        assert score == pytest.approx(max((max(s, 1 - s) for s in scores), default=0.5))
        if best >= 0:
            exact = sklearn_score(labels, truth[best])
            assert exact is not None
            assert (1 - exact if complement else exact) == pytest.approx(score)
        else:
            assert not scores


def sklearn_score(labels: Labels, column: Labels) -> float | None:
    both = (labels != UNKNOWN) & (column != UNKNOWN)
    if len(np.unique(column[both])) < 2:
        return None
    return float(balanced_accuracy_score(column[both], labels[both]))


def test_two_features_that_match_one_truth_column_count_once() -> None:
    truth = np.stack([first(50, 100), np.arange(100) % 2, first(10, 100)]).astype(np.int8)
    found = np.stack([truth[0], 1 - truth[0], truth[1], first(80, 100)]).astype(np.int8)
    match = matches_with_truth(found, truth)
    assert match.matched == 2
    assert match.best[:3].tolist() == [0, 0, 1]
    assert match.complement[:3].tolist() == [False, True, False]
    assert match.mean_balanced_accuracy == pytest.approx(match.balanced_accuracy.mean())


def test_no_features_match_nothing() -> None:
    match = matches_with_truth([], first(5, 10)[None, :])
    assert match.matched == 0
    assert np.isnan(match.mean_balanced_accuracy)


def test_thirty_nones_in_a_row_bound_the_rest_by_about_a_tenth() -> None:
    assert none_bound(30) == pytest.approx(0.0999, abs=1e-3)
    assert none_bound(0) == none_bound(1) == 1.0
    # what the bound says: a larger share would have shown a feature with more than 95 % probability
    assert (1 - none_bound(30)) ** 30 < 0.05


def test_labels_that_know_nothing_match_the_best_of_many_columns_as_shuffled_ones_do() -> None:
    rng = np.random.default_rng(0)
    truth = (rng.random((28, 40)) < 0.3).astype(np.int8)
    guessed = (rng.random((12, 40)) < 0.5).astype(np.int8)
    by_chance = mean_match_by_chance(guessed, truth, seed=0)
    assert by_chance > 0.6, "best of 28"
    assert matches_with_truth(guessed, truth).mean_balanced_accuracy == pytest.approx(by_chance, abs=0.04)
    assert mean_match_by_chance(truth[:12], truth, seed=0) < 0.8
    assert matches_with_truth(truth[:12], truth).mean_balanced_accuracy == 1.0
    assert mean_match_by_chance(guessed, truth, seed=0) == by_chance


def test_where_nothing_can_be_compared_chance_is_one_half() -> None:
    assert mean_match_by_chance(np.zeros((1, 6), np.int8), np.ones((2, 6), np.int8), seed=0) == 0.5
