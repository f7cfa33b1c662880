"""What every way of asking a server shares: client, prices, image cache, and the bill of each question.

The cost of a request with many questions is split over them, to the last micro-dollar."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from twothirds.models.openai.bounds import REPAIR_TOKENS, Bounds
from twothirds.models.openai.client import Attempts, Client, Endpoint, Reply
from twothirds.models.openai.config import OpenAIConfig
from twothirds.models.openai.errors import Declined, TooLong
from twothirds.models.openai.probe import Abilities
from twothirds.models.oracle import (
    Answer,
    BudgetExhausted,
    Label,
    Leaving,
    Money,
    OracleIdentity,
    Overcharge,
    Overcharged,
    Question,
    Usage,
    Verdict,
    changes_raised,
    digest_of,
)
from twothirds.models.prices import Tokens, bound, settled, shares
from twothirds.models.prompting import ImagePart, ImageUrls, Message, SheetPart, sheet_url
from twothirds.sources import DatasetError

NOTHING = Tokens()
RAW_LIMIT = 4_000  # characters of a reply that are kept with an answer


@dataclass(slots=True)
class Bill:
    """What one question has cost so far. `weight` is an upper bound of what a request with it alone would cost."""

    question: Question
    weight: Money
    asked: Question = field(init=False)  # the question in its latest words
    sent: set[str] = field(default_factory=set)  # digests of the forms in which it was asked, whatever the seed
    unusable: tuple[Verdict, str, str] = (Verdict.UNREADABLE, "", "")  # of its latest reply: also its text, and why
    requests: int = 0
    tokens: Tokens = NOTHING
    cost: Money = 0
    refusals: int = 0  # of the question alone
    limit: Money = 0  # its requests cost no more
    excess: Money = 0  # what a provider has charged beyond the bounds of its requests: booked, and nobody's reservation
    in_doubt: Money = 0  # the bounds of failed requests that may have been charged
    overcharge: Overcharge | None = None  # of its latest request
    announced: Money | None = None  # what `leaving` was last called with
    started: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.asked = self.question

    def answer(self, verdict: Verdict, by: str, *, raw: str = "", **rest: Any) -> Answer:
        tokens = self.tokens
        usage = Usage(self.requests, tokens.input, tokens.output, tokens.cached, tokens.reasoning)
        seconds = round(time.monotonic() - self.started, 6)
        raw = raw.encode("utf-8", "replace").decode("utf-8")[:RAW_LIMIT]
        rest |= {"cost": self.cost, "in_doubt": self.in_doubt, "overcharge": self.overcharge}
        return Answer(self.question, verdict, by, usage=usage, seconds=seconds, raw=raw, **rest)

    def unanswered(self, by: str) -> Answer:
        """With its latest reply, which could not be used."""
        verdict, raw, note = self.unusable
        return self.answer(verdict, by, raw=raw, note=note)


def is_new_form(bills: Sequence[Bill], body: Mapping[str, Any]) -> bool:
    """Whether these questions were not asked in this form before: with another seed it is the same."""
    form = digest_of({name: value for name, value in body.items() if name != "seed"})
    is_new = any(form not in bill.sent for bill in bills)
    for bill in bills:
        bill.sent.add(form)
    return is_new


def charge(bills: Sequence[Bill], tokens: Tokens, cost: Money) -> None:
    """Book one request on the questions that it carried, in proportion to their weights."""
    weights = [bill.weight for bill in bills]
    split = {name: shares(total, weights) for name, total in asdict(tokens).items()}
    for place, (bill, money) in enumerate(zip(bills, shares(cost, weights), strict=True)):
        bill.tokens += Tokens(**{name: counts[place] for name, counts in split.items()})
        bill.cost += money
    bills[0].requests += 1


Emit = Callable[[Answer], None]


def untold(_requested: Sequence[tuple[Question, Money]]) -> bool:
    """Where nobody keeps books every request may leave."""
    return True


@dataclass(slots=True)
class PaymentTrace:
    """What the server has, or may have, charged for a group of questions."""

    paid: set[Question] = field(default_factory=set)
    maybe_charged: bool = False  # a request failed, and it is not known whether it was charged


@dataclass(frozen=True, slots=True)
class Delivery:
    """Where the answers of one group go, and what the server has charged for it."""

    emit: Emit
    leaving: Leaving = untold
    trace: PaymentTrace = field(default_factory=PaymentTrace)


class ClaimLost(Exception):
    """Another process has claimed some of the questions of a request meanwhile: it was not sent."""


@dataclass(slots=True)
class BookedAttempts(Attempts):
    """The attempts at one request with these questions: each is in the books, at its bound, before it is sent."""

    bills: Sequence[Bill]
    delivery: Delivery
    bounds: Sequence[Money]  # of the request, split over its questions
    overcharges: Sequence[Overcharge]  # after the first nothing more leaves
    in_flight: bool = False

    @property
    def labels(self) -> int:  # type: ignore[override]
        return len(self.bills) if isinstance(self.bills[0].question, Label) else 0

    def fits(self) -> bool:
        return all(most - bill.excess <= bill.limit for bill, most in self._most())

    async def leaving(self) -> None:
        try:
            stop_if(self.overcharges)
            await tell(self.delivery, self._most())
            stop_if(self.overcharges)  # one may have come meanwhile
        except (BudgetExhausted, Overcharged):
            await tell_spent(self.delivery, self.bills)
            raise
        self.in_flight = True

    async def failed(self, maybe_charged: bool) -> bool:
        self.in_flight = False
        if maybe_charged:
            self.delivery.trace.maybe_charged = True
            for bill, most in zip(self.bills, self.bounds, strict=True):
                bill.in_doubt += most
        return self.fits()

    def _most(self) -> list[tuple[Bill, Money]]:
        """At most what each question has cost after one more attempt."""
        pairs = zip(self.bills, self.bounds, strict=True)
        return [(bill, bill.cost + bill.in_doubt + most) for bill, most in pairs]


def stop_if(overcharges: Sequence[Overcharge]) -> None:
    if overcharges:
        raise Overcharged(str(overcharges[0]))


async def tell(delivery: Delivery, most: Sequence[tuple[Bill, Money]]) -> None:
    """Have it written down what the questions may have cost after the next request. Raises ClaimLost, and
    BudgetExhausted where the budget does not cover it."""
    if all(bill.announced == amount for bill, amount in most):
        return
    requested = [(bill.question, amount) for bill, amount in most]
    if not await asyncio.to_thread(delivery.leaving, requested):
        raise ClaimLost
    for bill, amount in most:
        bill.announced = amount


async def tell_spent(delivery: Delivery, bills: Sequence[Bill]) -> None:
    """Have it written down what the requests so far may have cost, where another way of asking follows or none."""
    spent = [(bill, bill.cost + bill.in_doubt) for bill in bills]
    if any(amount for _, amount in spent):
        await tell(delivery, spent)


@dataclass(frozen=True, slots=True)
class PartFormat:
    """How an endpoint writes the parts of a message."""

    text: str
    picture: Callable[[str], dict[str, Any]]

    def part(self, text: str) -> dict[str, Any]:
        return {"type": self.text, "text": text}


CHAT = PartFormat("text", lambda url: {"type": "image_url", "image_url": {"url": url}})
DECISIONS = PartFormat("input_text", lambda url: {"type": "input_image", "image_url": url})


@dataclass(frozen=True, slots=True)
class Session:
    """Client, prices and image cache of one server."""

    config: OpenAIConfig
    abilities: Abilities
    bounds: Bounds
    client: Client
    images: ImageUrls
    identity: OracleIdentity
    anew: dict[Question, float] = field(default_factory=dict)  # which are not answered by batches from before this time
    overcharges: list[Overcharge] = field(default_factory=list)

    @property
    def by(self) -> str:
        return str(self.identity)

    def bills(self, questions: Sequence[Question]) -> list[Bill]:
        price, weight = self.bounds.price, self.bounds.weight
        return [Bill(question, weight(question), limit=price(question)) for question in questions]

    async def send(
        self,
        endpoint: Endpoint,
        bills: Sequence[Bill],
        body: dict[str, Any],
        delivery: Delivery,
        *,
        repairs: bool = False,
    ) -> Reply:
        """Send one request and charge its reply to the questions that it carried. With `repairs` it shows the last
        reply too."""
        most = self._most(bills, repairs)
        attempts = self._attempts(bills, most, delivery)
        try:
            reply = await self.client.send(endpoint, body, most, attempts)
        except asyncio.CancelledError:
            await attempts.failed(attempts.in_flight)
            raise
        delivery.trace.paid.update(bill.question for bill in bills)
        # A reply without usage is charged at its upper bound, so that a budget holds.
        tariff = self.bounds.tariff(bills[0].question)
        cost = self.bounds.most(tariff, most) if reply.tokens is None else settled(tariff, reply.tokens)
        before = [bill.cost for bill in bills]
        charge(bills, reply.tokens or most, cost)
        for bill, was, bound_of in zip(bills, before, attempts.bounds, strict=True):
            bill.excess += max(bill.cost - was - bound_of, 0)
        if cost > sum(attempts.bounds):
            self.note_overcharge(bills, Overcharge(cost, bound(tariff, most), f"{self.by} at {self.config.host}"))
        return reply

    def note_overcharge(self, bills: Sequence[Bill], overcharge: Overcharge) -> None:
        """Nothing more leaves, and the answers to these questions carry the news."""
        self.overcharges.append(overcharge)
        for bill in bills:
            bill.overcharge = overcharge

    def affords(self, bills: Sequence[Bill], delivery: Delivery, *, repairs: bool = False) -> bool:
        """Whether another request with these questions stays within their limits. One that was charged above its
        bound is not asked again: its answer, whatever it says, books the charge in full."""
        if any(bill.overcharge for bill in bills):
            return False
        return self._attempts(bills, self._most(bills, repairs), delivery).fits()

    def _most(self, bills: Sequence[Bill], repairs: bool) -> Tokens:
        return self.bounds.request([bill.asked for bill in bills]) + Tokens(REPAIR_TOKENS if repairs else 0)

    def _attempts(self, bills: Sequence[Bill], most: Tokens, delivery: Delivery) -> BookedAttempts:
        cost = self.bounds.most(self.bounds.tariff(bills[0].question), most)
        return BookedAttempts(bills, delivery, shares(cost, [bill.weight for bill in bills]), self.overcharges)

    async def ask_or_halve(
        self,
        bills: list[Bill],
        ask: Callable[[list[Bill]], Awaitable[Reply | None]],
        read: Callable[[list[Bill], Reply], Awaitable[None]],
        delivery: Delivery,
    ) -> None:
        """All in one request; if the server finds it too long or declines it, each half in a request of its own. What
        was asked in the same form before is not sent: it stays unanswered."""
        try:
            reply = await ask(bills)
        except (TooLong, Declined) as fault:
            if len(bills) == 1:
                delivery.emit(bills[0].answer(Verdict.REFUSED, self.by, note=str(fault)))
            else:
                await all_of([self.ask_or_halve(half, ask, read, delivery) for half in halves(bills)])
            return
        if reply is not None:
            await read(bills, reply)
            return
        for bill in bills:
            delivery.emit(bill.unanswered(self.by))

    def first_ask(self, question: Question) -> int:
        """Of a question that an earlier run asked without a usable answer: the forms it used are not used again."""
        return self.config.asks if question in self.anew else 0

    async def messages(self, messages: Sequence[Message], format: PartFormat) -> list[dict[str, Any]]:
        return [{"role": message.role, "content": await self._content(message, format)} for message in messages]

    async def _content(self, message: Message, format: PartFormat) -> str | list[dict[str, Any]]:
        """Plain text if there are no images: some servers accept nothing else for text-only models."""
        if all(isinstance(part, str) for part in message.parts):
            return message.text
        content: list[dict[str, Any]] = []
        text = ""
        for part in message.parts:
            if isinstance(part, str):
                text += part
                continue
            urls = await self._urls(part)
            text += f"({len(urls)} frames of one moving picture, in order)\n" if len(urls) > 1 else ""
            content.append(format.part(text))
            content.extend(self._picture(url, format) for url in urls)
            text = ""
        return [*content, format.part(text)] if text else content

    def _picture(self, url: str, format: PartFormat) -> dict[str, Any]:
        part = format.picture(url)
        if self.config.detail != "auto":
            (part["image_url"] if isinstance(part["image_url"], dict) else part)["detail"] = self.config.detail
        return part

    async def _urls(self, picture: ImagePart | SheetPart) -> tuple[str, ...]:
        """Raises Declined for an image that cannot be read."""
        cached = self.images.cached(picture.example) if isinstance(picture, ImagePart) else None
        if cached is not None:
            return cached
        try:
            with changes_raised():
                if isinstance(picture, SheetPart):
                    return (await asyncio.to_thread(sheet_url, picture),)
                return await asyncio.to_thread(self.images.urls, picture.example)
        except DatasetError as problem:
            raise Declined(str(problem)) from None


async def all_of(work: Sequence[Any]) -> None:
    """Wait for all of it, then raise the first error: answers in flight are paid for."""
    for result in await asyncio.gather(*work, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result


def halves(bills: list[Bill]) -> list[list[Bill]]:
    """By examples where there are several, else by features: each half can be asked in one request."""
    keys = [bill.question.example.digest if isinstance(bill.question, Label) else "" for bill in bills]
    order = list(dict.fromkeys(keys))
    first = set(order[: (len(order) + 1) // 2])
    middle = (len(bills) + 1) // 2
    of_first = [key in first for key in keys] if len(order) > 1 else [place < middle for place in range(len(bills))]
    sides = [[bill for bill, early in zip(bills, of_first, strict=True) if early is side] for side in (True, False)]
    return [part for part in sides if part]
