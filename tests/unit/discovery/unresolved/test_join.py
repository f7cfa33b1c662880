"""The hash join finds every unresolved triple once, with any share of missing labels and any number of features."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from discovery.questions import UNKNOWN
from discovery.unresolved.join import VISITS, TripleJoin, count_unresolved_triples, survey
from discovery.unresolved.packed_labels import PackedLabels
from discovery.unresolved.triples import all_triples
from tests.support.slow import slow


def packed(n: int, features: int, missing: float, seed: int, share: float = 0.5) -> PackedLabels:
    rng = np.random.default_rng(seed)
    labels = PackedLabels(n)
    for _ in range(features):
        column = (rng.random(n) < share).astype(np.int8)
        column[rng.random(n) < missing] = UNKNOWN
        labels.add(column)
    return labels


def test_all_triples_are_in_lexicographic_order() -> None:
    for n in range(8):
        assert [tuple(triple) for triple in all_triples(n).T.tolist()] == list(combinations(range(n), 3))


@pytest.mark.parametrize("share", [0.15, 0.5, 0.85])
@pytest.mark.parametrize("missing", [0.0, 0.1, *slow(0.01, 0.6, 1.0)])
@pytest.mark.parametrize("features", [0, 1, 7, 20, 64, 65, 130])
def test_a_survey_equals_brute_force(features: int, missing: float, share: float) -> None:
    labels = packed(40, features, missing, seed=features, share=share)
    everything = all_triples(40)
    expected = everything[:, labels.unresolved_triples(*everything)]
    found = survey(labels, limit=10_000)
    assert found.triples is not None
    assert found.total == found.triples.shape[1] == expected.shape[1]
    assert set(map(tuple, found.triples.T.tolist())) == set(map(tuple, expected.T.tolist()))
    assert count_unresolved_triples(labels) == expected.shape[1]


def test_examples_without_any_label_are_compared_with_all() -> None:
    labels = packed(40, 30, 0.02, seed=1)
    for bits in (*labels.has, *labels.known):
        bits[[3, 17]] = 0
    everything = all_triples(40)
    expected = labels.unresolved_triples(*everything).size
    assert survey(labels, 10_000).total == count_unresolved_triples(labels) == expected


def test_a_survey_counts_on_when_there_are_too_many_to_list() -> None:
    labels = packed(40, 3, 0.0, seed=3)
    found = survey(labels, limit=20)
    assert found.triples is None
    assert found.total == count_unresolved_triples(labels) > 20


def test_the_work_is_estimated_before_it_is_done() -> None:
    long_keys, short_keys = packed(500, 40, 0.0, seed=4), packed(500, 4, 0.0, seed=4)
    assert 500**2 / 4 < VISITS * TripleJoin(long_keys).work() < 500**2
    assert TripleJoin(short_keys).work() > 20 * TripleJoin(long_keys).work()
