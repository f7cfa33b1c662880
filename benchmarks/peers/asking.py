"""What one would write by hand: the SDK, JSON schemas, threads, and a count of what was spent."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

from openai import OpenAI, OpenAIError

from benchmarks.peers.job import MODEL, PRICE
from models.prices import parse_price, read_usage, settled
from sources import Example

THREADS = 16
ATTEMPTS = 3  # of a request whose reply cannot be read
Content = str | list[dict[str, Any]]


class Purse:
    """Asks until the next requests could exceed the budget; then every answer is None."""

    def __init__(self, base_url: str, budget: float) -> None:
        self._client = OpenAI(base_url=base_url, api_key="none", max_retries=4)
        self._price = parse_price(PRICE)
        self.left = int(Decimal(str(budget)) * 1_000_000)  # micro-dollars
        self._dearest = 0

    def ask(self, instructions: str, content: Content, schema: dict[str, Any]) -> dict[str, Any] | None:
        form = {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema, "strict": True}}
        messages = [{"role": "system", "content": instructions}, {"role": "user", "content": content}]
        request: dict[str, Any] = {"model": MODEL, "messages": messages, "response_format": form}
        for _ in range(ATTEMPTS):
            if self.left < self._dearest:
                return None
            try:
                reply = self._client.chat.completions.create(**request)
            except OpenAIError:
                continue
            tokens = read_usage(reply.model_dump())
            cost = settled(self._price, tokens) if tokens is not None else 0
            self.left -= cost
            self._dearest = max(self._dearest, cost)
            try:
                data = json.loads(reply.choices[0].message.content or "")
            except ValueError:
                continue
            if isinstance(data, dict) and data.keys() >= set(schema["required"]):
                return data
        return None

    def ask_all(
        self, instructions: str, contents: Iterable[Content], schema: dict[str, Any]
    ) -> Iterator[dict[str, Any] | None]:
        """In order, some at a time: after each lot it is known what is left."""
        with ThreadPoolExecutor(THREADS) as pool:
            for lot in batched_by(contents, THREADS):
                affordable = len(lot) if not self._dearest else max(0, self.left // self._dearest)
                asked = lot[:affordable]
                yield from pool.map(lambda content: self.ask(instructions, content, schema), asked)
                yield from [None] * (len(lot) - len(asked))


def batched_by(contents: Iterable[Content], size: int) -> Iterator[list[Content]]:
    every = list(contents)
    return (every[start : start + size] for start in range(0, len(every), size))


def shown(examples: Sequence[Example]) -> Content:
    """One example, or several one after the other."""
    if all(example.image is None for example in examples):
        return "\n\n".join(example.text or "" for example in examples)
    return [picture_part(example) for example in examples]


def shown_groups(first: Sequence[Example], second: Sequence[Example]) -> Content:
    one, other = shown(first), shown(second)
    if isinstance(one, str) and isinstance(other, str):
        return f"Group A\n\n{one}\n\nGroup B\n\n{other}"
    assert isinstance(one, list)
    assert isinstance(other, list)
    return [{"type": "text", "text": "Group A"}, *one, {"type": "text", "text": "Group B"}, *other]


def picture_part(example: Example) -> dict[str, Any]:
    content = base64.b64encode(example.image_bytes()).decode()
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{content}"}}
