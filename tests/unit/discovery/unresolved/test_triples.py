"""Unresolved triples: what is counted, drawn and exhausted equals brute force, however triples are drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import discovery.unresolved.triples
from discovery.questions import UNKNOWN, Labels
from discovery.unresolved.triples import ListedTriples, Method, TriedTriples, UnresolvedTriples

Triple = tuple[int, ...]
METHODS: list[Method] = ["list", "tries"]


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


def unresolved_by_brute_force(features: Iterable[Labels], n: int) -> set[Triple]:
    def settles(labels: Labels, triple: Triple) -> bool:
        values = [int(labels[example]) for example in triple]
        return UNKNOWN not in values and sum(values) == 2

    return {t for t in combinations(range(n), 3) if not any(settles(labels, t) for labels in features)}


def known(features: Iterable[Labels], n: int, method: Method | None = None, seed: int = 0) -> UnresolvedTriples:
    triples = UnresolvedTriples(n, np.random.default_rng(seed), method)
    for labels in features:
        triples.add(labels)
    return triples


def exhaust(triples: UnresolvedTriples) -> list[Triple]:
    drawn = []
    while (triple := triples.draw()) is not None:
        drawn.append(triple)
        triples.retire(triple)
    return drawn


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=25, deadline=None)
@given(features=matrices())
def test_draws_end_exactly_when_every_unresolved_triple_was_asked(method: Method, features: list[Labels]) -> None:
    n = features[0].size
    expected = unresolved_by_brute_force(features, n)
    triples = known(features, n, method)
    assert triples.count() == len(expected)
    drawn = exhaust(triples)
    assert len(drawn) == len(expected)
    assert set(drawn) == expected
    assert triples.count() == 0


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=25, deadline=None)
@given(features=matrices(), seed=st.integers(0, 1000))
def test_questions_and_features_may_come_in_any_order(method: Method, features: list[Labels], seed: int) -> None:
    n = features[0].size
    triples = known([], n, method, seed)
    asked: set[Triple] = set()
    for i, labels in enumerate(features):
        triples.add(labels)
        left = unresolved_by_brute_force(features[: i + 1], n) - asked
        assert triples.count() == len(left)
        drawn = triples.draw_many(2)
        assert len(set(drawn)) == min(2, len(left))
        assert set(drawn) <= left
        asked.update(drawn)
        for triple in drawn:
            triples.retire(triple)


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("method", METHODS)
def test_every_unresolved_triple_is_equally_likely(method: Method, missing: float) -> None:
    n, rng = 14, np.random.default_rng(3)
    features = [random_labels(n, rng, 0.5, missing) for _ in range(4)]
    triples = known([], n, method, seed=8)
    for labels in features:  # drawing in between leaves remainders and old surveys behind, which must do no harm
        triples.add(labels)
        triples.retire(triples.draw_many(1)[0])
    expected = sorted(unresolved_by_brute_force(features, n) - triples._retired)
    assert len(expected) > 20
    counts = Counter(triples.draw() for _ in range(20 * len(expected)))
    assert set(counts) == set(expected)
    assert chisquare([counts[triple] for triple in expected]).pvalue > 1e-3


@pytest.mark.parametrize("method", METHODS)
def test_a_batch_is_a_uniform_choice_without_repetition(method: Method) -> None:
    features = [np.array([1, 1, 0, 0, 0, 0], np.int8), np.array([0, 0, 1, 1, 0, 0], np.int8)]
    expected = sorted(unresolved_by_brute_force(features, 6))
    triples = known(features, 6, method)
    counts: Counter[frozenset[Triple]] = Counter()
    for _ in range(1500):
        counts[frozenset(triples.draw_many(2))] += 1
    pairs = [frozenset(pair) for pair in combinations(expected, 2)]
    assert set(counts) <= set(pairs)
    assert chisquare([counts[pair] for pair in pairs]).pvalue > 1e-3
    assert sorted(triples.draw_many(len(expected) + 5)) == expected


def test_a_retired_triple_never_comes_again_even_if_no_feature_settles_it() -> None:
    triples = known([], 4)
    for triple in [(2, 0, 1), (0, 1, 3), (0, 2, 3)]:
        triples.retire(triple)
    assert {triples.draw() for _ in range(50)} == {(1, 2, 3)}
    triples.retire((3, 2, 1))
    assert triples.draw() is None


@pytest.mark.parametrize("n", [0, 1, 2])
def test_fewer_than_three_examples_leave_nothing_to_ask(n: int) -> None:
    triples = known([np.ones(n, np.int8)], n)
    assert triples.draw() is None
    assert triples.count() == 0
    assert triples.share == 0
    assert triples.least_resolved(3) == []


@pytest.mark.parametrize("limit", [50, 100_000])
def test_the_method_changes_by_itself_and_nothing_is_missed(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery.unresolved.triples, "LIST_LIMIT", limit)
    monkeypatch.setattr(discovery.unresolved.triples, "TRIES_PER_ROUND", (8, 64))
    n, rng = 120, np.random.default_rng(5)
    features = [random_labels(n, rng, 0.5, 0.01) for _ in range(22)]
    triples = known([], n)
    asked, ways = set(), set()
    for labels in features:
        triples.add(labels)
        assert 0 < triples.share <= 1
        ways.add(type(triples._source))
        for triple in triples.draw_many(3):
            asked.add(triple)
            triples.retire(triple)
    everything = np.array(list(combinations(range(n), 3))).T
    left = triples._labels.unresolved_triples(*everything)
    expected = {tuple(triple) for triple in everything[:, left].T.tolist()} - asked
    assert triples.count() == len(expected)
    assert set(exhaust(triples)) == expected
    ways.add(type(triples._source))
    assert ways == {TriedTriples, ListedTriples}


def test_the_same_seed_draws_the_same_and_looking_changes_nothing() -> None:
    n, rng = 400, np.random.default_rng(6)
    features = [random_labels(n, rng) for _ in range(20)]
    plain, watched = known([], n, seed=4), known([], n, seed=4)
    for labels in features:
        plain.add(labels)
        watched.add(labels)
        assert watched.share > 0
        if labels is features[12]:
            watched.count()
        drawn = plain.draw_many(3)
        assert watched.draw_many(3) == drawn
        for triple in drawn:
            plain.retire(triple)
            watched.retire(triple)
    assert watched.least_resolved(5) == plain.least_resolved(5)


def test_a_share_that_is_not_exact_is_near_the_exact_one() -> None:
    n, rng = 400, np.random.default_rng(7)
    triples = known([random_labels(n, rng) for _ in range(6)], n)
    assert not triples.share_is_exact
    assert triples.share == pytest.approx(triples.count() / triples.total, rel=0.05)
    small = known([random_labels(30, rng)], 30)
    assert small.share_is_exact
    assert small.share == small.count() / 4060


def test_a_share_is_not_called_zero_before_it_is_known_to_be() -> None:
    n, rng = 400, np.random.default_rng(8)
    triples = known([random_labels(n, rng) for _ in range(64)], n)
    assert triples.share > 0
    assert triples.draw() is None
    assert triples.share_is_exact
    assert triples.share == 0


def test_least_resolved_triples_are_those_that_the_fewest_features_settle() -> None:
    n, rng = 14, np.random.default_rng(9)
    features = [random_labels(n, rng, 0.5, 0.1) for _ in range(12)]
    triples = known(features[:6], n)
    triples.least_resolved(1)
    for labels in features[6:]:
        triples.add(labels)
    scores: dict[Triple, int] = {
        triple: sum(UNKNOWN not in labels[list(triple)] and labels[list(triple)].sum() == 2 for labels in features)
        for triple in combinations(range(n), 3)
    }
    for triple in list(scores)[::3]:
        triples.retire(triple)
        del scores[triple]
    chosen = triples.least_resolved(40)
    assert len(set(chosen)) == 40
    assert [scores[triple] for triple in chosen] == sorted(scores.values())[:40]
    assert len(triples.least_resolved(1000)) == len(scores)


def test_ties_among_the_least_resolved_are_broken_at_random() -> None:
    triples = known([], 6)
    firsts = Counter(triples.least_resolved(1)[0] for _ in range(2000))
    assert len(firsts) == 20
    assert chisquare(list(firsts.values())).pvalue > 1e-3


def test_above_a_list_the_least_resolved_come_from_a_sample() -> None:
    n, rng = 300, np.random.default_rng(10)
    features = [random_labels(n, rng) for _ in range(40)]
    triples = known(features, n)
    seen: set[Triple] = set()
    for _ in range(3):
        chosen = triples.least_resolved(5)
        assert len(set(chosen) - seen) == 5
        seen.update(chosen)
        for triple in chosen:
            triples.retire(triple)
    settled = triples._labels.triples_settled_by(*np.array(sorted(seen)).T)
    assert settled.max() <= 4  # a random triple is settled by 15 of the 40 on average


def test_labels_that_do_not_fit_are_refused() -> None:
    triples = known([], 5)
    with pytest.raises(ValueError, match="4 labels for 5 examples"):
        triples.add(np.zeros(4, np.int8))
    with pytest.raises(ValueError, match="neither 1, 0 nor -1"):
        triples.add(np.full(5, 2, np.int8))
    with pytest.raises(ValueError, match="three different examples"):
        triples.retire((1, 1, 2))
