"""What one request of the books has cost: every attempt is announced before it leaves, at the most that it may cost.

An attempt leaves only while all that the request has cost, may have cost and may cost with what is under way stays
within its limit, and within what its meter allows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from twothirds.models.openai.abilities import Abilities
from twothirds.models.openai.client import Client, ServerReply
from twothirds.models.openai.config import OpenAIConfig
from twothirds.models.openai.errors import Fault, TransientError
from twothirds.models.openai.tokens import Endpoint, Pricing
from twothirds.models.oracle import (
    Answer,
    Label,
    Meter,
    Money,
    OracleError,
    Overcharge,
    Overcharged,
    Question,
    Reply,
    Request,
    Usage,
    Verdict,
)
from twothirds.models.prices import Tokens, bound, settled
from twothirds.models.prompting import ImageUrls

RAW_LIMIT = 4_000  # characters of a reply that are kept with an answer


@dataclass(frozen=True, slots=True)
class Server:
    """What all requests to one server share."""

    config: OpenAIConfig
    abilities: Abilities
    pricing: Pricing
    client: Client
    images: ImageUrls
    oracle: str  # the digest of its identity

    @property
    def by(self) -> str:
        return f"openai:{self.config.model}"


@dataclass(eq=False)
class Sending:
    """What the requests of one call of `send` share."""

    meter: Meter
    emit: Callable[[Reply], None]
    is_over: bool = False  # a fault has come: nothing more leaves
    overcharge: Overcharge | None = None  # nor after this


class Spent(Exception):
    """A question is not asked again: its request has cost as much as it may, or has asked it in this form before."""


class Stopped(Exception):
    """A request does not leave, because another one has met a fault."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What one HTTP request, or one line of a provider's batch, takes and costs at most."""

    endpoint: Endpoint
    most: Tokens
    at_most: Money
    batch: bool = False


@dataclass(slots=True, eq=False)
class Bill:
    """One question of a request, and its share of what was paid so far."""

    position: int
    question: Question
    forms: set[Hashable] = field(default_factory=set)  # in which it was asked
    refusals: int = 0  # of the question alone
    verdict: Verdict = Verdict.UNREADABLE  # of its latest reply, which could not be used; also its text, and why
    raw: str = ""
    note: str = "its request has cost as much as it may"
    usage: Usage = field(default_factory=Usage)
    cost: Money = 0


def usage_of(tokens: Tokens) -> Usage:
    """Of one request."""
    return Usage(
        requests=1,
        input_tokens=tokens.input,
        output_tokens=tokens.output,
        cached_tokens=tokens.cached,
        reasoning_tokens=tokens.reasoning,
    )


def part_of(total: int, place: int, count: int) -> int:
    """Of a sum that is split in so many equal parts, to the last unit."""
    return total // count + (place < total % count)


class Account:
    def __init__(self, server: Server, sending: Sending, request: Request) -> None:
        self.server, self.sending, self.request = server, sending, request
        self.bills = [Bill(position, question) for position, question in enumerate(request.questions)]
        self.limit = request.limit
        if request.adopted:  # its questions are those of an earlier plan
            self.limit = max(self.limit, 2 * request.bound * server.config.asks * len(self.bills))
        self.has_left = request.adopted  # the meter was told of an attempt
        self.in_batch = request.adopted  # a provider's batch holds it
        self._is_finished = False
        self._answers: dict[int, Answer] = {}
        self._told = 0  # answers of the latest reply
        self._cost, self._in_doubt, self._under_way = 0, 0, 0
        self._usage = Usage()
        self._overcharge: Overcharge | None = None
        self._began = time.monotonic()
        self._leaving = asyncio.Lock()  # the meter hears of one attempt after the other

    # --- attempts

    def attempt(self, endpoint: Endpoint, most: Tokens, *, batch: bool = False) -> Attempt:
        at_most = self.server.pricing.most_cost(endpoint, most, self.request.scale, batch=batch)
        return Attempt(endpoint, most, at_most, batch)

    async def send(
        self, endpoint: Endpoint, body: dict[str, Any], most: Tokens, bills: Sequence[Bill] = ()
    ) -> ServerReply:
        """Send a request of at most so many tokens until it is answered, and charge its reply to the questions that it
        carried. Raises Spent where it may cost too much."""
        client, attempt = self.server.client, self.attempt(endpoint, most)
        labels = len(bills) if bills and isinstance(bills[0].question, Label) else 0

        async def once() -> ServerReply:
            await self.leave(attempt)
            try:
                reply = await client.post(endpoint, body, most, labels)
            except TransientError as fault:
                self.end(attempt, in_doubt=fault.maybe_charged)
                fault.is_last = not self._affords(attempt)
                await asyncio.to_thread(self.sending.meter.failed, self.request, str(fault))
                raise
            except BaseException as error:
                self.end(attempt, in_doubt=not isinstance(error, Fault | OracleError))
                raise
            self.end(attempt)
            self.charge(attempt, reply.tokens, bills, range(len(bills)), len(bills))
            return reply

        return await client.retried(once, most.input, labels)

    async def leave(self, attempt: Attempt) -> None:
        """Have the meter told that an attempt is about to leave."""
        async with self._leaving:
            self._check()
            if not self._affords(attempt):
                raise Spent
            await asyncio.to_thread(self.sending.meter.leaving, self.request, self._total + attempt.at_most)
            self.has_left = True
            self._check()  # a reply above its bound may have come meanwhile
            self._under_way += attempt.at_most

    def adopt(self, attempt: Attempt) -> None:
        """An attempt that left in an earlier run is under way."""
        self._under_way += attempt.at_most

    def _check(self) -> None:
        if self.sending.overcharge is not None and self._overcharge is None:
            raise Overcharged(str(self.sending.overcharge))
        if self.sending.is_over:
            raise Stopped

    @property
    def _total(self) -> Money:
        return self._cost + self._in_doubt + self._under_way

    def _affords(self, attempt: Attempt) -> bool:
        """Of a request that was charged above its bound nothing is asked again."""
        return self._overcharge is None and self._total + attempt.at_most <= self.limit

    def end(self, attempt: Attempt, *, in_doubt: bool = False) -> None:
        """An attempt is no longer under way."""
        self._under_way -= attempt.at_most
        self._in_doubt += attempt.at_most if in_doubt else 0

    def charge(
        self, attempt: Attempt, tokens: Tokens | None, bills: Sequence[Bill], places: Sequence[int], count: int
    ) -> None:
        """Book a reply that took so many tokens; without usage its upper bound, so that a budget holds. Of the `count`
        questions that it answers, those in these places are on the bills: each costs the same."""
        tariff, used = self.server.pricing.tariffs[attempt.endpoint], tokens or attempt.most
        cost = attempt.at_most if tokens is None else settled(tariff, tokens, batch=attempt.batch)
        if not bills:
            self._cost += cost
            self._usage += usage_of(used)
        for bill, place in zip(bills, places, strict=True):
            bill.cost += (share := part_of(cost, place, count))
            self._cost += share
            usage = replace(
                usage_of(Tokens(**{name: part_of(sum_, place, count) for name, sum_ in asdict(used).items()})),
                requests=int(bill is bills[0]),
            )
            bill.usage += usage
            self._usage += usage
        if cost > attempt.at_most:
            plain = bound(tariff, attempt.most, batch=attempt.batch)
            self._overcharge = Overcharge(cost, plain, f"{self.server.by} at {self.server.config.host}")
            self.sending.overcharge = self.sending.overcharge or self._overcharge

    # --- answers

    def is_new(self, bills: Sequence[Bill], form: Hashable) -> bool:
        """Whether some of these questions were not asked in this form before."""
        is_new = any(form not in bill.forms for bill in bills)
        for bill in bills:
            bill.forms.add(form)
        return is_new

    def answer(self, bill: Bill, verdict: Verdict, *, raw: str = "", **rest: Any) -> None:
        seconds = round(time.monotonic() - self._began, 6)
        raw = raw.encode("utf-8", "replace").decode("utf-8")[:RAW_LIMIT]
        rest |= {"usage": bill.usage, "cost": bill.cost, "seconds": seconds}
        self._answers[bill.position] = Answer(bill.question, verdict, self.server.by, raw=raw, **rest)

    def give_up(self, bills: Iterable[Bill]) -> None:
        """Answer with their latest reply, which could not be used."""
        for bill in bills:
            self.answer(bill, bill.verdict, raw=bill.raw, note=bill.note)

    def tell(self) -> None:
        """Hand over what is answered by now, while the rest is asked again."""
        if len(self._answers) > self._told:
            self._told = len(self._answers)
            self.sending.emit(self._reply(done=False))

    def finish(self) -> None:
        """Hand over the last reply, once. A request that did not leave has none, nor has one that a provider's batch
        holds: a later run collects it."""
        if self.has_left and not self.in_batch and not self._is_finished:
            self._is_finished = True
            self.sending.emit(self._reply(done=True))

    def _reply(self, *, done: bool) -> Reply:
        return Reply(
            self.request,
            dict(self._answers),
            cost=self._cost,
            in_doubt=self._in_doubt + self._under_way,
            usage=self._usage,
            seconds=round(time.monotonic() - self._began, 6),
            overcharge=self._overcharge,
            done=done,
        )
