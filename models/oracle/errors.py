"""What can go wrong with an oracle.

OracleError
├── OracleUnavailable   the server, the model or the people cannot be reached; what was answered is kept
│   ├── ServerAway      nothing is wrong with what was given: the server is down, overloaded or out of credit
│   ├── OracleLost      that happened in mid-run: what was found so far is written
│   └── ExampleChanged  an image is gone, or has changed since the data set was read
├── AnswersUnusable     most of what it answered was refused or unreadable; what was found is written
├── BudgetExhausted     the next question might cost more than is left
├── Halted              a person has stopped it; what was on its way is kept
└── AnswersPending      people have yet to answer; run again later"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sources import DatasetError, Vanished

if TYPE_CHECKING:
    from models.oracle.questions import Question


class OracleError(Exception):
    """Something about the oracle that the user can act on; the message is one line that says how."""


class OracleUnavailable(OracleError):
    """`unasked` are questions that were pulled, but for which nothing can have been charged."""

    unasked: tuple[Question, ...] = ()


@contextmanager
def free_of_charge(questions: Iterable[Question]) -> Iterator[None]:
    """Around a local model: what it fails to answer has cost nothing."""
    try:
        yield
    except OracleUnavailable as error:
        error.unasked = tuple(questions)
        raise


class ServerAway(OracleUnavailable):
    pass


class OracleLost(OracleUnavailable):
    @classmethod
    def leaving(cls, written: Path, message: str) -> OracleLost:
        return cls(f"{message}; what was found so far is in {written}, and the same command goes on from there")


class ExampleChanged(OracleUnavailable):
    """Asked without the examples that have changed, the oracle answers."""


class AnswersUnusable(OracleError):
    @classmethod
    def leaving(cls, written: Path, message: str) -> AnswersUnusable:
        remedy = "choose another model or other parameters, or ask the same again with --retry-unusable"
        return cls(f"{message}; the replies and what was found are in {written}: {remedy}")


class BudgetExhausted(OracleError):
    pass


class Halted(OracleError):
    pass


class AnswersPending(OracleError):
    """`items` are the questions of the review queue that it waits for. Nothing stays reserved for them: the run that
    collects the answers reserves again. What a provider's batch holds stays spent until it is collected."""

    def __init__(self, message: str, *, items: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.items = tuple(items)


@contextmanager
def changes_raised(*, unreadable: bool = False) -> Iterator[None]:
    """Around reading images: one that is gone or has changed, or cannot be read at all, raises ExampleChanged."""
    try:
        yield
    except DatasetError as problem:
        if unreadable or isinstance(problem, Vanished):
            raise ExampleChanged(str(problem)) from None
        raise
