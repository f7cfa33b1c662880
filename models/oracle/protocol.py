"""What every oracle does, and what some can do beside answering."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from math import inf
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from discovery import Labels
from models.oracle.answers import Answer
from models.oracle.errors import OracleUnavailable
from models.oracle.money import Forecast, Measured, Money
from models.oracle.questions import Feature, Question
from sources import Example


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


Chances = NDArray[np.float64]  # probabilities


@runtime_checkable
class Connects(Protocol):
    """An oracle that has to reach a server before its identity is known."""

    def connect(self) -> None:
        """Until then `identity` and `estimate` raise OracleError. May send paid requests; idempotent."""
        ...


@runtime_checkable
class ProbesServer(Connects, Protocol):
    """An oracle that finds out by paid probe requests what its server can do, which is part of its identity."""

    @property
    def account(self) -> str:
        """The scope of the store to which probes are booked, until a run that asks the oracle takes them over."""
        ...

    def is_probed(self) -> bool:
        """Whether an earlier probe is remembered, so that `connect` sends nothing."""
        ...

    def measured(self, examples: Iterable[Example]) -> Measured:
        """By the answers that are kept, those about these examples above all."""
        ...

    def forecast(self, questions: Sequence[Question], measured: Measured) -> Forecast:
        """Sends nothing, connected or not."""
        ...


LATENCIES = (0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, inf)  # seconds: the upper bounds of what is counted


@dataclass
class Traffic:
    """What has passed between an oracle and its server. Changed once or twice per request, by one thread."""

    answered: int = 0
    failed: int = 0  # attempts that failed for the moment
    seconds: float = 0.0  # that the answered ones took
    latencies: list[int] = field(default_factory=lambda: [0] * len(LATENCIES))  # how many took up to which bound
    in_flight: int = 0
    delayed: int = 0  # requests that failed and wait to be sent again
    fault: str = ""  # of the latest attempt, if it failed

    @contextmanager
    def request(self) -> Iterator[None]:
        self.in_flight += 1
        began = time.monotonic()
        try:
            yield
        except BaseException:
            self.in_flight -= 1
            raise
        took = time.monotonic() - began
        self.in_flight -= 1
        self.answered += 1
        self.fault = ""
        self.seconds += took
        self.latencies[bisect_left(LATENCIES, took)] += 1

    @contextmanager
    def delay(self) -> Iterator[None]:
        self.delayed += 1
        try:
            yield
        finally:
            self.delayed -= 1

    def __str__(self) -> str:
        under_way = f"{self.in_flight} request{'' if self.in_flight == 1 else 's'} under way"
        again = f", {self.delayed} to be sent again" if self.delayed else ""
        return under_way + again + (f"; the latest failed: {self.fault}" if self.fault else "")


@runtime_checkable
class TellsTraffic(Protocol):
    """An oracle that counts its requests."""

    @property
    def traffic(self) -> Traffic: ...


@runtime_checkable
class ChecksAhead(Protocol):
    """An oracle that can tell at once, and free of charge, that it will not answer."""

    def check(self, examples: Sequence[Example]) -> None:
        """Raises OracleError where it cannot answer about such examples, or where its server is away or refuses the
        key. What takes more than a moment to find out is left to the first question."""
        ...


MOST_UNLIKE = 0.05  # share of pictures that may look strange by chance


@dataclass(frozen=True, slots=True)
class Unlike:
    """Of some examples, those that are not of the kind that a model was made for."""

    outside: int = 0
    of: int = 0
    known: str = ""  # the kind, in words
    oracle: str = ""

    def __add__(self, other: Unlike) -> Unlike:
        described = self if self.known else other
        return Unlike(self.outside + other.outside, self.of + other.of, described.known, described.oracle)

    @property
    def warning(self) -> str:
        """One line, or nothing where all is well."""
        if self.outside <= MOST_UNLIKE * self.of:
            return ""
        return (
            f"{self.outside} of {self.of} pictures do not look like {self.known}, which is all that {self.oracle} "
            "knows: its answers about them mean nothing, so choose another oracle (python -m flows oracles)"
        )


@runtime_checkable
class KnowsItsDomain(Protocol):
    """An oracle that was made for one kind of examples, and recognises it."""

    def unlike(self, examples: Sequence[Example]) -> Unlike: ...


def unlike(oracle: Oracle, examples: Sequence[Example]) -> Unlike:
    """By the oracle, or by the members of a crowd. Nothing where it cannot tell: asking it then says why."""
    found = Unlike()
    for member in getattr(oracle, "members", [oracle]):
        if isinstance(member, KnowsItsDomain):
            with suppress(OracleUnavailable):
                found += member.unlike(examples)
    return found


@dataclass(frozen=True, slots=True)
class ComputedVotes:
    """Of one voter on each feature (columns) of each example (rows)."""

    labels: Labels
    refused: NDArray[np.bool_]  # of the unknown labels those that are refused; others are unreadable
    chances: Chances | None = None  # that the feature is true, NaN where it is unknown; None: it tells no probabilities


@runtime_checkable
class ComputesLabels(Protocol):
    """An oracle whose labels cost nothing and are the same whenever they are computed: they need not be kept."""

    def computed_votes(
        self, features: Sequence[Feature], examples: Sequence[Example], voter: int, wanted: NDArray[np.bool_]
    ) -> ComputedVotes:
        """As `ask` would say. What is not wanted need not be right."""
        ...

    def why_not(self, feature: Feature) -> str:
        """Why it cannot label a feature; empty where it can, or gives no reason."""
        ...


@runtime_checkable
class LoadsModel(Protocol):
    """An oracle with a model on this machine, which it loads when it is first asked, or ahead of that. Where
    `opens_pictures` is set it opens every picture that it was not asked about before, and raises ExampleChanged for
    one that cannot be read."""

    opens_pictures: bool

    def load(self) -> None: ...

    def vectors(self, examples: Sequence[Example]) -> NDArray[np.float32]:
        """What the model makes of pictures. It is kept: questions about them need the model no more."""
        ...


@runtime_checkable
class AsksAnew(Protocol):
    """An oracle that may find an earlier reply to a question again, as in a provider's batch."""

    def ask_anew(self, questions: Sequence[Question], since: float) -> None:
        """From now on, do not answer these with replies to what was sent before that time."""
        ...


@runtime_checkable
class SharesRequests(Protocol):
    """An oracle that may answer several labels by one request."""

    @property
    def rows_save(self) -> bool:
        """Whether labels of one example cost less when they are asked together; known before it is connected."""
        ...


def rows_save(oracle: Oracle) -> bool:
    return isinstance(oracle, SharesRequests) and oracle.rows_save


def connect(oracle: Oracle) -> None:
    """Make the identity of any oracle known; does nothing for oracles without a server."""
    if isinstance(oracle, Connects):
        oracle.connect()


def check_ahead(oracle: Oracle, examples: Sequence[Example]) -> None:
    """Raises OracleError where the oracle can tell that it will not answer; silent for oracles that cannot tell."""
    if isinstance(oracle, ChecksAhead):
        oracle.check(examples)
