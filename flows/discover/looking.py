"""A look before the whole: a new feature is labelled on a few examples first, and in full unless it surely will not
count (`discovery/look.py` has the test)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from discovery import Labels, Look, TooLittle, interesting_and_distinct, judge, looks, order_to_tell
from models import Ballot, Feature, Labelled, OracleError, Panel

Rows = NDArray[np.intp]
CHANCE = 6  # sets the order of the examples apart from other uses of the seed


@dataclass(frozen=True)
class FirstLooks:
    """`label` asks about the examples of some rows of all `n`; its ballots are about those rows."""

    n: int
    first: int
    seed: int
    label: Callable[[list[Feature], Rows], Labelled]

    @classmethod
    def with_label(
        cls, first: int | None, seed: int, panel: Panel, label: Callable[[Panel, list[Feature]], Labelled]
    ) -> FirstLooks | None:
        """None where nothing is looked at first."""
        if not first:
            return None
        return cls(len(panel.examples), first, seed, lambda features, rows: label(panel.part(rows), features))

    def of(self, features: Sequence[Feature], known: Sequence[tuple[str, Labels]], number: int) -> LookedAt:
        """Label features that came up together, after so many questions; `known` are those labelled in full."""
        order = order_to_tell(
            self.n, [labels for _, labels in known], np.random.default_rng([self.seed, CHANCE, number])
        )
        counts = interesting_and_distinct([labels for _, labels in known])
        counting = [one for one, flag in zip(known, counts, strict=True) if flag]
        found = LookedAt([Ballot.empty(feature, self.n) for feature in features])
        open_, seen = list(range(len(features))), 0
        in_full: dict[int, list[int]] = {}  # by the number of examples that were looked at
        for look in looks(self.n, self.first):
            if not self._ask(found, open_, np.sort(order[seen : look.size])):
                return found
            seen = look.size
            done = found.judge(open_, counting, look)
            in_full.setdefault(seen, []).extend(done)
            open_ = [place for place in open_ if place not in done and place not in found.dropped]
        in_full.setdefault(seen, []).extend(open_)
        for size, places in in_full.items():
            if places and not self._ask(found, places, np.sort(order[size:])):
                break
        return found

    def _ask(self, found: LookedAt, places: Sequence[int], rows: Rows) -> bool:
        """False if something ended it."""
        if not places:
            return True
        labelled = self.label([found.ballots[place].feature for place in places], rows)
        for place, part in zip(places, labelled.ballots, strict=True):
            found.ballots[place].add(rows, part)
        found.stopped = labelled.stopped
        return labelled.stopped is None


@dataclass
class LookedAt:
    ballots: list[Ballot]  # in the order of the features
    dropped: dict[int, str] = field(default_factory=dict)  # by place: why it was not labelled in full
    stopped: OracleError | None = None

    def judge(self, places: Sequence[int], counting: Sequence[tuple[str, Labels]], look: Look) -> list[int]:
        """Which need no further look; those that are too little are dropped. Of two new ones that are the same, which
        were seen on the same examples, the later one is dropped."""
        done, compared = [], list(counting)
        for place in places:
            ballot = self.ballots[place]
            verdict = judge(ballot.labels, [labels for _, labels in compared], look)
            if isinstance(verdict, TooLittle):
                self.dropped[place] = verdict.reason("" if verdict.other is None else compared[verdict.other][0])
                continue
            compared.append((ballot.feature.name, ballot.labels))
            if verdict:
                done.append(place)
        return done
