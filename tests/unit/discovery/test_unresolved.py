"""Unresolved triples and pairs: what is counted, drawn and exhausted equals brute force, listed or tried."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import twothirds.discovery.unresolved
from twothirds.discovery.questions import UNKNOWN, Labels
from twothirds.discovery.unresolved import UnresolvedSets

Examples = tuple[int, ...]


@st.composite
def matrices(draw: st.DrawFn) -> list[Labels]:
    """Labels of up to 9 features on 3 to 12 examples, from complete to mostly missing."""
    n = draw(st.integers(3, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    missing = draw(st.sampled_from([0.0, 0.1, 0.5]))
    share = draw(st.floats(0.1, 0.9))
    return [random_labels(n, rng, share, missing) for _ in range(draw(st.integers(1, 9)))]


def random_labels(n: int, rng: np.random.Generator, share: float = 0.5, missing: float = 0.0) -> Labels:
    labels = (rng.random(n) < share).astype(np.int8)
    labels[rng.random(n) < missing] = UNKNOWN
    return labels


def times_settled(features: Iterable[Labels], examples: Examples) -> int:
    values = [[int(labels[example]) for example in examples] for labels in features]
    return sum(UNKNOWN not in of_one and sum(of_one) == len(examples) - 1 for of_one in values)


def unresolved_by_brute_force(features: list[Labels], n: int, size: int) -> set[Examples]:
    return {examples for examples in combinations(range(n), size) if not times_settled(features, examples)}


def known(features: Iterable[Labels], n: int, size: int = 3, seed: int = 0) -> UnresolvedSets:
    sets = UnresolvedSets(n, size, np.random.default_rng(seed))
    for labels in features:
        sets.add(labels)
    return sets


@pytest.fixture
def tries(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with many examples, where sets are not listed."""
    monkeypatch.setattr(twothirds.discovery.unresolved, "LISTED", 5)
    monkeypatch.setattr(twothirds.discovery.unresolved, "SAMPLE", 64)
    monkeypatch.setattr(twothirds.discovery.unresolved, "GIVE_UP", 1 << 14)


@pytest.mark.parametrize("size", [2, 3])
@settings(max_examples=40, deadline=None)
@given(features=matrices(), seed=st.integers(0, 1000))
def test_questions_and_features_may_come_in_any_order(size: int, features: list[Labels], seed: int) -> None:
    n = features[0].size
    sets = known([], n, size, seed)
    asked: set[Examples] = set()
    for i, labels in enumerate(features):
        sets.add(labels)
        left = unresolved_by_brute_force(features[: i + 1], n, size) - asked
        assert sets.is_exact
        assert sets.count() == len(left)
        assert sets.share == len(left) / sets.total
        drawn = sets.draw_many(2)
        assert len(set(drawn)) == min(2, len(left))
        assert set(drawn) <= left
        asked.update(drawn)
        for examples in drawn:
            sets.retire(examples)
    assert set(sets.draw_many(10_000)) == unresolved_by_brute_force(features, n, size) - asked


@pytest.mark.usefixtures("tries")
@pytest.mark.parametrize("size", [2, 3])
def test_tries_find_what_is_unresolved_and_nothing_else(size: int) -> None:
    n, rng = 14, np.random.default_rng(3)
    features = [random_labels(n, rng, 0.5, 0.1) for _ in range(3)]
    sets = known(features, n, size)
    assert not sets.is_exact
    left = unresolved_by_brute_force(features, n, size)
    assert len(left) > 5
    drawn = set()
    for _ in range(len(left)):
        [examples] = sets.draw_many(1)
        drawn.add(examples)
        sets.retire(examples)
    assert drawn == left
    assert sets.draw_many(1) == []


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("tried", [False, True])
def test_every_unresolved_set_is_equally_likely(size: int, tried: bool, request: pytest.FixtureRequest) -> None:
    if tried:
        request.getfixturevalue("tries")
    n, rng = 14, np.random.default_rng(4)
    features = [random_labels(n, rng, 0.5, 0.1) for _ in range(3)]
    sets = known([], n, size, seed=8)
    retired = set()
    for labels in features:  # drawing in between leaves finds behind, which must do no harm
        sets.add(labels)
        retired.update(drawn := sets.draw_many(1))
        sets.retire(drawn[0])
    expected = sorted(unresolved_by_brute_force(features, n, size) - retired)
    assert len(expected) > 5
    counts = Counter(sets.draw_many(1)[0] for _ in range(20 * len(expected)))
    assert set(counts) == set(expected)
    assert chisquare([counts[examples] for examples in expected]).pvalue > 1e-3


def test_a_retired_triple_never_comes_again_even_if_no_feature_settles_it() -> None:
    triples = known([], 4)
    for triple in [(2, 0, 1), (0, 1, 3), (0, 2, 3)]:
        triples.retire(triple)
    assert {triples.draw_many(1)[0] for _ in range(50)} == {(1, 2, 3)}
    triples.retire((3, 2, 1))
    assert triples.draw_many(1) == []
    assert triples.count() == 0


@pytest.mark.parametrize("n", [0, 1, 2])
def test_fewer_than_three_examples_leave_nothing_to_ask(n: int) -> None:
    triples = known([np.ones(n, np.int8)], n)
    assert triples.draw_many(1) == triples.settled_least(3) == []
    assert triples.count() == triples.share == 0


def test_the_same_seed_draws_the_same_and_looking_changes_nothing() -> None:
    n, rng = 400, np.random.default_rng(6)
    features = [random_labels(n, rng) for _ in range(8)]
    plain, watched = known([], n, seed=4), known([], n, seed=4)
    for labels in features:
        for triples in (plain, watched):
            triples.add(labels)
        assert watched.share > 0
        watched.count()
        drawn = plain.draw_many(3)
        assert watched.draw_many(3) == drawn
        for triple in drawn:
            plain.retire(triple)
            watched.retire(triple)
    assert watched.settled_least(5) == plain.settled_least(5)


def test_an_estimated_share_is_near_the_exact_one_and_never_called_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    n, rng = 200, np.random.default_rng(7)
    features = [random_labels(n, rng) for _ in range(6)]
    exact = known(features, n)
    monkeypatch.setattr(twothirds.discovery.unresolved, "LISTED", 5)
    estimated = known(features, n)
    assert exact.is_exact
    assert not estimated.is_exact
    assert estimated.share == pytest.approx(exact.share, rel=0.05)
    assert estimated.count() == pytest.approx(exact.count(), rel=0.05)
    monkeypatch.setattr(twothirds.discovery.unresolved, "SHARE_SAMPLE", 1 << 10)
    assert 0 < known([random_labels(n, rng) for _ in range(64)], n).share <= 1 / 1024


@pytest.mark.parametrize("size", [2, 3])
def test_what_is_settled_least_is_what_the_fewest_features_settle(size: int) -> None:
    n, rng = 14, np.random.default_rng(9)
    features = [random_labels(n, rng, 0.5, 0.1) for _ in range(12)]
    sets = known(features, n, size)
    scores = {examples: times_settled(features, examples) for examples in combinations(range(n), size)}
    for examples in list(scores)[::3]:
        sets.retire(examples)
        del scores[examples]
    chosen = sets.settled_least(20)
    assert len(set(chosen)) == 20
    assert [scores[examples] for examples in chosen] == sorted(scores.values())[:20]
    assert len(sets.settled_least(1000)) == len(scores)


def test_of_many_examples_what_is_settled_least_comes_from_a_sample() -> None:
    n, rng = 300, np.random.default_rng(10)
    features = [random_labels(n, rng) for _ in range(40)]
    triples = known(features, n)
    chosen = triples.settled_least(5)
    for triple in chosen:
        triples.retire(triple)
    assert len({*chosen, *triples.settled_least(5)}) == 10
    assert max(times_settled(features, triple) for triple in chosen) <= 5, "15 of the 40 on average"


def test_labels_that_do_not_fit_are_refused() -> None:
    triples = known([], 5)
    with pytest.raises(ValueError, match="4 labels for 5 examples"):
        triples.add(np.zeros(4, np.int8))
    with pytest.raises(ValueError, match="neither 1, 0 nor -1"):
        triples.add(np.full(5, 2, np.int8))
    with pytest.raises(ValueError, match="no set of 3"):
        triples.retire((1, 1, 2))
