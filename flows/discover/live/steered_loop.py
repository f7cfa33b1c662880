"""The adaptive loop with what people can change of it between two questions. The strategy knows nothing of that: a
feature that a person gives, or that a person's question has brought, is one that it learns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from discovery import Comparison, Kind, same_name
from flows.discover.findings import EarlierTwin, Finding, KnownFeature, StopReason
from flows.discover.loop import Loop
from models import Ballot, Compare, Feature, Labelled, Money
from reports.curation import Votes, merged_definition

Known = KnownFeature | Finding
LabelRows = Callable[[list[Feature], Sequence[int]], Labelled]


@dataclass(frozen=True)
class Effect:
    """What a wish has done: names that are no more, the name that one has now, and the change of the results that
    follows from it. `in_vain`: why it has done nothing."""

    gone: tuple[str, ...] = ()
    now: str = ""
    in_vain: str = ""
    action: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    votes: dict[str, dict[str, Votes]] = field(default_factory=dict)  # that the change has made necessary
    cost: Money = 0  # of these
    complete: bool = True  # all of these have come


class _InVain(Exception):
    """The message says why."""


class SteeredLoop(Loop):
    """`label_rows` labels some of the examples."""

    def __init__(self, *about: Any, label_rows: LabelRows, **more: Any) -> None:
        super().__init__(*about, **more)
        self._label_rows = label_rows
        self._called: dict[str, str] = {}  # by the name under which it was found
        self._gone: set[str] = set()  # vetoed or merged into another, by the name under which it was found
        self._wanted: list[Comparison] = []
        self._of_people: list[Comparison] = []  # their questions: another one like it may be the strategy's
        self._about = ""

    def stop(self) -> Effect:
        self.progress.stopped = StopReason.STOPPED
        return Effect()

    def veto(self, name: str, by: str) -> Effect:
        """It is not labelled further, and not named again."""
        one = self._find(name)
        called = self._name_of(one)
        self._exclude += tuple(dict.fromkeys((one.feature.name, called)))
        self._gone.add(one.feature.name)
        one.dropped = one.dropped or f"vetoed by {by}"
        return Effect((called,), "", "", "drop", {"names": [called]})

    def rename(self, name: str, to: str) -> Effect:
        one = self._find(name)
        called = self._name_of(one)
        self._check_free(to, one)
        self._called[one.feature.name] = to
        return Effect((called,), to, "", "rename", {"name": called, "to": to})

    def merge(self, names: Sequence[str], into: str) -> Effect:
        """Where their labels contradict each other the oracle is asked, for what they mean together; the others are
        not labelled further."""
        merging = [self._find(name) for name in names]
        called = [self._name_of(one) for one in merging]
        if len(set(called)) < len(called):
            raise _InVain(f"{called[0]} was named twice")
        into = into or called[0]
        base = merging[called.index(into)] if into in called else merging[0]
        if into not in called:
            self._check_free(into, base)
        others = [name for name in called if name != into]
        merged = Feature(into, merged_definition(base.feature.definition, others))
        labels = np.stack([one.labels for one in merging])
        rows = np.flatnonzero((labels == 1).any(axis=0) & (labels == 0).any(axis=0)).tolist()
        labelled = self._label_rows([merged], rows) if rows else Labelled([Ballot.empty(merged, 0)])
        self.progress.stop(labelled.stopped)
        votes = {into: labelled.ballots[0].votes_by([self._examples[row].id for row in rows])}
        cost = sum(answer.cost for answer in labelled.ballots[0].answers)
        self._called[base.feature.name] = into
        for one in merging:
            if one is not base:
                self._gone.add(one.feature.name)
                if isinstance(one, Finding):
                    one.twin, one.repeats = EarlierTwin("same", base.feature.name), True
        self._count()
        change = ("merge", {"names": called, "into": into})
        return Effect(tuple(called), into, "", *change, votes, cost, labelled.stopped is None)

    def add(self, name: str, definition: str, by: str) -> Effect:
        """Labelled in full, whatever it may turn out to be: a person wants it."""
        self._check_free(name)
        labelled = self._label([Feature(name, definition)])
        self.progress.stop(labelled.stopped)
        ballot: Ballot = labelled.ballots[0]
        self.progress.given.append(KnownFeature(ballot, by, self.progress.queries))
        self._remember(ballot)
        self._strategy.know(name, ballot.labels)
        self.progress.unresolved = self._strategy.unresolved
        self._count()
        return Effect()

    def ask(self, ids: Sequence[str]) -> Effect:
        """Ask about these next, for a feature other than the known ones."""
        place = {example.id: row for row, example in enumerate(self._examples)}
        missing = next((one for one in ids if one not in place), None)
        if missing is not None:
            raise _InVain(f"{missing} is not among the examples that are compared")
        self._wanted.append(Comparison(Kind.TWO_OF_THREE, tuple(place[one] for one in ids), other_than_known=True))
        return Effect()

    def tell(self, about: str) -> Effect:
        self._about = about
        return Effect()

    def can_ask(self) -> bool:
        """Whether a question is left for one more wish."""
        waiting = self._limits.voters * len(self._wanted)
        return self.progress.stopped is None and self.progress.queries + waiting < self._limits.queries

    def are_waiting(self, names: Sequence[str]) -> bool:
        """Whether one of these was named and is not labelled yet."""
        return any(same_name(name, one.name) for one in self._unlabelled() for name in names)

    def tried(self, do: Callable[[], Effect]) -> Effect:
        try:
            return do()
        except _InVain as reason:
            return Effect(in_vain=str(reason))

    def _find(self, name: str) -> Known:
        for one in self.progress.known:
            if one.feature.name not in self._gone and " ".join(self._name_of(one).split()) == name:
                return one
        raise _InVain(f"there is no feature {name} any more")

    def _check_free(self, name: str, but: Known | None = None) -> None:
        for one in self.progress.known:
            words = {one.feature.name, self._name_of(one)}
            if one is not but and any(same_name(name, word) for word in words):
                raise _InVain(f"there is a feature {self._name_of(one)} already")
        if self.are_waiting([name]):
            raise _InVain(f"there is a feature {name} already")
        if self._is_excluded(name):
            raise _InVain(f"{name} is not wanted: it was vetoed or excluded")

    def _count(self) -> None:
        """What is interesting and distinct, and g, after a change between two questions."""
        if self.progress.known:
            self._recount()
            if self.progress.g_curve:
                self.progress.g_curve[-1] = self._g()
            else:
                self.progress.g_given = self._g()

    def _name_of(self, one: Known) -> str:
        return self._called.get(one.feature.name, one.feature.name)

    def _known(self, name: str) -> Known | None:
        found = super()._known(name)
        if found is None:
            renamed = (one for one in self.progress.known if one.feature.name in self._called)
            found = next((one for one in renamed if same_name(self._name_of(one), name)), None)
        return found

    def _reason_to_stop(self) -> StopReason | None:
        reason = super()._reason_to_stop()
        return None if self._wanted and reason is not StopReason.QUERIES else reason

    def _next_questions(self, k: int) -> list[Comparison]:
        if not self._wanted:
            return super()._next_questions(k)
        wanted = self._wanted.pop(0)
        self._of_people.append(wanted)
        return [wanted]

    def _question(self, comparison: Comparison, voter: int, waiting: Sequence[str] = ()) -> Compare:
        return replace(super()._question(comparison, voter, waiting), about=self._about)

    def _tell_strategy(self, comparison: Comparison, named: dict[str, Known]) -> None:
        if not any(comparison is one for one in self._of_people):
            super()._tell_strategy(comparison, named)
            return
        for name, one in named.items():
            self._strategy.know(name, one.labels)
