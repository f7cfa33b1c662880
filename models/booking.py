"""How answers, and what they cost, are written into the books."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from models.oracle import Answer, Introduced, Money, Oracle
from store import AnswerRecord, Store

LEASE_SECONDS = 900.0  # outlasts the longest time-out of any call


def taken_over(oracle: Oracle, store: Store, run_id: str, budget: Money | None) -> Money:
    """What it has cost to find out who answers, where no other run pays for that already."""
    return store.take_over(oracle.account, run_id, budget=budget) if isinstance(oracle, Introduced) else 0


def record_of(
    answer: Answer, key: str, fence: int, question: Mapping[str, Any], oracle: str, identity: Mapping[str, Any]
) -> AnswerRecord:
    return AnswerRecord(
        key=key,
        fence=fence,
        oracle=oracle,
        kind=question["kind"],
        question=question,
        answer=answer.to_json(),
        cost=answer.cost - answer.booked,
        requests=answer.usage.requests,
        input_tokens=answer.usage.input_tokens,
        output_tokens=answer.usage.output_tokens,
        seconds=answer.seconds,
        identity=identity,
    )
