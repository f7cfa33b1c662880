"""Which triples no known feature resolves, and a uniform draw from them (Algorithm 1, step 1).

Up to LIST_LIMIT triples are kept in a list. Above that random triples are tried, which is quick as long as many are
unresolved. When the tries have cost more than a survey of all unresolved triples would, it is made: from then on
triples come from its list, unless that would be too long."""

from __future__ import annotations

from collections.abc import Iterable
from math import comb
from typing import Literal

import numpy as np

from discovery.questions import Labels
from discovery.unresolved.join import NOTHING, VISITS, Survey, TripleJoin, count_unresolved_triples, survey
from discovery.unresolved.least_resolved import SampledTriples, ScoredTriples
from discovery.unresolved.packed_labels import PackedLabels
from discovery.unresolved.sources import (
    ListedTriples,
    Source,
    TriedTriples,
    Triple,
    all_triples,
    as_batch,
    try_triples,
)

Method = Literal["list", "tries"]
LIST_LIMIT = 4_000_000  # triples kept one by one: 48 MB, all triples of up to 289 examples
SHARE_SAMPLE = 1 << 17  # random triples from which a share is estimated
PATIENCE = 8  # a survey is made once draws have wasted an eighth of the work it takes, if it will end in a list
REPEATS = 100  # repeated draws in a row before it is checked whether any other triple is left


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
        self._scores = ScoredTriples(n) if self.total <= LIST_LIMIT else SampledTriples(self._labels)
        self._source = self._first_source()
        self._estimates = np.random.default_rng(rng.integers(1 << 63))
        self._estimate: tuple[int, float] | None = None

    def add(self, labels: Labels) -> None:
        """Learn a feature: the triples it settles are resolved from now on."""
        self._labels.add(labels)
        self._source.add(labels)
        self._scores.add(labels)

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

        Exact up to LIST_LIMIT triples in all; above that the best of many random triples."""
        chosen = self._scores.fewest(k, as_batch(self._retired), self.rng)
        return [tuple(triple) for triple in chosen.T.tolist()]

    def _first_source(self) -> Source:
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

    def _is_worn_out(self, source: Source) -> bool:
        """The tries have cost more than a survey would. Its cost is estimated only if they exceed its least cost, the
        n²/2 visits of the join."""
        if not isinstance(source, TriedTriples) or not source.laborious:
            return False
        waste = source.spent * (PATIENCE if source.unresolved() < LIST_LIMIT else 1)
        return waste * VISITS > self.n**2 // 2 and waste > self._survey_work()

    def _surveyed_source(self) -> Source:
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
