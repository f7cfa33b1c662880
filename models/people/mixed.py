"""A mixed crowd: one oracle elicits, another labels, and people are asked about doubtful labels.

Answers are stored and booked under the identity of each member: what a model has answered alone is not paid again."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from twothirds.models.cached import CachedOracle
from twothirds.models.ledger import RunLedger
from twothirds.models.oracle import (
    Answer,
    Choose,
    Compare,
    Family,
    Label,
    Money,
    Oracle,
    OracleIdentity,
    Question,
    Verdict,
    Why,
    check_ahead,
    connect,
    digest_of,
    rows_save,
)
from twothirds.sources import Example

Cell = tuple[str, str, str]  # a feature (name and definition) and an example


@dataclass(frozen=True, slots=True)
class Mixture:
    """When people are asked besides the labeller; None: never."""

    escalate: float | None = None  # its votes disagree, or its probability is within this of one half
    spot_check: float | None = None  # a share of its labels, chosen by their content and a secret


@dataclass
class PeopleAsked:
    """Counts of the labels that people were asked about."""

    escalated: int = 0
    checked: int = 0
    agreed: int = 0  # of those that were checked


class MixedCrowd:
    """People's answers replace the labeller's, for all votes on a label as soon as one of them is doubtful."""

    def __init__(self, elicits: Oracle, labels: Oracle, people: Oracle | None, mixture: Mixture) -> None:
        self.elicits = elicits
        self.labels = labels
        self.people = people
        self.mixture = mixture
        self.asked = PeopleAsked()
        self._secret = ""
        self._by_people: set[Cell] = set()  # labels that people decide
        self._counted: set[Question] = set()
        self._checked: dict[Question, Answer] = {}  # what the labeller said where people only check
        self.width = labels.width

    def __repr__(self) -> str:
        return "mixed crowd"

    @property
    def members(self) -> list[Oracle]:
        return [member for member in (self.elicits, self.labels, self.people) if member is not None]

    @property
    def rows_save(self) -> bool:
        return rows_save(self.labels)

    def connect(self) -> None:
        for member in self.members:
            connect(member)

    def check(self, examples: Sequence[Example]) -> None:
        for member in self.members:
            check_ahead(member, examples)

    @cached_property
    def identity(self) -> OracleIdentity:
        return OracleIdentity(
            kind="mixed",
            model="+".join(str(member.identity) for member in self.members),
            parameters=(
                ("elicits", self.elicits.identity.to_json()),
                ("labels", self.labels.identity.to_json()),
                ("people", self.people.identity.to_json() if self.people else None),
                ("escalate", self.mixture.escalate),
                ("spot_check", self.mixture.spot_check),
            ),
        )

    def estimate(self, questions: Sequence[Question]) -> list[Money]:
        """An upper bound: people may be asked about every label."""
        naming = iter(self.elicits.estimate([question for question in questions if _names(question)]))
        labelling = iter(self.labels.estimate([question for question in questions if not _names(question)]))
        labels = [question for question in questions if isinstance(question, Label)]
        by_people = iter(self.people.estimate(labels) if self.people else [0] * len(labels))
        return [
            next(naming)
            if _names(question)
            else next(labelling) + (next(by_people) if isinstance(question, Label) else 0)
            for question in questions
        ]

    def ask(self, questions: Iterable[Question]) -> Iterator[Answer]:
        listed = list(questions)
        named = [question for question in listed if _names(question)]
        alone = [question for question in listed if isinstance(question, Choose | Why)]
        labels = [question for question in listed if isinstance(question, Label)]
        if named:
            yield from self.elicits.ask(named)
        if alone:
            yield from self.labels.ask(alone)
        if labels and self.people is None:
            yield from self.labels.ask(labels)
        elif labels and self.people is not None:
            yield from self._with_people(self.people, labels)

    def _with_people(self, people: Oracle, labels: Sequence[Label]) -> Iterator[Answer]:
        by_cell: dict[Cell, list[Answer]] = {}
        for answer in self.labels.ask([label for label in labels if _cell(label) not in self._by_people]):
            by_cell.setdefault(_cell(answer.question), []).append(answer)
        for cell, answers in by_cell.items():
            doubtful = self._is_doubtful(answers)
            if not (doubtful or self._is_checked(cell)):
                yield from answers
                continue
            self._by_people.add(cell)
            if doubtful:
                self.asked.escalated += 1
            else:
                self._checked.update((answer.question, answer) for answer in answers)
        escalated = [label for label in labels if _cell(label) in self._by_people]
        for answer in people.ask(escalated) if escalated else ():
            if answer.question in self._checked and answer.question not in self._counted:
                self._counted.add(answer.question)
                self.asked.checked += 1
                self.asked.agreed += self._checked[answer.question].verdict is answer.verdict
            yield answer

    def is_by_people(self, label: Label) -> bool:
        """Whether people decided it: they were asked, or only people label."""
        return _cell(label) in self._by_people or self.labels.identity.kind == "human"

    def _is_doubtful(self, answers: Sequence[Answer]) -> bool:
        margin = self.mixture.escalate
        if margin is None:
            return False
        verdicts = {answer.verdict for answer in answers}
        near = any(answer.probability is not None and abs(answer.probability - 0.5) <= margin for answer in answers)
        return near or len(verdicts) > 1 or not verdicts <= {Verdict.YES, Verdict.NO}

    def _is_checked(self, cell: Cell) -> bool:
        share = self.mixture.spot_check
        if share is None:
            return False
        drawn = hmac.digest(self._secret.encode(), digest_of(cell).encode(), "sha256")
        return int.from_bytes(drawn[:4]) < share * 2**32


class RecordedCrowd(MixedCrowd):
    """A mixed crowd whose members each store their own answers, in the books of one run."""

    def __init__(self, crowd: MixedCrowd, ledger: RunLedger) -> None:
        by_identity = {str(member.identity.to_json()): member for member in crowd.members}
        cached = {identity: CachedOracle(member, ledger) for identity, member in by_identity.items()}
        of = {id(member): cached[str(member.identity.to_json())] for member in crowd.members}
        people = of[id(crowd.people)] if crowd.people else None
        super().__init__(of[id(crowd.elicits)], of[id(crowd.labels)], people, crowd.mixture)
        self.ledger = ledger
        if crowd.mixture.spot_check is not None:  # whoever writes the data must not know which labels are checked
            self._secret = ledger.store.queue.people.secret("spot check")


def recorded_by(oracle: Oracle, ledger: RunLedger) -> CachedOracle | RecordedCrowd:
    """Cache, budget and ledger around an oracle, or around each member of a mixed crowd."""
    return RecordedCrowd(oracle, ledger) if isinstance(oracle, MixedCrowd) else CachedOracle(oracle, ledger)


def _names(question: Question) -> bool:
    """Whether it asks for names: of features, or of an attribute."""
    return isinstance(question, Compare | Family)


def _cell(question: Question) -> Cell:
    if not isinstance(question, Label):
        raise TypeError(f"only a label is about one example, not {question.kind.value}")
    return question.feature.name, question.feature.definition, question.example.digest
