"""Labels certified together: the promise over many orders, whole examples, features that are not predicted, nights."""

from __future__ import annotations

import numpy as np
import pytest

from discovery import UNKNOWN
from discovery.statistics import Promise
from models.predicted import LabelPool, asked_in_full, label_pool
from models.predicted.classifier import fit
from tests.unit.models.predicted.test_labelling import Oracle, world

PROMISE = Promise(0.9, together=True)
SHARES = (0.5, 0.3, 0.4, 0.25)


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
    assert left.kept is None


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
    kept = label_pool(pool, first, PROMISE).kept
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


def test_a_pool_that_is_too_small_is_asked_in_full() -> None:
    vectors, truth = world(0, 400, 0.0, SHARES)
    oracle = Oracle(truth)
    label_pool(LabelPool(vectors, np.arange(400), 4, whole_rows=True), oracle, PROMISE)
    assert oracle.asked.all()
    assert asked_in_full(400, PROMISE) == 400


def test_chances_of_examples_that_were_not_seen_are_those_of_fits_without_them() -> None:
    vectors, truth = world(0, 120, 0.1, (0.4,))
    _, unseen = fit(vectors, truth)
    right = ((unseen[:, 0] >= 0.5) == (truth[:, 0] == 1)).mean()
    assert 0.7 < right < 0.95  # a tenth is wrong by chance
    noise = np.random.default_rng(0).integers(0, 2, truth.shape).astype(np.int8)
    classifiers, unseen = fit(vectors, noise)
    assert ((unseen[:, 0] >= 0.5) == (noise[:, 0] == 1)).mean() < 0.65  # nothing is learned by heart
    assert abs(classifiers.chances(vectors).mean() - noise.mean()) < 0.1
