"""Questions that have a request of their own: what it shows, the schema of its reply, and how the reply is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from twothirds.models.oracle import Compare, Family, Single, Verdict, Why
from twothirds.models.prompting.comparisons import compare_messages, compare_schema, parse_feature, usual_reply
from twothirds.models.prompting.families import (
    choose_messages,
    choose_schema,
    family_messages,
    family_schema,
    parse_choice,
    parse_family,
)
from twothirds.models.prompting.feature_names import clean, sounds_like_an_instruction
from twothirds.models.prompting.prompts import Brief, Message, example_parts, feature_line, strict, system_message
from twothirds.models.prompting.replies import Reading, no_object, object_with, truth_of, unreadable

NO_BRIEF = Brief()
SINGLE_VERSION = "2"  # of these prompts, and of labels one by one
NAMED_TOKENS = 200  # of a reply with a name and a definition
USUAL_ATTRIBUTE = '{"found": true, "attribute": "a name", "definition": "What a few words say.", "ordered": false}'
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
    usual_reply: str = USUAL_ATTRIBUTE


def single_form(question: Single, brief: Brief = NO_BRIEF) -> SingleForm:
    """How a question that shares no request is asked."""
    if isinstance(question, Compare):
        messages = brief.added_to(compare_messages(question), comparing=True)
        read = partial(parse_feature, question=question)
        schema, usual = compare_schema(question), usual_reply(question)
        return SingleForm("feature", messages, schema, read, NAMED_TOKENS * question.most, usual)
    if isinstance(question, Why):
        messages, schema = brief.added_to(why_messages(question)), reason_schema(question)
        return SingleForm(
            "reason", messages, schema, partial(parse_reason, question=question), usual_reply=USUAL_REASON
        )
    if isinstance(question, Family):
        messages, schema = brief.added_to(family_messages(question)), family_schema(question)
        values = len(question.features) + 4  # some that are missing
        most, usual = NAMED_TOKENS + NAMED_TOKENS // 3 * values, USUAL_ATTRIBUTE + USUAL_VALUE * (values // 2)
        return SingleForm("attribute", messages, schema, partial(parse_family, question=question), most, usual)
    messages, schema = brief.added_to(choose_messages(question)), choose_schema(question)
    return SingleForm("value", messages, schema, partial(parse_choice, question=question), 30, '{"value": 1}')


REASON_LIMIT, QUOTE_LIMIT = 400, 300

# One wording per voter, in turn: independent votes should not share the quirks of one sentence.
WHY = (
    "Does the example have this feature? Decide by the definition, and say in one sentence why.",
    "Judge by its definition whether this feature is true of the example, and give the reason in one sentence.",
    "Is this feature present in the example? Give your decision and, in one sentence, what it rests on.",
)
REASON = '"reason" names what can be seen or read in the example itself, not the definition over again.'
QUOTE = '"quote" holds the words of the text that show it, copied letter by letter; it is empty if there are none.'
SHAPE = 'Answer with one JSON object and nothing else, with the keys "has" (true or false), "reason"'


def why_messages(question: Why) -> list[Message]:
    quoting = question.example.text is not None
    shape = f'{SHAPE} and "quote" (texts).' if quoting else f"{SHAPE} (a text)."
    lines = "\n".join([WHY[question.voter % len(WHY)], REASON, *([QUOTE] if quoting else []), shape])
    feature = f"Feature: {feature_line(question.feature.name, question.feature.definition)}\n"
    return [system_message(), Message("user", (*example_parts("Example", question.example), feature, lines))]


def reason_schema(question: Why) -> dict[str, Any]:
    keys = {"has": {"type": "boolean"}, "reason": {"type": "string"}}
    return strict(keys | ({"quote": {"type": "string"}} if question.example.text is not None else {}))


def parse_reason(reply: str, question: Why) -> Reading:
    """A text that is said to have the feature is quoted, unless a picture may show it."""
    data = object_with(reply, ("has", "reason"))
    if data is None:
        return no_object(reply, "keys has and reason")
    has, reason, quote = truth_of(data.get("has")), data.get("reason"), data.get("quote") or ""
    if has is None or not isinstance(reason, str) or not isinstance(quote, str):
        return unreadable('"has" must be true or false, and the reason a text')
    reason = clean(reason)
    if not any(character.isalpha() for character in reason) or len(reason) > REASON_LIMIT:
        return unreadable(f"the reason must be one sentence of at most {REASON_LIMIT} characters")
    if sounds_like_an_instruction(reason):
        return unreadable("the reason is an instruction, not a description")
    problem = _quote_problem(quote, question, has=has)
    if problem:
        return unreadable(problem)
    return Reading(Verdict.YES if has else Verdict.NO, reason=reason, quote=quote)


def _quote_problem(quote: str, question: Why, *, has: bool) -> str:
    text = question.example.text
    if not quote:
        needed = has and text is not None and question.example.image is None
        return "the words of the text that show it are not quoted" if needed else ""
    if text is None or quote not in text:
        return "the quote is not in the text: copy it letter by letter"
    return f"the quote is longer than {QUOTE_LIMIT} characters" if len(quote) > QUOTE_LIMIT else ""
