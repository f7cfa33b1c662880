"""The certificate: over many samples, predictions agree less than promised at most as often as is allowed."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from discovery.statistics import Audit, Promise, shared_cut
from discovery.statistics.certificate import binomial_tail, hypergeometric_tail
from tests.support.slow import slow

Bools = NDArray[np.bool_]


def world(seed: int, size: int, wrong_at_top: float, wrong_at_bottom: float, share: float) -> tuple[Bools, Bools]:
    """A ranked population: whether each prediction is right, and whether the oracle's answer is the rarer one."""
    rng = np.random.default_rng(seed)
    right = rng.random(size) >= np.linspace(wrong_at_top, wrong_at_bottom, size)
    return right, rng.random(size) < share


def draw(rng: np.random.Generator, right: Bools, rarer: Bools, sampled: int) -> Audit:
    places = rng.choice(len(right), sampled, replace=False)
    return Audit(len(right), places, right[places], rarer[places], 1)


def broken(right: Bools, rarer: Bools, audit: Audit, promise: Promise) -> bool | None:
    """Whether a promise is broken, and None where nothing is predicted."""
    passed = audit.passed(promise)
    if not passed:
        return None
    above = np.arange(len(right)) < passed[-1].covered
    predicted = above.copy()
    predicted[audit.places] = False
    disagrees = predicted.any() and float(right[predicted].mean()) < promise.agree
    lost = float((above & rarer & ~right).sum()) > promise.lost(passed[-1].covered, len(right)) * float(rarer.sum())
    return bool(disagrees or lost)


@pytest.mark.parametrize("agree", [0.9, 0.95])
@pytest.mark.parametrize(
    ("top", "bottom", "share"),
    [(0.0, 0.12, 0.4), (0.04, 0.06, 0.5), (0.05, 0.05, 0.5), (0.02, 0.3, 0.2), (0.09, 0.11, 0.5), (0.0, 0.5, 0.03)],
)
@pytest.mark.parametrize("size", [900, *slow(6_000, 24_000)])
def test_a_promise_is_broken_at_most_as_often_as_is_allowed(
    agree: float, top: float, bottom: float, share: float, size: int
) -> None:
    promise, rng = Promise(agree), np.random.default_rng([size, int(1000 * bottom)])
    sampled = min(promise.sample_size(size), size // 3)
    worlds = [world(seed, size, top, bottom, share) for seed in range(4)]
    outcomes = [broken(*one, draw(rng, *one, sampled), promise) for one in worlds for _ in range(60)]
    allowed = promise.delta * len(outcomes)
    assert sum(outcome is True for outcome in outcomes) <= allowed + 3 * np.sqrt(allowed)


def test_worlds_at_the_border_use_up_the_level_and_no_more() -> None:
    """As many disagreements as the last cut must not have: there the test is tight."""
    size, sampled, promise, rng = 4_000, 400, Promise(0.95), np.random.default_rng(0)
    right = np.ones(size, np.bool_)
    right[np.linspace(0, size - 1, 181).astype(int)] = False  # 5 % of those that are not sampled, and one more
    rarer = np.arange(size) % 2 == 0
    outcomes = [broken(right, rarer, draw(rng, right, rarer, sampled), promise) for _ in range(800)]
    share = np.mean([outcome is True for outcome in outcomes])
    assert share <= promise.delta + 3 * np.sqrt(promise.delta / 800)


def test_good_predictions_are_certified_as_a_whole() -> None:
    right, rarer = world(0, 2_000, 0.0, 0.01, 0.3)
    promise = Promise(0.95)
    rng, sampled = np.random.default_rng(1), promise.sample_size(2_000)
    passed = [draw(rng, right, rarer, sampled).passed(promise) for _ in range(100)]
    assert np.mean([bool(certificates) and certificates[-1].covered == 2_000 for certificates in passed]) > 0.9


def test_predictions_that_disagree_too_often_are_not_certified_at_all() -> None:
    right, rarer = world(0, 2_000, 0.2, 0.2, 0.3)
    promise = Promise(0.95)
    assert not draw(np.random.default_rng(1), right, rarer, promise.sample_size(2_000)).passed(promise)


@pytest.mark.parametrize("size", [2_000, 20_000])
def test_always_predicting_the_commoner_answer_is_certified_by_mischance_only(size: int) -> None:
    rarer = np.random.default_rng(0).random(size) < 0.03
    promise, rng = Promise(0.95), np.random.default_rng(1)
    passed = [draw(rng, ~rarer, rarer, promise.sample_size(size)).passed(promise) for _ in range(200)]
    allowed = promise.delta * len(passed)
    assert sum(map(bool, passed)) <= allowed + 3 * np.sqrt(allowed)
    assert not any(certificates[-1].covered == size for certificates in passed if certificates)


def test_what_the_oracle_never_says_in_the_sample_cannot_be_certified() -> None:
    right, rarer = np.ones(2_000, np.bool_), np.zeros(2_000, np.bool_)
    promise = Promise(0.95)
    assert not draw(np.random.default_rng(0), right, rarer, 300).passed(promise)


def test_cuts_depend_on_the_sizes_alone_and_end_with_the_whole() -> None:
    promise = Promise(0.95)
    cuts = [cut for cut, _ in promise.cuts(3_000, 300)]
    assert cuts == sorted(cuts)
    assert cuts[-1] == 3_000
    assert promise.cuts(3_000, 50) == []


def test_a_shared_cut_is_one_that_every_feature_has_passed() -> None:
    promise = Promise(0.95)
    rng = np.random.default_rng(0)
    good, poor = world(0, 3_000, 0.0, 0.01, 0.3), world(1, 3_000, -0.1, 0.1, 0.3)
    passed = [draw(rng, *one, 300).passed(promise) for one in (good, poor)]
    assert 0 < shared_cut(passed) < 3_000
    assert shared_cut([*passed, []]) == 0
    without = shared_cut([*passed, []], every=False)
    counts = {cut: sum(any(one.covered == cut for one in each) for each in passed) for cut in (without, 3_000)}
    assert counts[without] * without >= counts[3_000] * 3_000 > 0


def test_tails_are_those_of_the_library() -> None:
    from scipy.stats import binom, hypergeom

    for most, population, marked, drawn in [(0, 50, 5, 10), (3, 2_000, 90, 206), (20, 9_000, 450, 500), (5, 10, 6, 7)]:
        expected = hypergeom.cdf(most, population, marked, drawn)
        assert hypergeometric_tail(most, population, marked, drawn) == pytest.approx(expected, rel=1e-6)
        expected = binom.cdf(most, drawn, marked / population)
        assert binomial_tail(most, drawn, marked / population) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("size", [900, 2_000, 20_000, 200_000])
def test_the_levels_of_the_cuts_come_to_delta_and_no_more(size: int) -> None:
    promise = Promise(0.95)
    cuts = promise.cuts(size, promise.sample_size(size))
    assert sum(level for _, level in cuts) == pytest.approx(promise.delta)
    assert [cut for cut, _ in cuts] == sorted({cut for cut, _ in cuts})
    assert (cuts[0][0] < 0.6 * size) == (size >= 20_000)  # a small sample is too small for a narrow cut


def test_a_hard_feature_of_a_large_population_is_certified_where_it_is_sure() -> None:
    size, promise, rng = 20_000, Promise(0.95), np.random.default_rng(2)
    right = np.random.default_rng(0).random(size) >= np.where(np.arange(size) < 0.45 * size, 0.005, 0.25)
    rarer = np.arange(size) % 3 == 0
    passed = [draw(rng, right, rarer, promise.sample_size(size)).passed(promise) for _ in range(60)]
    assert np.mean([bool(certificates) for certificates in passed]) > 0.6
    assert max(one[-1].covered for one in passed if one) < 0.7 * size


def test_nothing_that_is_narrow_certifies_the_commoner_answer_either() -> None:
    size, promise, rng = 40_000, Promise(0.95), np.random.default_rng(3)
    rarer = np.random.default_rng(0).random(size) < 0.03
    passed = [draw(rng, ~rarer, rarer, promise.sample_size(size)).passed(promise) for _ in range(300)]
    allowed = promise.delta * len(passed)
    assert sum(map(bool, passed)) <= allowed + 3 * np.sqrt(allowed)
