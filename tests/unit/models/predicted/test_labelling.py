"""Asked and predicted labels of a pool: the promise over many orders, ties, whole examples, and cheaper models."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from discovery import UNKNOWN
from discovery.statistics import Promise
from models.predicted import LabelPool, PredictedLabels, asked_in_full, groups_of, label_pool
from models.predicted.pool import Table
from sources import Example

PROMISE = Promise(0.9)


class Oracle:
    def __init__(self, truth: Table) -> None:
        self.truth, self.asked = truth, np.zeros(truth.shape, np.bool_)

    def __call__(self, cells: NDArray[np.bool_]) -> Table:
        assert not (self.asked & cells).any()  # nothing is asked twice
        self.asked |= cells
        return np.where(cells, self.truth, np.int8(UNKNOWN)).astype(np.int8)


def world(seed: int, size: int, noise: float, shares: tuple[float, ...]) -> tuple[NDArray[np.float32], Table]:
    """Vectors of which each feature is a direction, and labels that are wrong by chance."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((size, 12))
    cuts = [np.quantile(vectors[:, feature], 1 - share) for feature, share in enumerate(shares)]
    labels = np.stack([vectors[:, feature] > cut for feature, cut in enumerate(cuts)], axis=1)
    labels ^= rng.random(labels.shape) < noise
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit.astype(np.float32), labels.astype(np.int8)


def broken(result: PredictedLabels, truth: Table, promise: Promise) -> list[bool]:
    """Of each feature that has predicted labels, whether they agree less than promised."""
    right = result.labels == truth
    features = np.flatnonzero(result.predicted.any(axis=0))
    return [bool(right[result.predicted[:, one], one].mean() < promise.agree) for one in features.tolist()]


@pytest.mark.parametrize("whole_rows", [False, True])
def test_predictions_agree_as_promised_and_the_rest_is_the_oracles(whole_rows: bool) -> None:
    vectors, truth = world(0, 1_500, 0.01, (0.5, 0.3))
    outcomes: list[bool] = []
    for seed in range(6):
        oracle = Oracle(truth)
        pool = LabelPool(vectors, np.random.default_rng(seed).permutation(1_500), 2, whole_rows)
        result = label_pool(pool, oracle, PROMISE)
        assert np.array_equal(result.predicted, ~oracle.asked)
        assert (result.labels == truth)[oracle.asked].all()
        if whole_rows:
            assert (oracle.asked.all(axis=1) == oracle.asked.any(axis=1)).all()
        outcomes += broken(result, truth, PROMISE)
    assert outcomes
    assert sum(outcomes) <= 2


def test_ties_in_the_ranking_do_not_tell_who_will_be_sampled() -> None:
    """A cheaper model that only says yes or no makes two values; right as often as promised it is at the border."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, (1_500, 1)).astype(np.int8)
    said = np.where(rng.random(truth.shape) < 0.11, 1 - truth, truth)
    first = np.where(said == 1, 2.0, -2.0)
    outcomes: list[bool] = []
    for seed in range(16):
        pool = LabelPool(
            np.empty((1_500, 0), np.float32), np.random.default_rng(seed).permutation(1_500), 1, False, first
        )
        outcomes += broken(label_pool(pool, Oracle(truth), PROMISE), truth, PROMISE)
    assert sum(outcomes) <= 4  # about 1 expected at most


def test_what_cannot_be_learned_is_asked_in_full() -> None:
    rng = np.random.default_rng(0)
    vectors, truth = world(1, 900, 0.0, (0.5, 0.5))
    truth[:, 1] = rng.integers(0, 2, 900)
    oracle = Oracle(truth)
    result = label_pool(LabelPool(vectors, rng.permutation(900), 2, whole_rows=False), oracle, PROMISE)
    assert result.certificates[1] is None
    assert oracle.asked[:, 1].all()
    assert result.predicted[:, 0].any()
    everything = Oracle(truth)
    label_pool(LabelPool(vectors, rng.permutation(900), 2, whole_rows=True), everything, PROMISE)
    assert everything.asked.all()


def test_an_oracle_that_does_not_answer_disagrees() -> None:
    vectors, truth = world(0, 900, 0.0, (0.5,))
    truth[np.random.default_rng(0).random(900) < 0.3] = UNKNOWN
    result = label_pool(
        LabelPool(vectors, np.random.default_rng(1).permutation(900), 1, whole_rows=False), Oracle(truth), PROMISE
    )
    assert result.certificates == [None]


def test_classifiers_that_are_kept_ask_for_an_audit_only_and_are_learned_anew_when_it_fails() -> None:
    vectors, truth = world(0, 1_500, 0.0, (0.5, 0.3))
    order = np.random.default_rng(0).permutation(1_500)
    first = Oracle(truth)
    kept = label_pool(LabelPool(vectors, order, 2, whole_rows=True), first, PROMISE).kept
    again = Oracle(truth)
    result = label_pool(LabelPool(vectors, order, 2, whole_rows=True), again, PROMISE, kept)
    assert not result.learned_anew
    assert again.asked.sum() < first.asked.sum()
    other = label_pool(LabelPool(vectors[:, ::-1].copy(), order, 2, whole_rows=True), Oracle(truth), PROMISE, kept)
    assert other.learned_anew
    assert other.predicted.any()


def test_a_feature_that_was_never_certified_does_not_end_what_is_kept() -> None:
    vectors, truth = world(0, 1_500, 0.0, (0.5, 0.3))
    truth[:, 1] = np.random.default_rng(0).integers(0, 2, 1_500)
    pool = LabelPool(vectors, np.random.default_rng(1).permutation(1_500), 2, whole_rows=False)
    kept = label_pool(pool, Oracle(truth), PROMISE).kept
    assert kept is not None
    assert kept.certified.tolist() == [True, False]
    again = label_pool(pool, Oracle(truth), PROMISE, kept)
    assert not again.learned_anew
    assert again.asked[:, 1].all()
    # Two samples may certify, so that each has half the level.
    assert again.certificates[0] is not None
    assert again.certificates[0].confidence == pytest.approx(1 - PROMISE.delta / 2)


@pytest.mark.parametrize("whole_rows", [False, True])
def test_what_cannot_be_certified_is_left_where_the_caller_says_so(whole_rows: bool) -> None:
    vectors, truth = world(1, 1_500, 0.0, (0.5, 0.3, 0.5))
    truth[:, 2] = np.random.default_rng(0).integers(0, 2, 1_500)
    pool = LabelPool(vectors, np.random.default_rng(1).permutation(1_500), 3, whole_rows)
    oracle = Oracle(truth)
    result = label_pool(pool, oracle, PROMISE, leave=True)
    assert [one is not None for one in result.certificates] == [True, True, False]
    assert np.array_equal(result.asked, oracle.asked)
    assert not result.left[:, :2].any()
    assert result.left[:, 2].mean() > 0.5
    assert (result.labels[result.left] == UNKNOWN).all()
    assert (result.labels == truth)[oracle.asked].all()
    if whole_rows:
        assert (oracle.asked.all(axis=1) == oracle.asked.any(axis=1)).all()
    assert not any(broken(result, truth, PROMISE))


def test_where_nothing_can_be_certified_and_it_may_be_left_only_the_samples_are_asked() -> None:
    vectors, _ = world(1, 1_500, 0.0, (0.5,))
    truth = np.random.default_rng(0).integers(0, 2, (1_500, 2)).astype(np.int8)
    pool = LabelPool(vectors, np.random.default_rng(1).permutation(1_500), 2, whole_rows=True)
    result = label_pool(pool, Oracle(truth), PROMISE, leave=True)
    assert not result.predicted.any()
    assert result.asked.all(axis=1).sum() == asked_in_full(1_500, PROMISE)
    assert result.kept is None


@pytest.mark.parametrize(("size", "known"), [(1_500, 0), (1_500, 120), (1_500, 300), (9_000, 0)])
def test_how_many_are_asked_in_full_is_known_beforehand(size: int, known: int) -> None:
    vectors, truth = world(0, size, 0.0, (0.5, 0.3))
    pool = LabelPool(vectors, np.random.default_rng(0).permutation(size), 2, whole_rows=True)
    result = label_pool(pool, Oracle(truth), PROMISE, known=truth[:known])
    assert result.certificates[0] is not None
    learned = size - known - result.certificates[0].population
    assert learned + PROMISE.sample_size(size) == asked_in_full(size, PROMISE, known=known)
    again = label_pool(pool, Oracle(truth), PROMISE, kept=result.kept)
    assert again.certificates[0] is not None
    assert size - again.certificates[0].population == 0
    assert asked_in_full(size, PROMISE, kept=True) == PROMISE.sample_size(size)


@pytest.mark.parametrize("text", ["short", "long " * 200])
def test_cells_are_put_together_each_once_and_short_texts_by_what_most_of_them_want(text: str) -> None:
    rng = np.random.default_rng(0)
    cells = rng.random((200, 6)) < [0.1, 0.05, 1.0, 1.0, 0.0, 0.02]
    examples = [Example(str(number), "", text) for number in range(200)]
    groups = list(groups_of(cells, 1_000, examples))
    covered = np.zeros(cells.shape, int)
    for rows, columns in groups:
        covered[np.ix_(rows, columns)] += 1
    assert np.array_equal(covered, cells)
    sizes = sorted(len(rows) for rows, _ in groups)
    if text == "short":
        assert len(groups) == 4
        assert sizes[-1] == 200
    else:
        assert len(groups) > 4


@pytest.mark.parametrize("known", [0, 50])
def test_a_pool_that_is_too_small_is_known_beforehand_to_be_asked_in_full(known: int) -> None:
    vectors, truth = world(0, 400, 0.0, (0.5, 0.3))
    oracle = Oracle(truth)
    label_pool(LabelPool(vectors, np.arange(400), 2, whole_rows=True), oracle, PROMISE, known=truth[:known])
    assert oracle.asked.all(axis=1).sum() == asked_in_full(400, PROMISE, known=known) == 400 - known
