"""Who answers a run: one oracle or several, each behind the cache and the books of the run.

Answers are stored and booked under the identity of the oracle that gave them: what a model has answered alone is not
paid for again when people join it."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from twothirds.models.cached import CachedOracle
from twothirds.models.ledger import RunLedger
from twothirds.models.oracle import (
    Answer,
    AnswersPending,
    Compare,
    Family,
    Feature,
    Label,
    Oracle,
    OracleIdentity,
    Question,
    Unlike,
    Verdict,
    digest_of,
)
from twothirds.sources import Example

KNOWN = "known"  # the note of a label that was known before
KnownLabelsOf = Mapping[tuple[Feature, str], tuple[bool, str]]  # by feature and digest of the example: value and source
Cell = tuple[str, str, str]  # a feature (name and definition) and an example


class Layer(Protocol):
    def ask(self, questions: Iterable[Question]) -> Iterator[Answer]:
        """One answer per question, each as soon as it is known; raises as CachedOracle.ask does."""
        ...


class Asks(Layer, Protocol):
    """A cached oracle or a crowd."""

    @property
    def labeller(self) -> CachedOracle | None:
        """Who alone gives the labels, so that those that are stored or computed can be counted without asking."""
        ...


@dataclass(frozen=True, slots=True)
class Review:
    """When people are asked besides the labeller; None: never."""

    doubtful: float | None = None  # its votes disagree, or its probability is within this of one half
    check: float | None = None  # a share of its labels, chosen by their content and a secret


@dataclass
class ReviewCounts:
    """Counts of the labels that people were asked about."""

    escalated: int = 0
    checked: int = 0
    agreed: int = 0  # of those that were checked


@dataclass(frozen=True)
class Members:
    """The oracles of a run, before there are books: who compares, who labels, and people who are asked besides."""

    comparisons: Oracle
    labels: Oracle
    people: Oracle | None = None
    review: Review = Review()

    @classmethod
    def alone(cls, oracle: Oracle) -> Members:
        return cls(oracle, oracle)

    @property
    def oracles(self) -> list[Oracle]:
        """Each once."""
        listed = [oracle for oracle in (self.comparisons, self.labels, self.people) if oracle is not None]
        return list({id(oracle): oracle for oracle in listed}.values())

    @cached_property
    def identity(self) -> OracleIdentity:
        if len(self.oracles) == 1:
            return self.comparisons.identity
        everyone = [self.comparisons, self.labels, *([self.people] if self.people else [])]
        return OracleIdentity(
            kind="mixed",
            model="+".join(str(oracle.identity) for oracle in everyone),
            parameters=(
                ("elicits", self.comparisons.identity.to_json()),
                ("labels", self.labels.identity.to_json()),
                ("people", self.people.identity.to_json() if self.people else None),
                ("escalate", self.review.doubtful),
                ("spot_check", self.review.check),
            ),
        )

    def prepare(self, examples: Sequence[Example]) -> Unlike:
        """Raises OracleError where one of them cannot answer about these examples."""
        return sum((oracle.prepare(examples) for oracle in self.oracles), Unlike())


@dataclass(frozen=True)
class Crowd:
    """Comparisons and names go to one, labels to another. `wait` is called with what is pending, and may raise."""

    identity: OracleIdentity
    members: tuple[CachedOracle, ...]
    comparisons: Layer
    labels: Layer
    review: Escalating | None = None
    wait: Callable[[AnswersPending], None] | None = None

    def ask(self, questions: Iterable[Question]) -> Iterator[Answer]:
        if self.wait is None:
            yield from self._routed(questions)
            return
        missing = dict.fromkeys(questions)
        while missing:
            try:
                for answer in self._routed(list(missing)):
                    missing.pop(answer.question, None)
                    yield answer
                return
            except AnswersPending as pending:
                self.wait(pending)

    def _routed(self, questions: Iterable[Question]) -> Iterator[Answer]:
        listed = list(questions)
        named = [question for question in listed if isinstance(question, Compare | Family)]
        others = [question for question in listed if not isinstance(question, Compare | Family)]
        if named:
            yield from self.comparisons.ask(named)
        if others:
            yield from self.labels.ask(others)

    @property
    def ledger(self) -> RunLedger:
        return self.members[0].ledger

    @property
    def labeller(self) -> CachedOracle | None:
        """None where people are asked besides, or some labels are known."""
        return self.labels if isinstance(self.labels, CachedOracle) else None

    def is_by_people(self, label: Label) -> bool:
        """Whether people decided it: they were asked, or only people label."""
        if self.review is not None:
            return self.review.is_by_people(label)
        return len(self.members) > 1 and self.members[-1].traits.profile == "people"


class Escalating:
    """Labels of one oracle, of which people decide the doubtful ones and check others: their answers replace all votes
    on a label."""

    def __init__(self, labels: CachedOracle, people: CachedOracle, review: Review, secret: str) -> None:
        """`secret` decides which labels are checked: whoever writes the data must not know it."""
        self._labels = labels
        self._people = people
        self._review = review
        self._secret = secret.encode()
        self.counts = ReviewCounts()
        self._by_people: set[Cell] = set()  # labels that people decide
        self._counted: set[Question] = set()
        self._checked: dict[Question, Answer] = {}  # what the labeller said where people only check

    def ask(self, questions: Iterable[Question]) -> Iterator[Answer]:
        listed = list(questions)
        labels = [question for question in listed if isinstance(question, Label)]
        if others := [question for question in listed if not isinstance(question, Label)]:
            yield from self._labels.ask(others)
        by_cell: dict[Cell, list[Answer]] = {}
        for answer in self._labels.ask([label for label in labels if _cell(label) not in self._by_people]):
            by_cell.setdefault(_cell(answer.question), []).append(answer)
        for cell, answers in by_cell.items():
            doubtful = self._is_doubtful(answers)
            if not (doubtful or self._is_checked(cell)):
                yield from answers
                continue
            self._by_people.add(cell)
            if doubtful:
                self.counts.escalated += 1
            else:
                self._checked.update((answer.question, answer) for answer in answers)
        escalated = [label for label in labels if _cell(label) in self._by_people]
        for answer in self._people.ask(escalated) if escalated else ():
            if answer.question in self._checked and answer.question not in self._counted:
                self._counted.add(answer.question)
                self.counts.checked += 1
                self.counts.agreed += self._checked[answer.question].verdict is answer.verdict
            yield answer

    def is_by_people(self, label: Label) -> bool:
        return _cell(label) in self._by_people or self._labels.traits.profile == "people"

    def _is_doubtful(self, answers: Sequence[Answer]) -> bool:
        margin = self._review.doubtful
        if margin is None:
            return False
        verdicts = {answer.verdict for answer in answers}
        near = any(answer.probability is not None and abs(answer.probability - 0.5) <= margin for answer in answers)
        return near or len(verdicts) > 1 or not verdicts <= {Verdict.YES, Verdict.NO}

    def _is_checked(self, cell: Cell) -> bool:
        share = self._review.check
        if share is None:
            return False
        drawn = hmac.digest(self._secret, digest_of(cell).encode(), "sha256")
        return int.from_bytes(drawn[:4]) < share * 2**32


class KnownLabels:
    """Labels that are known before anybody is asked; all else is asked."""

    def __init__(self, labels: Layer, known: KnownLabelsOf) -> None:
        self._labels = labels
        self._known = known

    def ask(self, questions: Iterable[Question]) -> Iterator[Answer]:
        asked = list[Question]()
        for question in questions:
            label = question if isinstance(question, Label) else None
            known = self._known.get((label.feature, label.example.digest)) if label else None
            if known is None:
                asked.append(question)
            else:
                has, source = known
                yield Answer(question, Verdict.YES if has else Verdict.NO, source, note=KNOWN)
        if asked:
            yield from self._labels.ask(asked)


def build_crowd(
    members: Members,
    ledger: RunLedger,
    known: KnownLabelsOf | None = None,
    wait: Callable[[AnswersPending], None] | None = None,
) -> Crowd:
    cached = {str(oracle.identity.to_json()): CachedOracle(oracle, ledger) for oracle in members.oracles}
    comparisons, labeller = (cached[str(one.identity.to_json())] for one in (members.comparisons, members.labels))
    labels: Layer = labeller
    review = None
    if members.people is not None:
        secret = ledger.store.queue.people.secret("spot check") if members.review.check is not None else ""
        people = cached[str(members.people.identity.to_json())]
        labels = review = Escalating(labeller, people, members.review, secret)
    if known:
        labels = KnownLabels(labels, known)
    return Crowd(members.identity, tuple(cached.values()), comparisons, labels, review, wait)


def _cell(question: Question) -> Cell:
    if not isinstance(question, Label):
        raise TypeError(f"only a label is about one example, not {question.kind.value}")
    return question.feature.name, question.feature.definition, question.example.digest
