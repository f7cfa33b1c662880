"""What a run tells while it works: one stream of events, for terminal, notebook, logs, pages and Prefect.

Nothing that watches can stop or change a run: a subscriber that raises is dropped with one warning."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:  # help needs no oracle
    from twothirds.models import Answer, AnswersPending, Question

_log = logging.getLogger(__name__)
UPDATE_SECONDS = 0.1  # between two events that say how far a count is


@dataclass(frozen=True)
class RunStarted:
    """A run begins, with what a page that follows it must know. `reached`: questions that earlier executions asked."""

    run_id: str
    scope: str
    name: str
    oracle: str
    settings: dict[str, Any]
    at: str
    queries: int = 0
    compared: int = 0
    compared_ids: list[str] | None = None
    budget_usd: float | None = None
    reached: int = 0


@dataclass(frozen=True)
class AskedQuestion:
    question: str
    examples: tuple[str, ...]
    without: tuple[str, ...]
    known: int  # features that it is not about

    @classmethod
    def of(cls, question: Question) -> AskedQuestion:
        from twothirds.models import Compare

        if not isinstance(question, Compare):
            return cls(question.kind.value, (), (), 0)
        examples, without = (tuple(one.id for one in side) for side in (question.examples, question.without))
        return cls(question.kind.value, examples, without, known=len(question.known))


@dataclass(frozen=True)
class QuestionAsked:
    """Questions are about to be sent: about examples, or whether these have features, (name, definition)."""

    questions: tuple[AskedQuestion, ...] = ()
    features: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class AnswerReceived:
    """`features` are (name, definition, places of the examples that have it); `number` counts the questions."""

    number: int
    question: AskedQuestion
    verdict: str
    by: str
    features: tuple[tuple[str, str, tuple[int, ...]], ...] = ()
    note: str = ""

    @classmethod
    def of(cls, number: int, answer: Answer) -> AnswerReceived:
        named = tuple((one.feature.name, one.feature.definition, tuple(one.shown)) for one in answer.features)
        question = AskedQuestion.of(answer.question)
        return cls(number, question, answer.verdict.value, answer.by, named, answer.note)


@dataclass(frozen=True)
class FeatureLabelled:
    """`given` says who gave it: nobody, where an answer named it."""

    name: str
    definition: str
    yes: int
    no: int
    unknown: int
    counts: bool
    given: str = ""
    twin: str = ""
    examples: tuple[str, ...] = ()


@dataclass(frozen=True)
class FeatureRejected:
    """A person does not want it: it is not labelled further."""

    name: str
    by: str


@dataclass(frozen=True)
class CommandApplied:
    """What a person wanted, once the run does it; `rejected` says why it does not."""

    action: str
    by: str
    words: str
    rejected: str = ""
    usd: str = ""


@dataclass(frozen=True)
class StepStarted:
    """What is waited for; or what is counted from now on, up to `total` where that is known."""

    step: str
    counted: bool = False
    total: int | None = None


@dataclass(frozen=True)
class StepEnded:
    step: str


@dataclass(frozen=True)
class Progressed:
    """How far a count is: `done` of `total` in `unit`, and `detail` in words; `figures` are those of a discovery."""

    done: int
    unit: str
    detail: str = ""
    total: int | None = None
    usd: float | None = None
    figures: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Waiting:
    """`whom` it waits for: people, or answers that take long; empty once they have come."""

    whom: Literal["people", "answers", ""]
    message: str = ""

    @classmethod
    def on(cls, pending: AnswersPending) -> Waiting:
        return cls("people" if pending.items else "answers", " ".join(str(pending).split()))


@dataclass(frozen=True)
class Notice:
    """One line for whoever started the run; `quiet`: for its log alone."""

    message: str
    quiet: bool = False


@dataclass(frozen=True)
class RunEnded:
    """`reason` as the summary names it, or "interrupted"."""

    reason: str
    message: str = ""


Event = (
    RunStarted
    | QuestionAsked
    | AnswerReceived
    | FeatureLabelled
    | FeatureRejected
    | CommandApplied
    | StepStarted
    | StepEnded
    | Progressed
    | Waiting
    | Notice
    | RunEnded
)
Subscriber = Callable[[Event], None]


def to_json(event: Event) -> dict[str, Any]:
    return {"kind": type(event).__name__} | asdict(event)


class Events:
    """A stream: whoever it is made with hears every event, in the order in which they are emitted."""

    def __init__(self, *subscribers: Subscriber) -> None:
        self._subscribers = list(subscribers)
        self._lock = threading.RLock()
        self.usd: Callable[[], float | None] = lambda: None  # what the run has cost so far

    def to(self, *more: Subscriber) -> Events:
        """A stream of its own for a part of the run, that these hear as well."""
        own = Events(self.emit)
        own._subscribers += more
        own.usd = self.usd
        return own

    def emit(self, event: Event) -> None:
        with self._lock:
            for subscriber in list(self._subscribers):
                if subscriber not in self._subscribers:  # it has failed at the warning about another one
                    continue
                try:
                    subscriber(event)
                except Exception as error:
                    self._drop(subscriber, error)

    def _drop(self, subscriber: Subscriber, error: Exception) -> None:
        self._subscribers.remove(subscriber)
        name = getattr(subscriber, "__name__", type(subscriber).__name__)
        line = f"{name} hears nothing of this run any more: {type(error).__name__}: {error}"
        _log.warning(line)
        self.emit(Notice(line))

    def say(self, message: str) -> None:
        self.emit(Notice(message))

    def log(self, *lines: str) -> None:
        """For the log of the run alone, where it has one."""
        for line in lines:
            self.emit(Notice(line, quiet=True))

    @contextmanager
    def waiting(self, step: str) -> Iterator[None]:
        """Say what takes its time."""
        self.emit(StepStarted(step))
        try:
            yield
        finally:
            self.emit(StepEnded(step))

    @contextmanager
    def counting(self, total: int | None, unit: str) -> Iterator[Callable[[int, str], None]]:
        """Count something; call what this yields with how many are done, and in words what came of it. The first and
        the last such call are always told."""
        self.emit(StepStarted(unit, counted=True, total=total))
        told, held = -UPDATE_SECONDS, None

        def update(done: int, detail: str) -> None:
            nonlocal told, held
            held = Progressed(done, unit, detail, total, self.usd())
            if time.monotonic() - told >= UPDATE_SECONDS:
                self.emit(held)
                told, held = time.monotonic(), None

        try:
            yield update
        finally:
            if held is not None:
                self.emit(held)
            self.emit(StepEnded(unit))


SILENT = Events()  # nobody hears them
