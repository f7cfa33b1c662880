"""Unresolved pairs: counted, drawn and exhausted as brute force has it, also with missing labels."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from discovery.questions import UNKNOWN, Labels
from discovery.unresolved.pairs import SCORED_EXACTLY, UnresolvedPairs

Pair = tuple[int, ...]


@st.composite
def matrices(draw: st.DrawFn) -> list[Labels]:
    n = draw(st.integers(2, 14))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    missing = draw(st.sampled_from([0.0, 0.1, 0.5]))
    return [random_labels(n, rng, missing) for _ in range(draw(st.integers(1, 7)))]


def random_labels(n: int, rng: np.random.Generator, missing: float = 0.0) -> Labels:
    labels = rng.integers(2, size=n).astype(np.int8)
    labels[rng.random(n) < missing] = UNKNOWN
    return labels


def told_apart_by(features: list[Labels], pair: Pair) -> int:
    return sum(sorted(int(labels[example]) for example in pair) == [0, 1] for labels in features)


def known(features: list[Labels], n: int) -> UnresolvedPairs:
    pairs = UnresolvedPairs(n, np.random.default_rng(0))
    for labels in features:
        pairs.add(labels)
    return pairs


@settings(max_examples=60, deadline=None)
@given(features=matrices())
def test_draws_end_exactly_when_every_unresolved_pair_was_asked(features: list[Labels]) -> None:
    n = features[0].size
    pairs = known([], n)
    asked: set[Pair] = set()
    for i, labels in enumerate(features):
        pairs.add(labels)
        left = {p for p in combinations(range(n), 2) if not told_apart_by(features[: i + 1], p)} - asked
        assert pairs.count() == len(left)
        assert pairs.share == len(left) / (n * (n - 1) // 2)
        for pair in pairs.draw_many(2):
            assert pair in left
            asked.add(pair)
            pairs.retire(pair)
    left -= asked
    assert sorted(pairs.draw_many(1000)) == sorted(left)


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_every_unresolved_pair_is_equally_likely(missing: float) -> None:
    n, rng = 20, np.random.default_rng(1)
    features = [random_labels(n, rng, missing) for _ in range(3)]
    pairs = known(features, n)
    expected = [pair for pair in combinations(range(n), 2) if not told_apart_by(features, pair)]
    pairs.retire(expected.pop()[::-1])
    counts = Counter(pairs.draw() for _ in range(60 * len(expected)))
    assert set(counts) == set(expected)
    assert chisquare([counts[pair] for pair in expected]).pvalue > 1e-3


def test_least_resolved_pairs_are_those_that_the_fewest_features_tell_apart() -> None:
    n, rng = 12, np.random.default_rng(2)
    features = [random_labels(n, rng, 0.1) for _ in range(10)]
    pairs = known(features, n)
    scores: dict[Pair, int] = {pair: told_apart_by(features, pair) for pair in combinations(range(n), 2)}
    for pair in list(scores)[::4]:
        pairs.retire(pair)
        del scores[pair]
    chosen = pairs.least_resolved(20)
    assert len(set(chosen)) == 20
    assert [scores[pair] for pair in chosen] == sorted(scores.values())[:20]


def test_many_examples_are_counted_without_comparing_all_of_them() -> None:
    n = SCORED_EXACTLY * 10
    labels = np.zeros(n, np.int8)
    labels[:5] = 1
    pairs = known([labels], n)
    assert pairs.count() == 10 + (n - 5) * (n - 6) // 2
    labels = labels.copy()
    labels[0] = UNKNOWN
    assert known([labels], n).count() == 6 + (n - 5) * (n - 6) // 2 + (n - 1)
    chosen = pairs.least_resolved(3)
    assert len(set(chosen)) == 3
    assert all(told_apart_by([labels], pair) == 0 for pair in chosen)


@pytest.mark.parametrize("n", [0, 1])
def test_fewer_than_two_examples_leave_nothing_to_ask(n: int) -> None:
    pairs = known([np.ones(n, np.int8)], n)
    assert pairs.draw() is None
    assert pairs.share == 0
    assert pairs.least_resolved(2) == []
