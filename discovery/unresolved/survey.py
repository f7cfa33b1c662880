"""Exactly how many triples are unresolved, and which, by one join of all examples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discovery.unresolved.join import Places, TripleJoin
from discovery.unresolved.packed_labels import PackedLabels

Batch = NDArray[np.int32]  # three rows, one column per triple: example numbers, ascending in each column
NOTHING: Batch = np.zeros((3, 0), np.int32)
MERGED_BATCHES = 1000  # of the join


@dataclass(frozen=True)
class Survey:
    total: int
    triples: Batch | None  # all of them, if they are no more than the limit


def survey(labels: PackedLabels, limit: int) -> Survey:
    """Find all unresolved triples, and list them as long as they are no more than `limit`: memory is bounded by it."""
    join = TripleJoin(labels)
    listed: list[Batch] = []
    waiting: list[tuple[int, Places, Places]] = []
    total = 0
    for a in range(labels.n):
        for b, c in join.partners(a):
            if b.size:
                total += b.size
                waiting.append((a, b, c))
        if len(waiting) > MERGED_BATCHES or a == labels.n - 1:
            listed = [*listed, *_as_one_batch(join.order, waiting)] if total <= limit else []
            waiting = []
    triples = _in_order(np.concatenate([NOTHING, *listed], axis=1)) if total <= limit else None
    return Survey(total, triples)


def _in_order(triples: Batch) -> Batch:
    """Sorted, because what is drawn depends on their order."""
    return triples[:, np.lexsort(triples[::-1])]


def _as_one_batch(order: Places, waiting: list[tuple[int, Places, Places]]) -> list[Batch]:
    if not waiting:
        return []
    places, b, c = zip(*waiting, strict=True)
    a = np.repeat(places, [each.size for each in b])
    examples = [order[a], order[np.concatenate(b)], order[np.concatenate(c)]]
    return [np.sort(np.stack(examples).astype(np.int32), axis=0)]


def count_unresolved_triples(labels: PackedLabels) -> int:
    """Join the patterns of known labels, not the examples: few features make few patterns, however many examples."""
    first, _, size = labels.patterns()
    join = TripleJoin(labels.take(first))
    members = size[join.order]
    total: int = sum(m * (m - 1) * (m - 2) // 6 for m in members.tolist())
    for a in range(members.size):
        alike = int(members[a])
        total += alike * sum(int(members[b] @ members[c]) for b, c in join.partners(a))
        if alike > 1:
            total += alike * (alike - 1) // 2 * int(members[_join_two_alike(join.rows, a)].sum())
    return total


def _join_two_alike(rows: PackedLabels, a: int) -> NDArray[np.bool_]:
    """Which other patterns make an unresolved triple with two examples of pattern a: those that have all that a has."""
    unresolved = np.ones(rows.n, np.bool_)
    for word in range(len(rows.has)):
        unresolved &= rows.two_of_three(word, a, a, np.arange(rows.n)) == 0
    unresolved[a] = False
    return unresolved
