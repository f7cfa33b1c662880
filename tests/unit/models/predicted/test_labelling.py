"""Asked and predicted labels of a pool: the promise over many orders, whole examples, what is not predicted, nights."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from twothirds.discovery import UNKNOWN
from twothirds.discovery.statistics import Promise
from twothirds.models.predicted import LabelPool, Table, asked_in_full, groups_of, label_pool
from twothirds.models.predicted.classifier import fit

PROMISE = Promise(0.9)
SHARES = (0.5, 0.3, 0.4, 0.25)


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


def order_of(seed: int, size: int) -> np.ndarray:
    return np.random.default_rng(seed).permutation(size)


@pytest.mark.parametrize("whole_rows", [False, True])
def test_predictions_agree_together_as_promised_and_the_rest_is_the_oracles(whole_rows: bool) -> None:
    vectors, truth = world(0, 1_500, 0.03, SHARES)
    broken = predicted = 0
    for seed in range(10):
        oracle = Oracle(truth)
        result = label_pool(LabelPool(vectors, order_of(seed, 1_500), 4, whole_rows), oracle, PROMISE)
        assert np.array_equal(result.predicted, ~oracle.asked)
        assert (result.labels == truth)[oracle.asked].all()
        if whole_rows:
            assert (oracle.asked.all(axis=1) == oracle.asked.any(axis=1)).all()
        here = result.predicted
        predicted += bool(here.any())
        broken += bool(here.any() and (result.labels == truth)[here].mean() < PROMISE.agree)
    assert predicted >= 8
    assert broken <= 2


def test_a_feature_that_cannot_be_learned_is_asked_and_the_others_are_predicted() -> None:
    vectors, truth = world(1, 1_500, 0.0, SHARES)
    truth[:, 3] = np.random.default_rng(0).integers(0, 2, 1_500)
    oracle = Oracle(truth)
    result = label_pool(LabelPool(vectors, order_of(1, 1_500), 4, whole_rows=False), oracle, PROMISE)
    assert [one is not None for one in result.certificates] == [True, True, True, False]
    assert oracle.asked[:, 3].all()
    assert oracle.asked[:, 0].mean() < 0.5
    assert {one.together for one in result.certificates if one} == {3}
    everything = Oracle(truth)
    label_pool(LabelPool(vectors, order_of(1, 1_500), 4, whole_rows=True), everything, PROMISE)
    assert everything.asked.all()


@pytest.mark.parametrize("whole_rows", [False, True])
def test_what_cannot_be_learned_is_left_where_the_caller_says_so(whole_rows: bool) -> None:
    vectors, truth = world(1, 1_500, 0.0, SHARES)
    truth[:, 3] = np.random.default_rng(0).integers(0, 2, 1_500)
    oracle = Oracle(truth)
    result = label_pool(LabelPool(vectors, order_of(1, 1_500), 4, whole_rows), oracle, PROMISE, leave=True)
    assert np.array_equal(result.asked, oracle.asked)
    assert not result.left[:, :3].any()
    assert result.left[:, 3].mean() > 0.5
    assert (result.labels[result.left] == UNKNOWN).all()
    if whole_rows:
        assert (oracle.asked.all(axis=1) == oracle.asked.any(axis=1)).all()


def test_where_nothing_can_be_learned_everything_is_asked_or_only_what_was_learned_from() -> None:
    vectors, _ = world(1, 1_500, 0.0, (0.5,))
    truth = np.random.default_rng(0).integers(0, 2, (1_500, 3)).astype(np.int8)
    pool = LabelPool(vectors, order_of(1, 1_500), 3, whole_rows=True)
    assert label_pool(pool, Oracle(truth), PROMISE).asked.all()
    left = label_pool(pool, Oracle(truth), PROMISE, leave=True)
    assert left.asked.any(axis=1).sum() == 200
    assert not left.predicted.any()
    assert left.to_store is None


def test_an_oracle_that_does_not_answer_disagrees() -> None:
    vectors, truth = world(0, 1_500, 0.0, SHARES)
    truth[np.random.default_rng(0).random(truth.shape) < 0.3] = UNKNOWN
    result = label_pool(LabelPool(vectors, order_of(1, 1_500), 4, whole_rows=True), Oracle(truth), PROMISE)
    assert result.certificates == [None] * 4


def test_a_rare_feature_that_is_never_recognised_is_not_predicted() -> None:
    """Always no would agree on 97 %."""
    vectors, truth = world(0, 3_000, 0.0, (0.5, 0.3, 0.4))
    rare = (np.random.default_rng(0).random((3_000, 1)) < 0.03).astype(np.int8)
    pool = LabelPool(vectors, order_of(0, 3_000), 4, whole_rows=False)
    result = label_pool(pool, Oracle(np.concatenate([truth, rare], axis=1)), PROMISE)
    assert [one is not None for one in result.certificates] == [True, True, True, False]


def test_classifiers_that_are_kept_are_confirmed_by_a_sample_and_learned_anew_when_it_fails() -> None:
    vectors, truth = world(0, 1_500, 0.0, SHARES)
    pool, first = LabelPool(vectors, order_of(0, 1_500), 4, whole_rows=True), Oracle(truth)
    kept = label_pool(pool, first, PROMISE).to_store
    again = Oracle(truth)
    result = label_pool(pool, again, PROMISE, kept)
    assert not result.learned_anew
    assert again.asked.sum() < first.asked.sum()
    assert result.certificates[0] is not None
    assert result.certificates[0].confidence == pytest.approx(1 - PROMISE.delta / 2)
    turned = LabelPool(vectors[:, ::-1].copy(), order_of(0, 1_500), 4, whole_rows=True)
    other = label_pool(turned, Oracle(truth), PROMISE, kept)
    assert other.learned_anew
    assert other.predicted.any()


def test_with_the_same_answers_everything_is_the_same() -> None:
    vectors, truth = world(0, 1_500, 0.04, SHARES)
    pool = LabelPool(vectors, order_of(0, 1_500), 4, whole_rows=True)
    one, two = (label_pool(pool, Oracle(truth), PROMISE) for _ in range(2))
    assert one.certificates == two.certificates
    assert np.array_equal(one.chances, two.chances, equal_nan=True)
    assert np.array_equal(one.asked, two.asked)


def test_chances_of_examples_that_were_not_seen_are_those_of_fits_without_them() -> None:
    vectors, truth = world(0, 120, 0.1, (0.4,))
    _, unseen = fit(vectors, truth)
    right = ((unseen[:, 0] >= 0.5) == (truth[:, 0] == 1)).mean()
    assert 0.7 < right < 0.95  # a tenth is wrong by chance
    noise = np.random.default_rng(0).integers(0, 2, truth.shape).astype(np.int8)
    classifiers, unseen = fit(vectors, noise)
    assert ((unseen[:, 0] >= 0.5) == (noise[:, 0] == 1)).mean() < 0.65  # nothing is learned by heart
    assert abs(classifiers.chances(vectors).mean() - noise.mean()) < 0.1


def test_ties_in_the_ranking_do_not_tell_who_will_be_sampled() -> None:
    """A cheaper model that only says yes or no makes two values; right as often as promised it is at the border."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, (1_500, 1)).astype(np.int8)
    said = np.where(rng.random(truth.shape) < 0.11, 1 - truth, truth)
    odds = np.where(said == 1, 2.0, -2.0).astype(np.float32)
    broken = 0
    for seed in range(16):
        pool = LabelPool(odds, order_of(seed, 1_500), 1, whole_rows=False)
        result = label_pool(pool, Oracle(truth), PROMISE)
        here = result.predicted
        broken += bool(here.any() and (result.labels == truth)[here].mean() < PROMISE.agree)
    assert broken <= 4  # about 1 expected at most


@pytest.mark.parametrize(("size", "known"), [(1_500, 0), (1_500, 120), (1_500, 300), (9_000, 0)])
def test_how_many_are_asked_at_least_is_known_beforehand(size: int, known: int) -> None:
    vectors, truth = world(0, size, 0.0, (0.5, 0.3))
    oracle = Oracle(truth)
    result = label_pool(LabelPool(vectors, order_of(0, size), 2, whole_rows=True), oracle, PROMISE, known=truth[:known])
    certificate = result.certificates[0]
    assert certificate is not None
    learned = size - known - certificate.population
    assert 0.8 < (learned + certificate.sampled) / asked_in_full(size, PROMISE, known=known) < 2.5


def test_cells_are_put_together_each_once_by_what_examples_want() -> None:
    cells = np.zeros((200, 6), np.bool_)
    cells[:150, 2:4] = True
    cells[150:] = True
    covered = np.zeros(cells.shape, int)
    for rows, columns in groups_of(cells, 100):
        assert len(rows) * len(columns) <= 100
        covered[np.ix_(rows, columns)] += 1
    assert np.array_equal(covered, cells)


@pytest.mark.parametrize("known", [0, 50])
def test_a_pool_that_is_too_small_is_known_beforehand_to_be_asked_in_full(known: int) -> None:
    vectors, truth = world(0, 400, 0.0, (0.5, 0.3))
    oracle = Oracle(truth)
    label_pool(LabelPool(vectors, np.arange(400), 2, whole_rows=True), oracle, PROMISE, known=truth[:known])
    assert oracle.asked.all(axis=1).sum() == asked_in_full(400, PROMISE, known=known) == 400 - known
