"""Asks an oracle as it is: what it plans is sent, and a meter checks that it keeps within what it plans."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from twothirds.models.crowd import Crowd, Members, build_crowd
from twothirds.models.ledger import RunLedger
from twothirds.models.oracle import (
    Answer,
    AnswersPending,
    Feature,
    Label,
    Meter,
    Money,
    Oracle,
    OracleIdentity,
    Profile,
    Question,
    Reply,
    Request,
    Traits,
    Unlike,
    Verdict,
    in_requests,
    replied,
)
from twothirds.sources import Example
from twothirds.store import Store


class CheckedMeter:
    """Lets every attempt leave that stays within the limit of its request."""

    def __init__(self) -> None:
        self.most: dict[Request, Money] = {}  # that each may have cost after its latest attempt
        self.attempts: Counter[Request] = Counter()
        self.failures: list[str] = []
        self.batches: dict[Request, str | None] = {}
        self._lock = threading.Lock()

    def leaving(self, request: Request, most: Money) -> None:
        with self._lock:
            assert most <= max(request.limit, request.bound), f"{most} is above the limit of {request}"
            self.most[request] = most
            self.attempts[request] += 1

    def failed(self, request: Request, fault: str) -> None:  # noqa: ARG002
        with self._lock:
            self.failures.append(fault)

    def in_batch(self, request: Request, batch: str | None) -> None:
        with self._lock:
            self.batches[request] = batch


def planned(oracle: Oracle, questions: Iterable[Question]) -> list[Request]:
    return list(oracle.plan(list(questions)))


def replies(oracle: Oracle, questions: Iterable[Question], meter: CheckedMeter | None = None) -> Iterator[Reply]:
    """Probes first, where the oracle wants to."""
    asked, books = list(questions), meter or CheckedMeter()
    requests = planned(oracle, asked)
    if requests and requests[0].probe is not None:
        yield from oracle.send(requests[:1], books)
        requests = planned(oracle, asked)
    yield from oracle.send(requests, books)


def ask(oracle: Oracle, questions: Iterable[Question], meter: CheckedMeter | None = None) -> Iterator[Answer]:
    """Each answer as soon as it is there."""
    seen = set[tuple[int, int]]()
    for reply in replies(oracle, questions, meter):
        for position, answer in reply.answers.items():
            if (id(reply.request), position) not in seen:
                seen.add((id(reply.request), position))
                yield answer


class Asked:
    """An oracle without a store, for what asks a crowd."""

    def __init__(self, oracle: Oracle) -> None:
        self.oracle = oracle
        self.identity = oracle.identity
        self.labeller = None

    def ask(self, questions: Iterable[Question]) -> Iterator[Answer]:
        return ask(self.oracle, questions)


def bounds(oracle: Oracle, questions: Iterable[Question]) -> list[Money]:
    """Of the requests in which the questions would be sent."""
    return [request.bound for request in planned(oracle, questions)]


class Scripted:
    """An oracle that answers as `answer` says, one question a request, and remembers what it was asked."""

    def __init__(self, name: str, price: Money = 0, profile: Profile = "paid") -> None:
        self.identity = OracleIdentity("scripted", name)
        self.traits = Traits(profile, width=4)
        self.price = price
        self.questions: list[Question] = []

    def answer(self, question: Question) -> Answer:
        return Answer(question, Verdict.NONE, self.identity.model, cost=self.price)

    def plan(self, questions: Sequence[Question]) -> Iterator[Request]:
        return in_requests(questions, self.price, 1)

    def prepare(self, examples: Sequence[Example]) -> Unlike:  # noqa: ARG002
        return Unlike()

    def send(self, requests: Iterable[Request], meter: Meter) -> Iterator[Reply]:
        for request in requests:
            meter.leaving(request, request.bound)
            self.questions += request.questions
            yield replied(request, map(self.answer, request.questions))


def crowd_in(
    store: Store, members: Members, run: str = "run", wait: Callable[[AnswersPending], None] | None = None
) -> Crowd:
    store.runs.begin(run, "scope", name="n", flow="f", dataset="d", oracle="o", settings={})
    return build_crowd(members, RunLedger(store, run, "scope"), wait=wait)


def learn(oracle: Oracle) -> None:
    """Have the oracle find out what its server can do, where it does not remember it."""
    first = next(iter(oracle.plan([Label(Feature("any"), Example("", "", text=""))])))
    list(oracle.send([first] if first.probe else [], CheckedMeter()))
