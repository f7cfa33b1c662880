"""Comparisons and labels by chat completions: structured output where the server enforces it, else JSON in the text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from models.openai.client import Reply, Said
from models.openai.errors import Declined, TooLong
from models.openai.probe import response_format
from models.openai.session import CHAT, Bill, Desk, Emit, all_of
from models.oracle import Answer, Compare, Label, Question, Verdict, digest_of
from models.prompting.prompts import (
    Message,
    arranged,
    compare_messages,
    compare_schema,
    label_messages,
    label_schema,
    repair_messages,
)
from models.prompting.replies import Reading, is_refusal, note_of, parse_feature, parse_labels


async def ask_comparison(desk: Desk, question: Compare, emit: Emit) -> None:
    """Ask until the reply can be used: every other time with the reply that could not, and what was wrong with it."""
    [bill] = desk.bills([question])
    plain = compare_messages(question)
    messages, readings, said = plain, list[Reading](), Said("")
    for ask in range(desk.config.asks):
        try:
            body = await _body(desk, messages, [question], "feature", compare_schema(question), ask)
            reply = await desk.wire.chat(body, desk.bounds.request([question]).input)
        except (TooLong, Declined) as fault:
            emit(bill.answer(Verdict.REFUSED, desk.by, note=str(fault)))
            return
        desk.book([bill], reply)
        said = reply.said
        readings.append(reading := _reading(said, question))
        bill.refusals += reading.verdict is Verdict.REFUSED
        if reading.verdict not in (Verdict.UNREADABLE, Verdict.REFUSED) or bill.refusals >= desk.config.refusals:
            break
        repairs = messages is plain and bool(said.text) and not said.cut and not bill.refusals
        messages = repair_messages(plain, said.text, reading.problem) if repairs else plain
    emit(
        bill.answer(
            readings[-1].verdict,
            desk.by,
            raw=said.text,
            feature=readings[-1].feature,
            shown=readings[-1].shown,
            note=note_of(readings),
        )
    )


def _reading(said: Said, question: Compare) -> Reading:
    if said.refused:
        return Reading(Verdict.REFUSED, problem=said.note)
    reading = parse_feature(said.text, question)
    unread = reading.verdict is Verdict.UNREADABLE
    return Reading(Verdict.UNREADABLE, problem=said.note) if unread and said.note else reading


async def ask_labels(desk: Desk, labels: Sequence[Label], emit: Emit) -> None:
    await ask_label_bills(desk, desk.bills(arranged(labels)), desk.config.asks, emit)


async def ask_label_bills(desk: Desk, bills: list[Bill], asks: int, emit: Emit) -> None:
    """One request for all of them; what it leaves open is asked again, in smaller groups where that may help."""
    try:
        body = await label_body(desk, bills, desk.config.asks - asks)
        reply = await desk.wire.chat(body, desk.bounds.request([bill.question for bill in bills]).input)
    except (TooLong, Declined) as fault:
        if len(bills) == 1:
            emit(bills[0].answer(Verdict.REFUSED, desk.by, note=str(fault)))
        else:
            await all_of([ask_label_bills(desk, part, asks, emit) for part in halves(bills)])
        return
    desk.book(bills, reply)
    await read_labels(desk, bills, reply, asks - 1, emit)


async def read_labels(desk: Desk, bills: list[Bill], reply: Reply, asks: int, emit: Emit) -> None:
    """Give out the labels that a reply holds, and ask for the others while `asks` are left."""
    said = reply.said
    values = {} if said.refused else parse_labels(said.text, len(bills))
    for place, value in values.items():
        emit(label_answer(desk, bills[place], value, raw=json.dumps({str(place + 1): value})))
    rest = [bill for place, bill in enumerate(bills) if place not in values]
    if not rest:
        return
    refused = said.refused or (not values and is_refusal(said.text))
    if refused and len(bills) == 1:
        bills[0].refusals += 1
    if asks <= 0 or (len(bills) == 1 and bills[0].refusals >= desk.config.refusals):
        verdict = Verdict.REFUSED if refused else Verdict.UNREADABLE
        note = said.note or ("the model declined to answer" if refused else "the reply does not answer this item")
        for bill in rest:
            emit(bill.answer(verdict, desk.by, raw=said.text, note=note))
        return
    parts = [rest]
    if refused or said.cut:
        # The last ask is for each alone: one example that is refused must not take others with it.
        parts = [[bill] for bill in rest] if asks == 1 else halves(rest)
    await all_of([ask_label_bills(desk, part, asks, emit) for part in parts])


def label_answer(desk: Desk, bill: Bill, value: bool, raw: str, probability: float | None = None) -> Answer:
    verdict = Verdict.YES if value else Verdict.NO
    return bill.answer(verdict, desk.by, raw=raw, probability=probability)


async def label_body(desk: Desk, bills: Sequence[Bill], ask: int = 0) -> dict[str, Any]:
    labels = [bill.question for bill in bills if isinstance(bill.question, Label)]
    return await _body(desk, label_messages(labels), labels, "labels", label_schema(len(labels)), ask)


async def _body(
    desk: Desk, messages: Sequence[Message], questions: Sequence[Question], name: str, schema: dict[str, Any], ask: int
) -> dict[str, Any]:
    config, abilities = desk.config, desk.abilities
    seed = int(digest_of([ask, *(question.content for question in questions)])[:7], 16)
    body: dict[str, Any] = {
        "model": config.model,
        "messages": await desk.messages(messages, CHAT),
        abilities.limit: desk.bounds.reply_tokens(questions),
        "seed": seed,
        "temperature": config.temperature,
        "reasoning_effort": config.reasoning_effort,
    }
    if abilities.format:
        body["response_format"] = response_format(abilities.format, name, schema)
    return {key: value for key, value in body.items() if value is not None and key not in abilities.missing}


def halves(bills: list[Bill]) -> list[list[Bill]]:
    middle = (len(bills) + 1) // 2
    return [part for part in (bills[:middle], bills[middle:]) if part]
