"""The adaptive loop: propose, ask, label, learn, until there is a reason to stop (Algorithm 1 of the paper).

Plain Python: `compare` and `label` are arguments, so the flow passes Prefect tasks and a test passes functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from math import ceil
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from discovery import (
    NOTHING_SEEN,
    UNKNOWN,
    Closeness,
    Comparison,
    Kind,
    LabelNoise,
    Labels,
    Strategy,
    differs_clearly,
    find_twin,
    g,
    interesting_and_distinct,
    same_name,
)
from flows.discover.looking import FirstLooks, LabelledFeature, LookedAt, Sameness
from models import (
    Answer,
    AnswersPending,
    Ballot,
    BudgetExhausted,
    Compare,
    Elicited,
    Feature,
    Labelled,
    Money,
    OracleError,
    OracleLost,
    OracleUnavailable,
    Verdict,
    exemplars_of,
)
from reports.run import GIVEN
from sources import Example


class StopReason(StrEnum):
    QUERIES = "queries"  # as many as were wanted
    BUDGET = "budget"  # the next question might cost more than is left
    UNAVAILABLE = "oracle-unavailable"  # the server is down for good, or the model fails
    TARGET_G = "target-g"
    NONES = "nones"  # so many NONEs in a row
    EXHAUSTED = "nothing-unresolved"


@dataclass(frozen=True)
class Limits:
    queries: int
    batch: int = 1
    target_g: float | None = None
    nones: int | None = None
    voters: int = 1  # who are asked each comparison; each answer is a query
    per_question: int = 1  # features that an answer may hold
    exemplars: int = 0  # that models are shown with a feature when they label


@dataclass(frozen=True)
class EarlierTwin:
    """An earlier feature that selects the same examples, or all the others."""

    kind: Literal["same", "complement"]
    name: str

    def __str__(self) -> str:
        return f"{'same as' if self.kind == 'same' else 'complement of'} {self.name}"


@dataclass
class KnownFeature:
    """A feature that was given, and the votes on every example."""

    ballot: Ballot

    question = GIVEN
    asked: ClassVar[tuple[int, ...]] = ()
    consistent = True
    twin = None
    dropped = ""
    repeats = False
    checks: ClassVar[tuple[Answer, ...]] = ()

    @property
    def feature(self) -> Feature:
        return self.ballot.feature

    @property
    def labels(self) -> Labels:
        return self.ballot.labels

    @property
    def cost(self) -> Money:
        return sum(vote.cost for vote in self.ballot.answers)


@dataclass
class Finding:
    """A feature, the question that brought it out, and the votes on every example."""

    feature: Feature
    comparison: Comparison
    answer: Answer
    ballot: Ballot
    twin: EarlierTwin | None = None
    dropped: str = ""  # why it was not labelled in full after a look; empty if it was
    checks: list[Answer] = field(default_factory=list)  # whether it means what another feature means
    repeats: bool = False  # it does, by words, labels and what the oracle says of the two

    @cached_property
    def labels(self) -> Labels:
        """The ballot is complete."""
        return self.ballot.labels

    @property
    def cost(self) -> Money:
        return self.answer.cost_of(self.feature) + sum(vote.cost for vote in (*self.ballot.answers, *self.checks))

    @property
    def contradictions(self) -> LabelNoise:
        """Of the examples asked about, those whose label is not what the answer says of them."""
        shown = next((one.shown for one in self.answer.features if one.feature == self.feature), ())
        asked = [*self.comparison.examples, *self.comparison.without]
        has = np.isin(np.arange(len(asked)), shown)
        known = self.labels[asked] != UNKNOWN
        if not shown or not known.any():
            return NOTHING_SEEN
        return LabelNoise(int(known.sum()), int(((self.labels[asked] == 1) != has)[known].sum()))

    @property
    def question(self) -> str:
        return self.comparison.kind.value

    @property
    def asked(self) -> tuple[int, ...]:
        """The examples that it was found by."""
        return (*self.comparison.examples, *self.comparison.without)

    @property
    def consistent(self) -> bool:
        """The labels of the examples asked about show what the question asked for, as far as they are known where the
        feature was only looked at."""
        if self.dropped and (self.labels[list(self.asked)] == UNKNOWN).any():
            return True
        if self.comparison.kind is Kind.GROUPS:
            left, right = (self.labels[list(side)] == 1 for side in (self.comparison.examples, self.comparison.without))
            return bool(differs_clearly(left, right))
        ones = int((self.labels[list(self.comparison.examples)] == 1).sum())
        none_without = not (self.labels[list(self.comparison.without)] == 1).any()
        return none_without and ones == _ONES.get(self.comparison.kind, len(self.comparison.examples))


_ONES = {Kind.TWO_OF_THREE: 2, Kind.PAIR: 1, Kind.ONE_OF_THREE: 1}


@dataclass
class Progress:
    """What the loop knows after a round; the display and the artifacts read it."""

    queries: int = 0
    given: list[KnownFeature] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    flags: list[bool] = field(default_factory=list)  # interesting and distinct, per finding
    asked: list[tuple[Comparison, Answer]] = field(default_factory=list)
    repeated: int = 0  # answers that named a feature already known
    nones_in_a_row: int = 0
    g_given: float = 1.0  # by the features given alone
    g_curve: list[float] = field(default_factory=list)
    unresolved: float = 1.0
    stopped: StopReason | None = None
    message: str = ""  # of the error that stopped it, if one did

    def stop(self, error: OracleError | None) -> None:
        """No budget and no oracle end the discovery; answers that are pending end only this attempt, and are raised."""
        if isinstance(error, AnswersPending):
            raise error
        if error is not None:
            self.stopped = StopReason.BUDGET if isinstance(error, BudgetExhausted) else StopReason.UNAVAILABLE
            self.message = str(error)

    def raise_if_lost(self, written: Path) -> None:
        """Call it once what was found is written."""
        if self.stopped is StopReason.UNAVAILABLE:
            raise OracleLost.leaving(written, self.message)

    def asked_until(self, finding: Finding) -> int:
        """By how many questions a feature was found."""
        return next(n for n, (_, answer) in enumerate(self.asked, start=1) if answer is finding.answer)

    @property
    def contradictions(self) -> LabelNoise:
        return sum((one.contradictions for one in self.findings), NOTHING_SEEN)

    @property
    def g(self) -> float:
        return self.g_curve[-1] if self.g_curve else self.g_given

    @property
    def known(self) -> list[KnownFeature | Finding]:
        """All features, those given first."""
        return [*self.given, *self.findings]

    @property
    def interesting_distinct(self) -> int:
        return sum(self.flags)


class Loop:
    def __init__(
        self,
        strategy: Strategy,
        examples: Sequence[Example],
        limits: Limits,
        compare: Callable[[list[Compare]], Elicited],
        label: Callable[[list[Feature]], Labelled],
        closeness: Closeness | None = None,
        looking: FirstLooks | None = None,
        sameness: Sameness | None = None,
        *,
        given: Sequence[Feature] = (),
        exclude: Sequence[str] = (),
    ) -> None:
        self._strategy = strategy
        self._examples = examples
        self._limits = limits
        self._compare = compare
        self._label = label
        self._closeness = closeness
        self._looking = looking
        self._given = list(given)
        self._exclude = tuple(exclude)
        self._sameness = sameness
        self._in_full: list[LabelledFeature] = []  # what new features may repeat
        self.progress = Progress()

    def run(self, on_round: Callable[[Progress, list[Finding]], None] = lambda *_: None) -> Progress:
        progress = self.progress
        self._start()
        while (reason := progress.stopped or self._reason_to_stop()) is None:
            left, voters = self._limits.queries - progress.queries, self._limits.voters
            comparisons = self._strategy.next_questions(min(self._limits.batch, ceil(left / voters)))
            if not comparisons:
                reason = StopReason.EXHAUSTED
                break
            on_round(progress, self._round([(each, voter) for each in comparisons for voter in range(voters)][:left]))
        progress.stopped = reason
        progress.unresolved = self._strategy.unresolved
        return progress

    def _reason_to_stop(self) -> StopReason | None:
        progress, limits = self.progress, self._limits
        if progress.queries >= limits.queries:
            return StopReason.QUERIES
        if limits.target_g is not None and progress.g <= limits.target_g:
            return StopReason.TARGET_G
        if limits.nones is not None and progress.nones_in_a_row >= limits.nones:
            return StopReason.NONES
        return None

    def _start(self) -> None:
        """Label the features that are given: the first question is about what they leave open."""
        if not self._given:
            return
        labelled = self._label(self._given)
        if isinstance(labelled.stopped, OracleUnavailable) and not any(one.cast.any() for one in labelled.ballots):
            raise labelled.stopped
        self.progress.stop(labelled.stopped)
        for ballot in labelled.ballots:
            self.progress.given.append(KnownFeature(ballot))
            self._remember(ballot)
            self._strategy.know(ballot.feature.name, ballot.labels)
        self.progress.g_given = g(np.stack([one.labels for one in self.progress.given]), len(self._examples))
        self.progress.unresolved = self._strategy.unresolved

    def _round(self, asked: list[tuple[Comparison, int]]) -> list[Finding]:
        """Ask, label what is new, and learn in the order of the questions, whatever order the answers came in."""
        elicited = self._compare([self._question(comparison, voter) for comparison, voter in asked])
        if isinstance(elicited.stopped, OracleUnavailable) and not self.progress.queries and not any(elicited.answers):
            raise elicited.stopped  # it never answered: nothing was found that could be written
        self.progress.stop(elicited.stopped)
        answered = [(c, a) for (c, _), a in zip(asked, elicited.answers, strict=True) if a is not None]
        labelled = self._labelled(self._unknown(feature for _, answer in answered for feature in self._named(answer)))
        self.progress.stop(labelled.stopped)
        found = [finding for c, a in answered for finding in self._learn(c, a, labelled)]
        self.progress.unresolved = self._strategy.unresolved
        return found

    def _labelled(self, new: list[Feature]) -> LookedAt:
        if not new:
            return LookedAt([])
        if self._looking is None:
            labelled = self._label(new)
            found = LookedAt(labelled.ballots, stopped=labelled.stopped)
        else:
            known = [(one.feature.name, one.labels) for one in self.progress.known if not one.dropped]
            found = self._looking.of(new, known, self.progress.queries, self._same)
        if found.stopped is None:
            places = [place for place in range(len(new)) if place not in found.dropped]
            repeated, found.stopped = self._same([found.ballots[place] for place in places])
            found.repeats |= {places[at]: other for at, other in repeated.items()}
        return found

    def _same(self, ballots: list[Ballot]) -> tuple[dict[int, Feature], OracleError | None]:
        if self._sameness is None or not ballots:
            return {}, None
        new = [LabelledFeature.of(ballot, self._sameness.votes) for ballot in ballots]
        return self._sameness.among(new, self._in_full, self.progress.contradictions)

    def _remember(self, ballot: Ballot) -> None:
        if self._sameness is not None:
            self._in_full.append(LabelledFeature.of(ballot, self._sameness.votes))

    def _question(self, comparison: Comparison, voter: int) -> Compare:
        known = tuple(one.feature.name for one in self.progress.known) if comparison.other_than_known else ()
        return Compare(
            comparison.kind,
            tuple(self._examples[row] for row in comparison.examples),
            tuple(self._examples[row] for row in comparison.without),
            known,
            voter,
            self._limits.per_question,
            self._exclude,
        )

    def _named(self, answer: Answer) -> Iterator[Feature]:
        """The features of an answer, each with the examples that it was named for."""
        for one in answer.features:
            asked = answer.question
            shown = exemplars_of(asked, one.shown) if isinstance(asked, Compare) else ()
            yield replace(one.feature, exemplars=shown, models_see=self._limits.exemplars)

    def _unknown(self, named: Iterable[Feature]) -> list[Feature]:
        """The features that are not known yet, each once."""
        new: list[Feature] = []
        for feature in named:
            if self._known(feature.name) or self._is_excluded(feature.name):
                continue
            if not any(same_name(feature.name, other.name) for other in new):
                new.append(feature)
        return new

    def _known(self, name: str) -> KnownFeature | Finding | None:
        """The feature of that name, however it is worded: it is not labelled again."""
        return next((one for one in self.progress.known if same_name(one.feature.name, name)), None)

    def _is_excluded(self, name: str) -> bool:
        return any(same_name(name, other) for other in self._exclude)

    def _learn(self, comparison: Comparison, answer: Answer, labelled: LookedAt) -> list[Finding]:
        """Those of the answer's features that are new."""
        progress = self.progress
        progress.queries += 1
        progress.asked.append((comparison, answer))
        progress.nones_in_a_row = progress.nones_in_a_row + 1 if answer.verdict is Verdict.NONE else 0
        named: dict[str, KnownFeature | Finding] = {}
        new: list[Finding] = []
        for feature in (one.feature for one in answer.features):
            finding = self._known(feature.name)
            excluded = finding is None and self._is_excluded(feature.name)
            progress.repeated += finding is not None or excluded
            if excluded:
                continue
            if finding is None:
                new.append(finding := self._finding(comparison, answer, feature, labelled))
                progress.findings.append(new[-1])
                if not (new[-1].dropped or new[-1].repeats):
                    self._remember(new[-1].ballot)
            learned = self._earlier(finding) or finding
            named[learned.feature.name] = learned
        # no feature is NONE, refused or unreadable: this very question is settled, no other
        self._strategy.learn(comparison, [*named], [finding.labels for finding in named.values()])
        if new:
            matrix = np.stack([one.labels for one in progress.known])
            repeats = [one.repeats for one in progress.known]
            progress.flags = interesting_and_distinct(matrix, repeats=repeats)[len(progress.given) :]
            progress.g_curve.append(g(matrix, len(self._examples)))
        else:
            progress.g_curve.append(progress.g)
        return new

    def _finding(self, comparison: Comparison, answer: Answer, feature: Feature, labelled: LookedAt) -> Finding:
        same = (place for place, one in enumerate(labelled.ballots) if same_name(one.feature.name, feature.name))
        place = next(same)
        ballot = labelled.ballots[place]
        names = [one.feature.name for one in self.progress.known]
        labels = [one.labels for one in self.progress.known]
        checks = self._sameness.answers.pop(ballot.feature, []) if self._sameness else []
        finding = Finding(ballot.feature, comparison, answer, ballot, None, labelled.dropped.get(place, ""), checks)
        if (repeated := labelled.repeats.get(place)) is not None:
            finding.twin, finding.repeats = EarlierTwin("same", repeated.name), True
        elif twin := find_twin(feature.name, ballot.labels, names, labels, self._closeness):
            other = self.progress.known[twin.other].feature
            if not (twin.kind == "same" and self._sameness and self._sameness.denied(feature, other)):
                finding.twin = EarlierTwin(twin.kind, other.name)
        return finding

    def _earlier(self, finding: KnownFeature | Finding) -> KnownFeature | Finding | None:
        """The feature that means the same, where one does."""
        return self._known(finding.twin.name) if finding.repeats and finding.twin else None
