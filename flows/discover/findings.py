"""What a discovery has found so far, and why it stopped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import ClassVar, Literal

from twothirds.discovery import (
    UNKNOWN,
    Comparison,
    Labels,
    contradicts,
)
from twothirds.flows.events import FeatureLabelled
from twothirds.models import (
    Answer,
    AnswersPending,
    BudgetExhausted,
    Compare,
    Feature,
    Halted,
    Money,
    OracleError,
    OracleLost,
)
from twothirds.reports.run import KNOWN
from twothirds.sources import Example
from twothirds.studio.web import plural


class StopReason(StrEnum):
    QUERIES = "queries"  # as many as were wanted
    BUDGET = "budget"  # the next question might cost more than is left
    UNAVAILABLE = "oracle-unavailable"  # the server is down for good, or the model fails
    TARGET_G = "target-g"
    NONES = "nones"  # so many NONEs in a row
    REPEATS = "repeats"  # so many answers in a row named what is known
    EXHAUSTED = "nothing-unresolved"
    STOPPED = "stopped"  # by a person who watched it


_STOPPED_BY = {BudgetExhausted: StopReason.BUDGET, Halted: StopReason.STOPPED}


@dataclass(frozen=True)
class EarlierTwin:
    """An earlier feature that selects the same examples, or all the others."""

    kind: Literal["same", "complement"]
    name: str

    def __str__(self) -> str:
        return f"{'same as' if self.kind == 'same' else 'complement of'} {self.name}"


def labelled(
    known: KnownFeature | Finding, *, given: str = "", counts: bool, examples: Sequence[Example] = ()
) -> FeatureLabelled:
    """The event that tells of a feature which has its labels."""
    yes, no = int((known.labels == 1).sum()), int((known.labels == 0).sum())
    return FeatureLabelled(
        name=known.feature.name,
        definition=known.feature.definition,
        yes=yes,
        no=no,
        unknown=len(known.labels) - yes - no,
        counts=counts,
        given=given,
        twin=str(known.twin or ""),
        examples=tuple(example.id for example in examples),
    )


@dataclass
class KnownFeature:
    """A feature that was given, with its labels and the votes on them; `by` a person after so many questions."""

    feature: Feature
    labels: Labels
    votes: list[Answer]
    by: str = ""
    after: int = 0
    dropped: str = ""
    vetoed: bool = False

    question = KNOWN
    asked: ClassVar[tuple[int, ...]] = ()
    consistent = True
    twin = None
    repeats = False
    checks: ClassVar[tuple[Answer, ...]] = ()

    def as_event(self, *, counts: bool) -> FeatureLabelled:
        return labelled(self, given=self.by or "at the start", counts=counts)

    @property
    def cost(self) -> Money:
        return sum(vote.own_cost for vote in self.votes)


@dataclass
class Finding:
    """A feature, the question that brought it out, its labels and the votes on them."""

    feature: Feature
    comparison: Comparison
    answer: Answer
    labels: Labels
    votes: list[Answer]
    twin: EarlierTwin | None = None
    dropped: str = ""  # why it was not labelled in full: it was vetoed, or repeats another one; empty if it was
    checks: list[Answer] = field(default_factory=list)  # whether it means what another feature means
    repeats: bool = False  # it does, by words, labels and what the oracle says of the two
    vetoed: bool = False

    by: ClassVar[str] = ""  # no person gave it

    def as_event(self, *, counts: bool) -> FeatureLabelled:
        asked = self.answer.question
        return labelled(self, counts=counts, examples=asked.examples if isinstance(asked, Compare) else ())

    @property
    def cost(self) -> Money:
        votes = (*self.votes, *self.checks)
        return self.answer.cost_of(self.feature) + sum(vote.own_cost for vote in votes)

    @property
    def contradictions(self) -> tuple[int, int]:
        """Labels of the examples asked about, and how many are not what the answer says."""
        shown = next((named.shown for named in self.answer.features if named.feature == self.feature), ())
        labels = [(self.labels[row], place in shown) for place, row in enumerate(self.asked)] if shown else []
        known = [bool((label == 1) != has) for label, has in labels if label != UNKNOWN]
        return len(known), sum(known)

    @property
    def question(self) -> str:
        return self.comparison.kind.value

    @property
    def asked(self) -> tuple[int, ...]:
        """The examples that it was found by."""
        return (*self.comparison.examples, *self.comparison.without)

    @property
    def consistent(self) -> bool:
        """The labels of the examples asked about show what the question asked for; one that is missing contradicts
        nothing. A feature that is not consistent is doubtful, and does not count."""
        comparison = self.comparison
        has, lacks = (self.labels[list(rows)] for rows in (comparison.examples, comparison.without))
        return not contradicts(comparison.kind, has, lacks)


@dataclass
class Progress:
    """What the loop knows after a round; who watches reads it."""

    queries: int = 0
    known_features: list[KnownFeature] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    flags: list[bool] = field(default_factory=list)  # which findings count
    asked: list[tuple[Comparison, Answer]] = field(default_factory=list)
    waiting: int = 0  # features that were named and are not labelled yet
    repeated: int = 0  # answers that named a feature already known
    nones_in_a_row: int = 0
    repeats_in_a_row: int = 0
    g_known: float = 1.0  # by the features given alone
    g_curve: list[float] = field(default_factory=list)
    unresolved: float = 1.0
    stopped: StopReason | None = None
    message: str = ""  # of the error that stopped it, if one did
    notice: str = ""  # why it ended early without an error

    def __str__(self) -> str:
        waiting = f" and {self.waiting} to label" if self.waiting else ""
        repeated = f", {self.repeated} named again" if self.repeated else ""
        return (
            f"{plural(len(self.findings), 'feature')}{waiting}, {self.interesting_distinct} interesting and "
            f"distinct{repeated}, g {self.g:.3f}, unresolved {self.unresolved:.1%}"
        )

    def stop(self, error: OracleError | None) -> None:
        """No budget and no oracle end the discovery; answers that are pending end only this attempt, and are raised."""
        if isinstance(error, AnswersPending):
            raise error
        if error is not None:
            self.stopped = _STOPPED_BY.get(type(error), StopReason.UNAVAILABLE)
            self.message = str(error)

    def raise_if_lost(self, written: Path) -> None:
        """Call it once what was found is written."""
        if self.stopped is StopReason.UNAVAILABLE:
            raise OracleLost.leaving(written, self.message)

    def asked_until(self, finding: Finding) -> int:
        """By how many questions a feature was found."""
        return next(n for n, (_, answer) in enumerate(self.asked, start=1) if answer is finding.answer)

    def drop_repeats(self) -> None:
        """Features that mean what an earlier one means are not paid for beyond the examples that were compared."""
        for finding in self.findings:
            if finding.repeats and not finding.dropped:
                finding.dropped = f"{finding.twin}: means the same, seen on {len(finding.labels)} examples"

    @property
    def contradictions(self) -> tuple[int, int]:
        """Of all findings."""
        counts = [finding.contradictions for finding in self.findings]
        return sum(seen for seen, _ in counts), sum(differing for _, differing in counts)

    @property
    def g(self) -> float:
        return self.g_curve[-1] if self.g_curve else self.g_known

    @property
    def known(self) -> list[KnownFeature | Finding]:
        """All features, those given first."""
        return [*self.known_features, *self.findings]

    @property
    def doubtful(self) -> list[str]:
        """Features whose own question contradicts them."""
        return [finding.feature.name for finding in self.findings if not finding.consistent]

    @property
    def interesting_distinct(self) -> int:
        """Doubtful features do not count."""
        return sum(self.flags)
