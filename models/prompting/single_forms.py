"""Questions that have a request of their own: what it shows, the schema of its reply, and how the reply is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from models.oracle import Compare, Family, Single, Why
from models.prompting.brief import Brief
from models.prompting.families import (
    choose_messages,
    choose_schema,
    family_messages,
    family_schema,
    parse_choice,
    parse_family,
)
from models.prompting.prompts import Message, compare_messages, compare_schema
from models.prompting.reasons import parse_reason, reason_schema, why_messages
from models.prompting.replies import Reading, parse_feature

NO_BRIEF = Brief()
NAMED_TOKENS = 300  # of a reply with a name and a definition
USUAL_NAMED = (
    '{"found": true, "name": "a name of words", "definition": "The example shows something that a few words describe '
    'well.", "have": ["A", "B"], "lack": ["C"]}'
)
USUAL_REASON = (
    '{"has": true, "reason": "The example shows what the definition asks for in one of its parts.", "quote": ""}'
)
USUAL_VALUE = '{"number": 0, "name": "a name", "definition": "The example shows what a few words say."}, '


@dataclass(frozen=True, slots=True)
class SingleForm:
    name: str  # of the schema
    messages: list[Message]
    schema: dict[str, Any]
    read: Callable[[str], Reading]
    most_tokens: int = NAMED_TOKENS  # of a reply, without what a model thinks before it
    usual_reply: str = USUAL_NAMED


def single_form(question: Single, brief: Brief = NO_BRIEF) -> SingleForm:
    """How a question that shares no request is asked."""
    if isinstance(question, Compare):
        messages = brief.of(question).added_to(compare_messages(question), comparing=True)
        read = partial(parse_feature, question=question)
        return SingleForm("feature", messages, compare_schema(question), read, NAMED_TOKENS * question.most)
    if isinstance(question, Why):
        messages, schema = brief.added_to(why_messages(question)), reason_schema(question)
        return SingleForm(
            "reason", messages, schema, partial(parse_reason, question=question), usual_reply=USUAL_REASON
        )
    if isinstance(question, Family):
        messages, schema = brief.added_to(family_messages(question)), family_schema(question)
        values = len(question.features) + 4  # some that are missing
        most, usual = NAMED_TOKENS + NAMED_TOKENS // 3 * values, USUAL_NAMED + USUAL_VALUE * (values // 2)
        return SingleForm("attribute", messages, schema, partial(parse_family, question=question), most, usual)
    messages, schema = brief.added_to(choose_messages(question)), choose_schema(question)
    return SingleForm("value", messages, schema, partial(parse_choice, question=question), 30, '{"value": 1}')
