"""What every oracle does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from models.oracle.answers import Answer
from models.oracle.money import Money
from models.oracle.questions import Question


@dataclass(frozen=True, slots=True)
class OracleIdentity:
    """What distinguishes one oracle's answers from another's. `parameters` holds all that can change an answer,
    no secret, and nothing that cannot change one (addresses, prices, time-outs, concurrency)."""

    kind: str
    model: str
    parameters: tuple[tuple[str, Any], ...] = ()
    prompts: str = ""  # version of the prompts

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "model": self.model,
            "parameters": dict(self.parameters),
            "prompts": self.prompts,
        }

    def __str__(self) -> str:
        return f"{self.kind}:{self.model}" if self.model else self.kind


class Oracle(Protocol):
    @property
    def identity(self) -> OracleIdentity: ...

    @property
    def width(self) -> int:
        """How many questions are in flight at once."""
        ...

    def ask(self, questions: Iterable[Question]) -> Iterator[Answer]:
        """Yield one answer per question, in any order, each as soon as it is known.

        `questions` may be lazy: pulling one is the promise to send it, so pull at most about `width` ahead."""
        ...

    def estimate(self, questions: Sequence[Question]) -> list[Money]:
        """For each question an upper bound of its price, before anything is spent."""
        ...


@dataclass(frozen=True, slots=True)
class PlannedRequest:
    """Questions that will share one request, and for each of them its share of the most that this request can cost."""

    questions: tuple[Question, ...]
    bounds: tuple[Money, ...]


# Called just before a request leaves, in any thread, with the most that each of its questions may have cost after it.
# False: some of them are another process's by now, and must not be sent. Raises BudgetExhausted where the budget does
# not cover that much: then it must not be sent either, and what it would have asked stays unanswered.
Leaving = Callable[[Sequence[tuple[Question, Money]]], bool]
# Told which of a provider's batches holds questions, before it is sent and now and then while it runs, and None as soon
# as they are in no batch that may be charged or collected, or are asked in another way.
NoteBatch = Callable[[Sequence[Question], str | None], None]


@runtime_checkable
class TellsRequests(Protocol):
    """An oracle that may send several questions in one request and several requests for one question, or send it in a
    provider's batch, which lives on without the process; it tells of each request before it is sent."""

    def requests(self, questions: Sequence[Question], *, more: bool = False) -> list[PlannedRequest]:
        """The requests in which these would be sent. Where `more` questions are to come, some of those that may share a
        request with them can be left out, never all."""
        ...

    def ask_telling(
        self, requests: Iterable[Sequence[Question]], leaving: Leaving, note: NoteBatch
    ) -> Iterator[Answer]:
        """As `ask`, for questions that share a request. What was pulled and never announced was not sent."""
        ...
