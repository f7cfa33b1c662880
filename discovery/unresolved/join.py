"""All unresolved triples, found by a hash join: fix one example a; the other two must agree on what a has and share
nothing else, so only examples with the same labels on a's features need to be compared.

a is the one of the three with the most features, so that each triple is found once and keys are long. A missing label
agrees with both values: such an example is entered under every completion of its key, and one with too many missing
labels is compared with all others. Every pair found is tested against all known labels, so hash collisions do no
harm. Time grows as n² log n plus the pairs compared, memory as n.

An entry is one number: a hash in its high bits and the place of an example in its low bits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discovery.unresolved.packed_labels import WORD, Bits, PackedLabels

Places = NDArray[np.intp]
Batch = NDArray[np.int32]  # three rows, one column per triple: example numbers, ascending in each column
NOTHING: Batch = np.zeros((3, 0), np.int32)
MAX_BLANKS = 6  # missing labels in a key up to which all its completions are entered
MAX_COPIES = 8.0  # entries per example, on average, up to which features with missing labels are used in keys
WORK_SAMPLE = 64  # examples from which the work is estimated
VISITS = 20  # examples that the join looks at in the time of one random try
WORK_IF_INCOMPLETE = 8  # how much longer one takes when labels are missing
LONG_RUN = 64  # entries with one hash above which their pairs are tested as a grid
MERGED_BATCHES = 1000  # of triples, of one example each
GRID = 1 << 15  # about so many pairs of a grid are tested at once


class TripleJoin:
    """Examples are ranked by how many features they have, most first; `order[place]` is the example at a place."""

    def __init__(self, labels: PackedLabels) -> None:
        self.order = _most_features_first(labels)
        self.rows = labels.take(self.order)
        self._low = np.uint64((1 << labels.n.bit_length()) - 1)  # the bits of an entry that hold the place
        self._places = np.arange(labels.n, dtype=np.uint64)
        self._usable = _key_features(labels)
        self._factors = np.random.default_rng(0).integers(1 << 63, size=len(labels.has), dtype=np.uint64) * 2 + 1

    def partners(self, a: int) -> Iterator[tuple[Places, Places]]:
        """All pairs of places b, c after place a for which (a, b, c) is unresolved, in batches of at most about n."""
        key = self._key(a)
        entries, wild = self._entries(a, key)
        for left, right in pairs_with_equal_hashes(entries, self._low):
            left, right = self._unresolved(a, left, right)
            if left.size and not self.rows.complete:  # of several completions that two examples share one counts
                counts = self._is_first_in_common(key, left, right)
                left, right = left[counts], right[counts]
            yield self._place(left), self._place(right)
        for w in range(wild.size):
            rest = np.setdiff1d(self._places[a + 1 :], wild[: w + 1], assume_unique=True)
            left, right = self._unresolved(a, np.minimum(rest, wild[w]), np.maximum(rest, wild[w]))
            yield self._place(left), self._place(right)

    def work(self) -> int:
        """About how many random tries take as long as to find all triples, estimated from WORK_SAMPLE examples."""
        n = self.rows.n
        sample = np.unique(np.linspace(0, n - 1, min(n, WORK_SAMPLE)).astype(int)).tolist()
        visits, effort = 0, 1 if self.rows.complete and self.rows.has else WORK_IF_INCOMPLETE
        for a in sample:
            entries, wild = self._entries(a, self._key(a))
            ends = np.flatnonzero((entries[1:] ^ entries[:-1]) > self._low) + 1
            runs = np.diff(ends, prepend=0, append=entries.size)
            pairs = int((runs * (runs - 1) // 2).sum()) + wild.size * (n - a)
            visits += 2 * pairs + entries.size * effort
        return visits * n // (VISITS * max(len(sample), 1))

    def _key(self, a: int) -> list[np.uint64]:
        return [has[a] & usable for has, usable in zip(self.rows.has, self._usable, strict=True)]

    def _entries(self, a: int, key: list[np.uint64]) -> tuple[Bits, Bits]:
        """Hash of the key and place in one number for the places after a, sorted; and the places that match any key."""
        places = self._places[a + 1 :]
        hashes = self._hash(key, [has[a + 1 :] for has in self.rows.has], places.size)
        if self.rows.complete:
            entries = hashes  # this is where the time goes: work in place
            entries &= ~self._low
            entries |= places
            entries.sort()
            return entries, places[:0]
        entries = hashes & ~self._low | places
        blanks = [part & ~known[a + 1 :] for part, known in zip(key, self.rows.known, strict=True)]
        incomplete = np.flatnonzero(np.bitwise_or.reduce(blanks))
        many = (
            sum((np.bitwise_count(blank[incomplete]) for blank in blanks), np.zeros(incomplete.size, np.uint8))
            > MAX_BLANKS
        )
        few = incomplete[~many]
        hashes, completed = _completed(hashes[few], places[few], [blank[few] for blank in blanks], self._factors)
        entries = np.concatenate([np.delete(entries, incomplete), hashes & ~self._low | completed])
        entries.sort()
        repeated = np.flatnonzero(entries[1:] == entries[:-1])  # two completions of one key may have the same hash
        return np.delete(entries, repeated), places[incomplete[many]]

    def _hash(self, key: list[np.uint64], has: list[Bits], size: int) -> Bits:
        hashes = np.zeros(size, np.uint64)
        for part, bits, factor in zip(key, has, self._factors, strict=True):
            hashed = bits & part
            hashed *= factor
            hashes += hashed
        return hashes

    def _is_first_in_common(self, key: list[np.uint64], left: Bits, right: Bits) -> NDArray[np.bool_]:
        """The completion that the two entries share has 0 wherever both labels are missing."""
        b, c = self._place(left), self._place(right)
        common = self._hash(key, [has[b] | has[c] for has in self.rows.has], b.size)
        first: NDArray[np.bool_] = (common ^ left) <= self._low
        return first

    def _place(self, entries: Bits) -> Places:
        return (entries & self._low).astype(np.intp)

    def _unresolved(self, a: int, left: Bits, right: Bits) -> tuple[Bits, Bits]:
        """Of the pairs left < right, which may be a grid, those whose places make an unresolved triple with a."""
        found = left < right
        if self.rows.has:
            found &= self.rows.two_of_three(0, a, self._place(left), self._place(right)) == 0
        if found.ndim == 2:
            rows, columns = np.nonzero(found)
            left, right = left[rows, 0], right[0, columns]
        else:
            left, right = left[found], right[found]
        for word in range(1, len(self.rows.has)):
            found = self.rows.two_of_three(word, a, self._place(left), self._place(right)) == 0
            left, right = left[found], right[found]
        return left, right


def pairs_with_equal_hashes(entries: Bits, low: np.uint64) -> Iterator[tuple[Bits, Bits]]:
    """All pairs of sorted entries with the same hash; `low` are the bits of the place.

    Entries with one hash form a run: pairs of long runs come as grids, the others by distance 1, 2, and so on."""
    left = np.flatnonzero((entries[1:] ^ entries[:-1]) <= low)  # the next entry belongs to the same run
    if left.size > LONG_RUN:
        breaks = np.flatnonzero(np.diff(left, prepend=-2, append=-2) != 1)
        sizes = np.diff(breaks)
        for start, size in zip(left[breaks[:-1]].tolist(), sizes.tolist(), strict=True):
            if size > LONG_RUN:
                yield from _grids(entries[start : start + size + 1])
        left = left[np.repeat(sizes <= LONG_RUN, sizes)]
    distance = 1
    while left.size:
        yield entries[left], entries[left + distance]
        distance += 1
        left = left[left < entries.size - distance]
        left = left[(entries[left] ^ entries[left + distance]) <= low]


def _grids(run: Bits) -> Iterator[tuple[Bits, Bits]]:
    """All pairs of a run, and a few twice, the second time with the larger entry first."""
    step = max(1, GRID // run.size)
    for row in range(0, run.size - 1, step):
        yield run[row : row + step, None], run[None, row + 1 :]


def _most_features_first(labels: PackedLabels) -> Places:
    features = sum((np.bitwise_count(has).astype(np.int64) for has in labels.has), np.zeros(labels.n, np.int64))
    return np.argsort(-features, kind="stable")


def _key_features(labels: PackedLabels) -> list[np.uint64]:
    """The features that may be part of a key, as bits: those with few missing labels."""
    if labels.complete:
        return [~np.uint64(0)] * len(labels.has)
    usable = [0] * len(labels.has)
    n, copies = max(labels.n, 1), 1.0
    columns = [(word, bit) for word in range(len(labels.has)) for bit in range(WORD)][: labels.features]
    factors = {}
    for word, bit in columns:
        known, has = ((bits[word] >> np.uint64(bit)) & np.uint64(1) for bits in (labels.known, labels.has))
        factors[word, bit] = 1 + (1 - float(known.sum()) / n) * float(has.sum()) / n
    for (word, bit), factor in sorted(factors.items(), key=lambda item: (item[1], item[0])):
        copies *= factor
        if copies <= MAX_COPIES:
            usable[word] |= 1 << bit
    return [np.uint64(bits) for bits in usable]


def _completed(hashes: Bits, places: Bits, blanks: list[Bits], factors: Bits) -> tuple[Bits, Bits]:
    """Enter each example with every value of its blanks: setting a bit adds that bit times the factor to the hash."""
    for word, factor in enumerate(factors):
        while (blank := np.flatnonzero(blanks[word])).size:
            lowest = blanks[word][blank] & (~blanks[word][blank] + np.uint64(1))
            blanks[word][blank] ^= lowest
            hashes = np.concatenate([hashes, hashes[blank] + lowest * factor])
            places = np.concatenate([places, places[blank]])
            blanks = [np.concatenate([bits, bits[blank]]) for bits in blanks]
    return hashes, places


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
    a = np.repeat(places, [batch.size for batch in b])
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
