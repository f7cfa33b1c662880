"""What every way of asking a server needs: the wire, the pictures, the prices, and the book."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from models.billing import Bill, charge
from models.changed_pictures import seen_as_it_was
from models.media import Pictures
from models.openai_bounds import Bounds
from models.openai_config import OpenAIConfig
from models.openai_errors import Declined
from models.openai_probe import Abilities
from models.openai_wire import Reply, Wire, trail
from models.oracle import Answer, OracleIdentity, Question
from models.prices import bound, settled
from models.prompts import Message, Picture
from sources.errors import DatasetError

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
