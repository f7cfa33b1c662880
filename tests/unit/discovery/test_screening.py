"""A look stops what surely will not count, and loses what counts no more often than it says."""

from __future__ import annotations

from itertools import combinations, pairwise
from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discovery.metrics import distinct, interesting
from discovery.questions import UNKNOWN, Labels
from discovery.screening import LEFT, LOOK_ERROR, ScreenedOut, judge, order_to_tell, screening_stages
from tests.support.slow import slow


def outcome(labels: Labels, counting: list[Labels], order: np.ndarray) -> ScreenedOut | None:
    for stage in screening_stages(len(labels)):
        seen = np.full(len(labels), UNKNOWN, np.int8)
        seen[order[: stage.size]] = labels[order[: stage.size]]
        verdict = judge(seen, counting, stage)
        if isinstance(verdict, ScreenedOut):
            return verdict
        if verdict:
            return None
    return None


def with_ones(n: int, count: int, rng: np.random.Generator) -> Labels:
    return (rng.permutation(n) < count).astype(np.int8)


@pytest.mark.parametrize("n", [30, 1000, *slow(100, 200)])
@pytest.mark.parametrize("known", [0, 6])
def test_a_feature_that_only_just_counts_is_lost_no_more_often_than_stated(n: int, known: int) -> None:
    rng, lost, times = np.random.default_rng([n, known]), 0, 400
    features = [(rng.random(n) < 0.4).astype(np.int8) for _ in range(known)]
    for _ in range(times):
        labels = with_ones(n, ceil(n / 10), rng)
        assert interesting(labels)
        lost += outcome(labels, [], order_to_tell(n, features, rng)) is not None
    assert lost / times <= LOOK_ERROR + 3 * (LOOK_ERROR * (1 - LOOK_ERROR) / times) ** 0.5


@pytest.mark.parametrize(("n", "of"), [(20, 20), (30, 30), (40, 40), (22, 40)])
def test_of_all_orders_no_larger_share_loses_a_feature_that_only_just_counts(n: int, of: int) -> None:
    stops = [(stage.size, stage.few) for stage in screening_stages(n, of=of)]
    orders = [*combinations(range(of), ceil(of / 10))]  # the places of the examples that have it
    lost = sum(any(sum(place < size for place in order) <= few for size, few in stops) for order in orders)
    assert 0 < lost / len(orders) <= LOOK_ERROR


def test_a_look_stops_what_is_rarer_than_the_run_wants() -> None:
    def stops(difference: float) -> list[tuple[int, int]]:
        return [(stage.size, stage.few) for stage in screening_stages(40, difference=difference)]

    orders = [*combinations(range(40), 2)]  # the places of the two examples that have it: a twentieth
    lost = {
        wanted: sum(any(sum(place < size for place in order) <= few for size, few in stops(wanted)) for order in orders)
        for wanted in (0.05, 0.1)
    }
    assert lost[0.05] / len(orders) <= LOOK_ERROR < lost[0.1] / len(orders)


@pytest.mark.parametrize(("n", "share"), [(100, 0.25), (1000, 0.18)])
def test_a_feature_that_counts_by_more_is_hardly_ever_lost(n: int, share: float) -> None:
    rng = np.random.default_rng(n)
    lost = [outcome(with_ones(n, round(share * n), rng), [], order_to_tell(n, [], rng)) for _ in range(300)]
    assert sum(one is not None for one in lost) <= 3


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(60, 300))
def test_what_is_dropped_says_why_and_never_counts_on_what_was_seen(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    kept = with_ones(n, n // 2, rng)
    near = kept.copy()
    near[rng.choice(n, n // 40, replace=False)] ^= 1
    cases = {"rare": with_ones(n, n // 60, rng), "common": 1 - with_ones(n, n // 60, rng), "same": near}
    for what, labels in cases.items():
        dropped = outcome(labels, [kept], order_to_tell(n, [kept], rng))
        if dropped is not None:
            assert dropped.cause == what
            assert not (interesting(labels) and distinct(labels, [kept]))


def test_most_of_what_is_far_from_counting_is_dropped_at_the_first_look() -> None:
    rng, first = np.random.default_rng(3), screening_stages(2000)[0].size
    assert first <= 64
    seen = [outcome(with_ones(2000, 10, rng), [], order_to_tell(2000, [], rng)) for _ in range(100)]
    assert sum(one is not None and one.seen == first for one in seen) > 55


def test_a_complement_is_not_the_same() -> None:
    rng = np.random.default_rng(4)
    kept = with_ones(120, 60, rng)
    assert outcome(1 - kept, [kept], order_to_tell(120, [kept], rng)) is None


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 150), st.integers(0, 8))
def test_the_order_holds_every_example_once_and_spreads_known_features_evenly(seed: int, n: int, known: int) -> None:
    rng = np.random.default_rng(seed)
    features = [(rng.random(n) < 0.5).astype(np.int8) for _ in range(known)]
    order = order_to_tell(n, features, rng)
    assert sorted(order.tolist()) == list(range(n))
    if known and n >= 60:
        half = [abs(labels[order[: n // 2]].mean() - labels.mean()) for labels in features[:1]]
        assert max(half) < 0.25


def test_a_single_example_is_not_looked_at() -> None:
    assert screening_stages(1) == ()


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 400), st.integers(1, 5_000), st.integers(1, 60), st.integers(1, 30))
def test_every_look_can_stop_something_and_leaves_something_to_save(n: int, more: int, first: int, every: int) -> None:
    found = screening_stages(n, first, every, of=n + more)
    assert all(one.size < other.size and one.few <= other.few for one, other in pairwise(found))
    assert all(0 <= stage.few < ceil((n + more) / 10) * stage.size / (n + more) for stage in found)
    assert all(stage.size <= n and stage.size <= (n + more) * (1 - LEFT) for stage in found)
    times = [stage.size for stage in found if stage.meaning]
    assert times[:1] == [stage.size for stage in found][:1]
    assert all(after >= 1.5 * before for before, after in pairwise(times))


@pytest.mark.parametrize("every", [400, 4_000])
def test_of_a_random_part_of_more_examples_no_more_is_lost_than_stated(every: int) -> None:
    n, times, lost = 120, 400, 0
    rng = np.random.default_rng(every)
    for _ in range(times):
        labels = with_ones(every, ceil(every / 10), rng)[:n]
        order = order_to_tell(n, [], rng)
        for stage in screening_stages(n, of=every):
            seen = np.full(n, UNKNOWN, np.int8)
            seen[order[: stage.size]] = labels[order[: stage.size]]
            verdict = judge(seen, [], stage)
            lost += isinstance(verdict, ScreenedOut)
            if verdict is not False:
                break
    assert screening_stages(n, of=every)[-1].size == n
    assert lost / times <= LOOK_ERROR + 3 * (LOOK_ERROR * (1 - LOOK_ERROR) / times) ** 0.5


def test_words_say_what_was_seen() -> None:
    assert ScreenedOut("rare", 1, 48).reason() == "too rare: 1 of 48 examples have it"
    assert ScreenedOut("common", 0, 48).reason() == "too common: 0 of 48 examples lack it"
    assert ScreenedOut("same", 2, 48, 0).reason("hat") == "same as hat: differs on 2 of 48 examples"
