"""What each question has cost so far. A request with many questions is split over them, to the last micro-dollar.

What every way of asking a server needs: the wire, the pictures, the prices, and the book."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from models.openai.bounds import Bounds
from models.openai.client import Reply, Wire, trail
from models.openai.config import OpenAIConfig
from models.openai.errors import Declined
from models.openai.probe import Abilities
from models.oracle import Answer, Money, OracleIdentity, Question, Usage, Verdict, seen_as_it_was
from models.prices import Tokens, bound, settled, shares
from models.prompting.pictures import Pictures
from models.prompting.prompts import Message, Picture
from sources.errors import DatasetError

NOTHING = Tokens()
RAW_LIMIT = 4_000  # characters of a reply that are kept with an answer


@dataclass(slots=True)
class Bill:
    """One question on its way to an answer. `weight` is at most what one request with it alone would cost."""

    question: Question
    weight: Money
    requests: int = 0
    tokens: Tokens = NOTHING
    cost: Money = 0
    refusals: int = 0  # of the question alone
    started: float = field(default_factory=time.monotonic)

    def answer(self, verdict: Verdict, by: str, *, raw: str = "", **rest: Any) -> Answer:
        tokens = self.tokens
        usage = Usage(self.requests, tokens.input, tokens.output, tokens.cached, tokens.reasoning)
        seconds = round(time.monotonic() - self.started, 6)
        raw = raw.encode("utf-8", "replace").decode("utf-8")[:RAW_LIMIT]
        return Answer(self.question, verdict, by, usage=usage, cost=self.cost, seconds=seconds, raw=raw, **rest)


def charge(bills: Sequence[Bill], tokens: Tokens, cost: Money) -> None:
    """Book one request on the questions that it carried, in proportion to their weights."""
    weights = [bill.weight for bill in bills]
    kinds = (tokens.input, tokens.output, tokens.cached, tokens.cache_write, tokens.reasoning)
    columns = [shares(total, weights) for total in kinds]
    for bill, money, *counts in zip(bills, shares(cost, weights), *columns, strict=True):
        bill.tokens += Tokens(*counts)
        bill.cost += money
    bills[0].requests += 1


Emit = Callable[[Answer], None]


@dataclass(frozen=True, slots=True)
class Spelling:
    """How an endpoint writes the parts of a message."""

    text: str
    picture: Callable[[str], dict[str, Any]]

    def part(self, text: str) -> dict[str, Any]:
        return {"type": self.text, "text": text}


CHAT = Spelling("text", lambda url: {"type": "image_url", "image_url": {"url": url}})
DECISIONS = Spelling("input_text", lambda url: {"type": "input_image", "image_url": url})


@dataclass(frozen=True, slots=True)
class Desk:
    config: OpenAIConfig
    abilities: Abilities
    bounds: Bounds
    wire: Wire
    pictures: Pictures
    identity: OracleIdentity

    @property
    def by(self) -> str:
        return str(self.identity)

    def bills(self, questions: Sequence[Question]) -> list[Bill]:
        return [Bill(question, self.bounds.weight(question)) for question in questions]

    def book(self, bills: Sequence[Bill], reply: Reply) -> None:
        """Charge a reply to its questions. One that says no usage is charged with the most it can have been: it may
        have cost something, and a budget must hold. What is not even JSON did not come from the model."""
        questions = [bill.question for bill in bills]
        trail().paid.update(questions)
        if reply.tokens is None and reply.data is None:
            bills[0].requests += 1
            return
        tariff = self.bounds.tariff(questions[0])
        if reply.tokens is not None:
            charge(bills, reply.tokens, settled(tariff, reply.tokens))
        else:
            most = self.bounds.request(questions)
            charge(bills, most, bound(tariff, most))

    async def messages(self, messages: Sequence[Message], spelling: Spelling) -> list[dict[str, Any]]:
        return [{"role": one.role, "content": await self._content(one, spelling)} for one in messages]

    async def _content(self, message: Message, spelling: Spelling) -> str | list[dict[str, Any]]:
        """Plain text where there are no pictures: some servers take nothing else from models that do not see."""
        if all(isinstance(part, str) for part in message.parts):
            return message.text
        parts: list[dict[str, Any]] = []
        text = ""
        for part in message.parts:
            if isinstance(part, str):
                text += part
                continue
            urls = await self._urls(part)
            text += f"({len(urls)} frames of one moving picture, in order)\n" if len(urls) > 1 else ""
            parts.append(spelling.part(text))
            parts.extend(self._picture(url, spelling) for url in urls)
            text = ""
        return [*parts, spelling.part(text)] if text else parts

    def _picture(self, url: str, spelling: Spelling) -> dict[str, Any]:
        part = spelling.picture(url)
        if self.config.detail != "auto":
            (part["image_url"] if isinstance(part["image_url"], dict) else part)["detail"] = self.config.detail
        return part

    async def _urls(self, picture: Picture) -> tuple[str, ...]:
        """Raises Declined for a picture that cannot be shown."""
        known = self.pictures.known(picture.example)
        if known is not None:
            return known
        try:
            with seen_as_it_was():
                return await asyncio.to_thread(self.pictures.urls, picture.example)
        except DatasetError as problem:
            raise Declined(str(problem)) from None


async def all_of(work: Sequence[Any]) -> None:
    """Let all of it come to its end, then raise the first error: answers that are under way are paid for."""
    for result in await asyncio.gather(*work, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result
