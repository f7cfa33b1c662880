"""What makes drawing quick at scale: random triples from a block of features, and a join that does not sort."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy.stats import chisquare

import discovery.unresolved.blocks
import discovery.unresolved.fast_join
import discovery.unresolved.sources
from discovery.questions import UNKNOWN
from discovery.unresolved.blocks import Block
from discovery.unresolved.fast_join import SlotTable
from discovery.unresolved.join import TripleJoin
from discovery.unresolved.sources import TriedTriples, all_triples
from discovery.unresolved.triples import UnresolvedTriples
from tests.support.made import packed


@pytest.mark.parametrize("table", [1, 30, 1 << 21])
def test_every_triple_that_a_block_leaves_unresolved_is_equally_likely(
    table: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discovery.unresolved.blocks, "TABLE", table)
    labels = packed(16, [0.5, 0.3, 0.7, 0.5])
    everything = all_triples(16)
    unresolved = set(map(tuple, everything[:, labels.unresolved_triples(*everything)].T.tolist()))
    drawn = np.sort(Block(labels).draw(200 * 560, np.random.default_rng(1)), axis=0)
    counts = Counter(map(tuple, drawn.T.tolist()))
    assert set(counts) >= unresolved
    assert (set(counts) == unresolved) == (table > 30)
    assert chisquare(list(counts.values())).pvalue > 1e-3


def test_a_block_leaves_features_with_missing_labels_alone() -> None:
    labels = packed(12, [0.5])
    labels.add(np.full(12, UNKNOWN, np.int8))
    drawn = Block(labels).draw(5000, np.random.default_rng(2))
    assert labels.unresolved_triples(*drawn).size == drawn.shape[1]


def test_tries_turn_to_a_block_and_stay_uniform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery.unresolved.sources, "TRIES", (4, 16))
    monkeypatch.setattr(discovery.unresolved.sources, "BLOCK_AFTER", 64)
    rng = np.random.default_rng(3)
    triples = UnresolvedTriples(20, np.random.default_rng(4), method="tries")
    for _ in range(7):
        triples.add((rng.random(20) < 0.5).astype(np.int8))
    source = triples._source
    assert isinstance(source, TriedTriples)
    while source.block is None:
        source.draw(triples.rng)
    everything = all_triples(20)
    expected = set(map(tuple, everything[:, triples._labels.unresolved_triples(*everything)].T.tolist()))
    counts: Counter[tuple[int, ...]] = Counter()
    while counts.total() < 40 * len(expected):
        if (triple := source.draw(triples.rng)) is not None:
            counts[triple] += 1
    assert set(counts) == expected
    assert chisquare(list(counts.values())).pvalue > 1e-3
    assert triples._estimated_share() == pytest.approx(len(expected) / triples.total, rel=0.05)


@pytest.mark.parametrize("rounds", [1, 16])
@pytest.mark.parametrize("slots", [9, 60, 4000])
def test_all_that_share_a_slot_meet_except_two_readers(
    rounds: int, slots: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discovery.unresolved.fast_join, "ROUNDS", rounds)
    monkeypatch.setattr(discovery.unresolved.fast_join, "CROWDED", 1.0)
    rng, table = np.random.default_rng(5), SlotTable(300)
    for writers in (0, 100, 300):
        numbers = rng.integers(slots, size=300)
        batches = table.pairs(numbers, writers) or ()
        found = [(min(pair), max(pair)) for left, right in batches for pair in zip(left, right, strict=True)]
        expected = {(b, c) for b in range(writers) for c in range(b + 1, 300) if numbers[b] == numbers[c]}
        assert Counter(pair for pair in found if pair[0] < writers) == Counter(expected)


def test_a_table_of_slots_forgets_before_its_numbers_run_out() -> None:
    table = SlotTable(50)
    table._added = int(np.iinfo(np.int32).max) - 200
    for _ in range(20):
        pairs = table.pairs(np.arange(50) // 5 * 5 + np.arange(50) % 5 * (np.arange(50) > 20), 50)
        assert pairs is not None
        assert sum(left.size for left, _ in pairs) == 4 * 10


def test_the_quick_join_finds_what_the_sorted_one_finds() -> None:
    for shares in ([0.5] * 26, [0.2] * 30, [0.5] * 70, [0.9] * 40):
        join = TripleJoin(packed(900, shares, seed=6))
        assert join.quick is not None
        quick = 0
        for a in range(0, 900, 9):
            if (found := join.quick.partners(a)) is not None:
                quick += 1
                assert _set(found) == _set(join._sorted_partners(a))
        assert quick > 5


def _set(batches: object) -> set[tuple[int, int]]:
    pairs = [(int(b), int(c)) for left, right in batches for b, c in zip(left, right, strict=True)]  # type: ignore[attr-defined]
    ascending = {(min(pair), max(pair)) for pair in pairs}
    assert len(ascending) == len(pairs)
    return ascending
