"""Questions that have a request of their own: what it shows, the schema of its reply, and how the reply is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from models.oracle import Compare, Why
from models.prompting.brief import Brief
from models.prompting.prompts import Message, compare_messages, compare_schema
from models.prompting.reasons import parse_reason, reason_schema, why_messages
from models.prompting.replies import Reading, parse_feature

Single = Compare | Why
NO_BRIEF = Brief()


@dataclass(frozen=True, slots=True)
class SingleForm:
    name: str  # of the schema
    messages: list[Message]
    schema: dict[str, Any]
    read: Callable[[str], Reading]


def single_form(question: Single, brief: Brief = NO_BRIEF) -> SingleForm:
    if isinstance(question, Why):
        read = partial(parse_reason, question=question)
        return SingleForm("reason", brief.told(why_messages(question)), reason_schema(question), read)
    told = brief.told(compare_messages(question), comparing=True)
    return SingleForm("feature", told, compare_schema(question), partial(parse_feature, question=question))
