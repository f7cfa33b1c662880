"""The adaptive loop with what people can change of it between two questions. The strategy knows nothing of that: a
feature that a person gives, or that a person's question has brought, is one that it learns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from twothirds.discovery import Comparison, Kind, same_name
from twothirds.flows.discover.findings import Finding, KnownFeature, StopReason
from twothirds.flows.discover.loop import Loop
from twothirds.models import Feature

Known = KnownFeature | Finding


@dataclass(frozen=True)
class Effect:
    """What a command has done: the features that the results no longer have. `rejected`: why it has done nothing."""

    gone: tuple[str, ...] = ()
    rejected: str = ""


class _InVain(Exception):
    """The message says why."""


class SteeredLoop(Loop):
    """Takes what `Loop` takes, by name."""

    def __init__(self, **loop: Any) -> None:
        super().__init__(**loop)
        self._vetoed: set[str] = set()
        self._wanted: list[Comparison] = []
        self._of_people: list[Comparison] = []  # their questions: another one like it may be the strategy's

    def stop(self) -> Effect:
        self.progress.stopped = StopReason.STOPPED
        return Effect()

    def veto(self, name: str, by: str) -> Effect:
        """It is not labelled further, and not named again; one that waits for its labels is not labelled at all."""
        if self.is_waiting(name):
            self._exclude += (name,)
            self.progress.waiting = len(self._unlabelled())
            return Effect()
        known = self._find(name)
        self._exclude += (known.feature.name,)
        self._vetoed.add(known.feature.name)
        known.dropped = known.dropped or f"vetoed by {by}"
        return Effect(gone=(known.feature.name,))

    def add(self, name: str, definition: str, by: str) -> Effect:
        """Labelled in full, whatever it may turn out to be: a person wants it."""
        self._check_free(name)
        feature = Feature(name, definition)
        votes = self._label([feature])
        self.progress.stop(votes.stopped)
        added = KnownFeature(feature, votes.labels[0], votes.answers_on(feature), by, self.progress.queries)
        self.progress.known_features.append(added)
        self._remember(added)
        self._strategy.know(name, added.labels)
        self.progress.unresolved = self._strategy.unresolved
        self._count()
        return Effect()

    def ask(self, ids: Sequence[str]) -> Effect:
        """Ask about these next, for a feature other than the known ones."""
        place = {example.id: row for row, example in enumerate(self._examples)}
        missing = next((id_ for id_ in ids if id_ not in place), None)
        if missing is not None:
            raise _InVain(f"{missing} is not among the examples that are compared")
        self._wanted.append(Comparison(Kind.TWO_OF_THREE, tuple(place[id_] for id_ in ids), other_than_known=True))
        return Effect()

    def can_ask(self) -> bool:
        """Whether a question is left for one more command."""
        waiting = self._limits.voters * len(self._wanted)
        return self.progress.stopped is None and self.progress.queries + waiting < self._limits.queries

    def is_waiting(self, name: str) -> bool:
        """Whether it was named and is not labelled yet."""
        return any(same_name(name, feature.name) for feature in self._unlabelled())

    def tried(self, do: Callable[[], Effect]) -> Effect:
        try:
            return do()
        except _InVain as reason:
            return Effect(rejected=str(reason))

    def _find(self, name: str) -> Known:
        for known in self.progress.known:
            if known.feature.name not in self._vetoed and " ".join(known.feature.name.split()) == name:
                return known
        raise _InVain(f"there is no feature {name} any more")

    def _check_free(self, name: str) -> None:
        if (known := self._known(name)) is not None:
            raise _InVain(f"there is a feature {known.feature.name} already")
        if self.is_waiting(name):
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
                self.progress.g_known = self._g()

    def _reason_to_stop(self) -> StopReason | None:
        reason = super()._reason_to_stop()
        return None if self._wanted and reason is not StopReason.QUERIES else reason

    def _next_question(self) -> Comparison | None:
        if not self._wanted:
            return super()._next_question()
        self._of_people.append(self._wanted.pop(0))
        return self._of_people[-1]

    def _hear(self, comparison: Comparison, *, full: bool) -> None:
        if not any(comparison is asked for asked in self._of_people):
            super()._hear(comparison, full=full)

    def _tell_strategy(self, comparison: Comparison, named: dict[str, Known]) -> None:
        if not any(comparison is asked for asked in self._of_people):
            super()._tell_strategy(comparison, named)
            return
        for name, known in named.items():
            self._strategy.know(name, known.labels)
