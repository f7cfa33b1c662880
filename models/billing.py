"""What each question has cost so far. A request with many questions is split over them, to the last micro-dollar."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from models.oracle import Answer, Money, Question, Usage, Verdict
from models.prices import Tokens, shares

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
