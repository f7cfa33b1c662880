"""Which triples no known feature resolves, and a uniform draw from them (Algorithm 1, step 1).

Up to LIST_LIMIT triples are kept in a list. Above that random triples are tried, which is quick as long as many are
unresolved. When the tries have cost more than a survey of all unresolved triples would, it is made: from then on
triples come from its list, unless that would be too long.

Each of the two sources has `draw(rng)`, one attempt that gives a triple or None, and `add(labels)`, to be called when a
feature was learned. What it gives is uniform over the triples that are neither resolved nor retired at that moment."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from math import comb
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discovery.questions import UNKNOWN, Labels
from discovery.unresolved.join import NOTHING, VISITS, Batch, Survey, TripleJoin, count_unresolved_triples, survey
from discovery.unresolved.packed_labels import PackedLabels, fewest

Triple = tuple[int, ...]
Method = Literal["list", "tries"]
LIST_LIMIT = 4_000_000  # triples kept one by one: 48 MB, all triples of up to 289 examples
TRIES_PER_ROUND = (1 << 8, 1 << 15)  # random triples tried at once: so many at first, so many at most
RECENT_HITS = 16  # from which the number of unresolved triples is estimated
SHARE_SAMPLE = 1 << 17  # random triples from which a share is estimated
TRIPLE_SAMPLE = 1 << 17  # random triples of which the least resolved are taken
PATIENCE = 8  # a survey is made once draws have wasted an eighth of the work it takes, if it will end in a list
REPEATS = 100  # repeated draws in a row before it is checked whether any other triple is left


def all_triples(n: int) -> Batch:
    """Every triple of `n` examples, in lexicographic order."""
    a, b = np.triu_indices(n, 1)
    thirds = n - 1 - b
    starts = np.cumsum(thirds) - thirds
    c = np.arange(thirds.sum()) - np.repeat(starts - b - 1, thirds)
    return np.stack([np.repeat(a, thirds), np.repeat(b, thirds), c]).astype(np.int32)


def settles(labels: Labels, triples: Batch) -> NDArray[np.bool_]:
    """Which of the triples one feature resolves."""
    values = np.where(labels == UNKNOWN, 4, labels).astype(np.uint8)  # a sum of 2 then needs three known labels
    settled: NDArray[np.bool_] = values[triples[0]] + values[triples[1]] + values[triples[2]] == 2
    return settled


def try_triples(labels: PackedLabels, tries: int, rng: np.random.Generator) -> Batch:
    """The unresolved ones among `tries` uniformly random triples, in the order of the tries."""
    a, b, c = rng.integers(labels.n, size=(3, tries), dtype=np.int32)
    different = (a != b) & (a != c) & (b != c)
    a, b, c = a[different], b[different], c[different]
    left = labels.unresolved_triples(a, b, c)
    return np.sort(np.stack([a[left], b[left], c[left]]), axis=0)


class ListedTriples:
    """All unresolved triples, one by one: 12 bytes each. None from `draw` means that there are none."""

    def __init__(self, triples: Batch, retired: AbstractSet[Triple]) -> None:
        self._triples = triples
        self._retired = retired
        self.removed = set() if triples.size else set(retired)  # retired triples that are not in the list, or no longer

    def __len__(self) -> int:
        return int(self._triples.shape[1])

    def add(self, labels: Labels) -> None:
        self._triples = self._triples[:, ~settles(labels, self._triples)]

    def draw(self, rng: np.random.Generator) -> Triple | None:
        while len(self):
            place = int(rng.integers(len(self)))
            triple = tuple(self._triples[:, place].tolist())
            if triple not in self._retired:
                return triple
            self._triples[:, place] = self._triples[:, -1]
            self._triples = self._triples[:, :-1]
            self.removed.add(triple)
        return None


class TriedTriples:
    """Random triples are tried until one is unresolved. None from `draw` means that a round of tries found nothing.

    What a round finds beyond the triple drawn serves later draws, as far as it is still unresolved then."""

    def __init__(self, labels: PackedLabels, retired: AbstractSet[Triple]) -> None:
        self.spent = 0  # tries so far
        self.laborious = False  # even large rounds have found nothing
        self._labels = labels
        self._retired = retired
        self._tries = TRIES_PER_ROUND[0]
        self._found: list[Triple] = []  # the next one last
        self._recent = [0, 0]  # tries and what they found, of late

    def add(self, labels: Labels) -> None:
        found = as_batch(self._found)
        self._found = [tuple(triple) for triple in found[:, ~settles(labels, found)].T.tolist()]

    def draw(self, rng: np.random.Generator) -> Triple | None:
        while self._found:
            triple = self._found.pop()
            if triple not in self._retired:
                return triple
        found = try_triples(self._labels, self._tries, rng).T[::-1].tolist()
        self._count(len(found))
        self._found = [triple for triple in map(tuple, found) if triple not in self._retired]
        if self._found:
            return self._found.pop()
        self.laborious = self._tries == TRIES_PER_ROUND[1]
        self._tries = min(4 * self._tries, TRIES_PER_ROUND[1])
        return None

    def unresolved(self) -> float:
        """About how many triples are unresolved; more than there are rather than fewer, as the tries may be old."""
        return self._labels.n**3 / 6 * (self._recent[1] + 1) / max(self._recent[0], 1)

    def _count(self, found: int) -> None:
        self.spent += self._tries
        self._recent = [self._recent[0] + self._tries, self._recent[1] + found]
        if self._recent[1] > RECENT_HITS:
            self._recent = [number // 2 for number in self._recent]


def codes(triples: Batch, n: int) -> NDArray[np.int64]:
    """One number for each triple."""
    a, b, c = triples.astype(np.int64)
    numbers: NDArray[np.int64] = (a * n + b) * n + c
    return numbers


def as_batch(triples: Iterable[Triple]) -> Batch:
    return np.array(list(triples), np.int32).reshape(-1, 3).T


class _Scored(NamedTuple):
    triples: Batch
    scores: NDArray[np.int64]  # how many features settle each
    numbers: NDArray[np.int64]  # their codes, ascending


class UnresolvedTriples:
    """A triple is resolved when some feature is known on all three examples and true of exactly two of them.

    `method` fixes how triples are drawn, for small n; by default it is chosen as described above. Asking for a count
    or a share never changes what is drawn."""

    def __init__(self, n: int, rng: np.random.Generator, method: Method | None = None) -> None:
        self.n = n
        self.rng = rng
        self.total = comb(n, 3)
        self._method = method
        self._labels = PackedLabels(n)
        self._retired: set[Triple] = set()
        self._survey: tuple[int, Survey] | None = None  # the last one, and of how many features
        self._work: tuple[int, int] | None = None  # what a survey would cost, and with how many features
        self._scored: _Scored | None = None  # all triples
        self._source = self._first_source()
        self._estimates = np.random.default_rng(rng.integers(1 << 63))
        self._estimate: tuple[int, float] | None = None

    def add(self, labels: Labels) -> None:
        """Learn a feature: the triples it settles are resolved from now on."""
        self._labels.add(labels)
        self._source.add(labels)
        if self._scored is not None:
            more = settles(labels, self._scored.triples)
            self._scored = self._scored._replace(scores=self._scored.scores + more)

    def retire(self, triple: Triple) -> None:
        """Never draw this triple again."""
        if len(set(triple)) != 3:
            raise ValueError(f"{triple} is not a triple: name three different examples")
        self._retired.add(tuple(sorted(triple)))

    def count(self) -> int:
        """Exactly how many triples are neither resolved nor retired. Far above the list's limit this may take long."""
        if isinstance(self._source, ListedTriples):
            return len(self._source) - self._count_unresolved(self._retired - self._source.removed)
        unresolved = self._surveyed().total if self._has_fresh_survey() else count_unresolved_triples(self._labels)
        return unresolved - self._count_unresolved(self._retired)

    @property
    def share(self) -> float:
        """Unresolved triples as a share of all triples; an estimate unless `share_is_exact`, and never 0 then."""
        if self.share_is_exact:
            return self.count() / max(self.total, 1)
        if self._estimate is None or self._estimate[0] != self._labels.features:
            self._estimate = self._labels.features, self._estimated_share()
        return self._estimate[1]

    @property
    def share_is_exact(self) -> bool:
        return isinstance(self._source, ListedTriples) or self._has_fresh_survey()

    def draw(self) -> Triple | None:
        """One of the unresolved triples, each equally likely; None when there is none."""
        return next(iter(self.draw_many(1)), None)

    def draw_many(self, k: int) -> list[Triple]:
        """Up to `k` different unresolved triples; fewer only when no more are left."""
        drawn: dict[Triple, None] = {}
        repeats = 0
        while len(drawn) < k and (triple := self._next()) is not None:
            repeats = repeats + 1 if triple in drawn else 0
            drawn[triple] = None
            if repeats == REPEATS and self.count() == len(drawn):
                break
        return list(drawn)

    def least_resolved(self, k: int) -> list[Triple]:
        """Up to `k` triples, never retired, that the fewest known features settle; ties are broken at random.

        Exact up to LIST_LIMIT triples in all; above that the best of TRIPLE_SAMPLE random triples."""
        triples, scores, numbers = self._scored or self._sampled()
        retired = codes(as_batch(self._retired), self.n)
        places = np.minimum(np.searchsorted(numbers, retired), numbers.size - 1)
        is_free = np.ones(numbers.size, np.bool_)
        is_free[places[numbers[places] == retired]] = False
        free = np.flatnonzero(is_free)
        chosen = free[fewest(scores[free], k, self.rng)]
        return [tuple(triple) for triple in triples[:, chosen].T.tolist()]

    def _sampled(self) -> _Scored:
        """All triples are kept for the next time."""
        if self.total <= LIST_LIMIT:
            triples = all_triples(self.n)
            self._scored = _Scored(triples, self._labels.triples_settled_by(*triples), codes(triples, self.n))
            return self._scored
        triples = try_triples(PackedLabels(self.n), TRIPLE_SAMPLE, self.rng)
        numbers, first = np.unique(codes(triples, self.n), return_index=True)
        return _Scored(triples[:, first], self._labels.triples_settled_by(*triples[:, first]), numbers)

    def _first_source(self) -> TriedTriples | ListedTriples:
        if self._method == "tries" or self.total > LIST_LIMIT:
            return TriedTriples(self._labels, self._retired)
        return ListedTriples(all_triples(self.n), self._retired)

    def _next(self) -> Triple | None:
        """One uniform draw; None when nothing is left."""
        while True:
            if self._is_worn_out(self._source):
                self._source = self._surveyed_source()
            triple = self._source.draw(self.rng)
            if triple is not None or isinstance(self._source, ListedTriples):
                return triple

    def _is_worn_out(self, source: TriedTriples | ListedTriples) -> bool:
        """The tries have cost more than a survey would. Its cost is estimated only if they exceed its least cost, the
        n²/2 visits of the join."""
        if not isinstance(source, TriedTriples) or not source.laborious:
            return False
        waste = source.spent * (PATIENCE if source.unresolved() < LIST_LIMIT else 1)
        return waste * VISITS > self.n**2 // 2 and waste > self._survey_work()

    def _surveyed_source(self) -> TriedTriples | ListedTriples:
        found = self._surveyed()
        if found.total == self._count_unresolved(self._retired):
            return ListedTriples(NOTHING, self._retired)
        if found.triples is not None and self._method is None:
            self._survey = None  # the list changes from now on
            return ListedTriples(found.triples, self._retired)
        return TriedTriples(self._labels, self._retired)

    def _survey_work(self) -> int:
        if self._work is None or self._work[0] != self._labels.features:
            self._work = self._labels.features, TripleJoin(self._labels).work()
        return self._work[1]

    def _has_fresh_survey(self) -> bool:
        return self._survey is not None and self._survey[0] == self._labels.features

    def _surveyed(self) -> Survey:
        if self._survey is None or not self._has_fresh_survey():
            self._survey = self._labels.features, survey(self._labels, LIST_LIMIT)
        return self._survey[1]

    def _count_unresolved(self, triples: Iterable[Triple]) -> int:
        return self._labels.unresolved_triples(*as_batch(triples)).size

    def _estimated_share(self) -> float:
        found = int(try_triples(self._labels, SHARE_SAMPLE, self._estimates).shape[1])
        cells = self.n**3 / 6  # what a try is one of
        if found:
            return min(1.0, found / SHARE_SAMPLE * cells / self.total)
        before = self._estimate[1] if self._estimate else 1.0
        return min(before, 3 / SHARE_SAMPLE * cells / self.total)  # with 95 % confidence there are no more
