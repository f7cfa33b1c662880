"""Questions by chat completions, with structured output where the server enforces it and else JSON in the text; and
labels by the decisions endpoint, a probability for each of up to 400 predicates about the same material."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from models.openai.client import ChatMessage, Reply
from models.openai.errors import Declined, TooLong
from models.openai.label_groups import rectangles
from models.openai.probe import ASKED_LOGPROBS, response_format
from models.openai.session import CHAT, DECISIONS, Bill, Delivery, Session, all_of, halves
from models.oracle import Answer, Label, Question, Single, Verdict, digest_of
from models.prompting import (
    LabelForm,
    Message,
    Reading,
    SingleForm,
    arranged,
    found_in,
    is_refusal,
    label_chances,
    label_form,
    material_messages,
    parse_labels,
    predicates,
    repair_messages,
    single_form,
)


async def ask_single(session: Session, question: Single, delivery: Delivery) -> None:
    """Ask until the reply is usable: every other time with the unusable reply and what was wrong with it."""
    [bill] = session.bills([question])
    form = single_form(question, session.config.brief)
    plain = form.messages
    messages, readings, message = plain, list[Reading](), ChatMessage("")
    for ask in range(session.config.asks):
        repairs = messages is not plain
        if readings and not session.affords([bill], delivery, repairs=repairs):
            break
        try:
            body = await _body(session, messages, [question], form.name, form.schema, ask)
            reply = await session.send("chat", [bill], body, delivery, repairs=repairs)
        except (TooLong, Declined) as fault:
            delivery.emit(bill.answer(Verdict.REFUSED, session.by, note=str(fault)))
            return
        message = reply.message
        readings.append(reading := _reading(message, form))
        bill.refusals += reading.verdict is Verdict.REFUSED
        if reading.verdict not in (Verdict.UNREADABLE, Verdict.REFUSED) or bill.refusals >= session.config.refusals:
            break
        repairable = messages is plain and bool(message.text) and not message.cut and not bill.refusals
        messages = repair_messages(plain, message.text, reading.problem) if repairable else plain
    last = readings[-1]
    delivery.emit(bill.answer(last.verdict, session.by, raw=message.text, **found_in(readings)))


def _reading(message: ChatMessage, form: SingleForm) -> Reading:
    if message.refused:
        return Reading(Verdict.REFUSED, problem=message.note)
    reading = form.read(message.text)
    unread = reading.verdict is Verdict.UNREADABLE
    return Reading(Verdict.UNREADABLE, problem=message.note) if unread and message.note else reading


async def ask_labels(session: Session, labels: Sequence[Label], delivery: Delivery) -> None:
    bills = session.bills(arranged(labels))
    async with session.ahead_of_others(form_of(session, bills).prefix):
        await ask_label_bills(session, bills, session.config.asks, delivery)


async def ask_label_bills(session: Session, bills: list[Bill], asks: int, delivery: Delivery) -> None:
    """One request for all of them, or for each part that fits one; what it leaves open is asked again, in smaller
    groups where that may help."""
    requests = _requests_of(bills)
    await all_of([_ask_together(session, part, asks, delivery) for part in requests])


def _requests_of(bills: list[Bill]) -> list[list[Bill]]:
    """The labels, in parts that one request can carry each."""
    labels = [bill.question for bill in bills if isinstance(bill.question, Label)]
    return [[bills[place] for place in places] for places in rectangles(labels)]


async def _ask_together(session: Session, bills: list[Bill], asks: int, delivery: Delivery) -> None:
    async def ask(part: list[Bill]) -> Reply:
        return await session.send("chat", part, await label_body(session, part, session.config.asks - asks), delivery)

    async def read(part: list[Bill], reply: Reply) -> None:
        await _read_labels(session, part, reply, asks - 1, delivery)

    await session.ask_or_halve(bills, ask, read, delivery)


async def _read_labels(session: Session, bills: list[Bill], reply: Reply, asks: int, delivery: Delivery) -> None:
    """Emit the labels that a reply holds, and ask for the others while `asks` are left."""
    message = reply.message
    paths = form_of(session, bills).paths
    values = {} if message.refused else parse_labels(message.text, paths)
    chances = label_chances(message.text, paths, message.tokens)
    for position, value in values.items():
        raw = json.dumps({".".join(paths[position]): value})
        delivery.emit(label_answer(session, bills[position], value, raw, chances.get(position)))
    refused = message.refused or (not values and is_refusal(message.text))
    if refused and len(bills) == 1:
        bills[0].refusals += 1
    rest = [bill for position, bill in enumerate(bills) if position not in values]
    requests = _requests_of(rest)
    await all_of([_ask_again(session, part, reply, refused, asks, delivery) for part in requests])


async def _ask_again(
    session: Session, rest: list[Bill], reply: Reply, refused: bool, asks: int, delivery: Delivery
) -> None:
    """Ask for labels that a reply lacks, while `asks` and what is reserved for them are left."""
    message = reply.message
    enough = len(rest) == 1 and rest[0].refusals >= session.config.refusals
    if asks <= 0 or enough or not session.affords(rest, delivery):
        verdict = Verdict.REFUSED if refused else Verdict.UNREADABLE
        note = message.note or ("the model declined to answer" if refused else "the reply does not answer this item")
        for bill in rest:
            delivery.emit(bill.answer(verdict, session.by, raw=message.text, note=note))
        return
    groups = [rest]
    if refused or message.cut:
        # The last ask is for each alone: one example that is refused must not take others with it.
        groups = [[bill] for bill in rest] if asks == 1 else halves(rest)
    await all_of([ask_label_bills(session, part, asks, delivery) for part in groups])


def label_answer(session: Session, bill: Bill, value: bool, raw: str, probability: float | None = None) -> Answer:
    verdict = Verdict.YES if value else Verdict.NO
    return bill.answer(verdict, session.by, raw=raw, probability=probability)


def form_of(session: Session, bills: Sequence[Bill]) -> LabelForm:
    """How a request with these labels, which must be all that it carries, asks for them."""
    labels = [bill.question for bill in bills if isinstance(bill.question, Label)]
    return label_form(labels, session.config.brief)


async def label_body(session: Session, bills: Sequence[Bill], ask: int = 0) -> dict[str, Any]:
    form, labels = form_of(session, bills), [bill.question for bill in bills]
    body = await _body(session, form.messages, labels, "labels", form.schema, ask)
    wanted = ASKED_LOGPROBS if session.config.logprobs else {}
    return body | {name: value for name, value in wanted.items() if name not in session.abilities.missing}


async def _body(
    session: Session,
    messages: Sequence[Message],
    questions: Sequence[Question],
    name: str,
    schema: dict[str, Any],
    ask: int,
) -> dict[str, Any]:
    config, abilities = session.config, session.abilities
    seed = int(digest_of([ask, *(question.content for question in questions)])[:7], 16)
    body: dict[str, Any] = {
        "model": config.model,
        "messages": await session.messages(messages, CHAT),
        abilities.limit: session.bounds.reply_tokens(questions),
        "seed": seed,
        "temperature": config.temperature,
        "reasoning_effort": config.reasoning_effort,
    }
    if abilities.format:
        body["response_format"] = response_format(abilities.format, name, schema)
    return {key: value for key, value in body.items() if value is not None and key not in abilities.missing}


YES_FROM = 0.5


async def ask_decisions(session: Session, labels: Sequence[Label], delivery: Delivery) -> None:
    await _ask_decisions(session, session.bills(arranged(labels)), session.config.asks, delivery)


async def _ask_decisions(session: Session, bills: list[Bill], asks: int, delivery: Delivery) -> None:
    """One call for all of them; what it leaves open is asked again."""

    async def ask(part: list[Bill]) -> Reply:
        return await session.send("decisions", part, await _decisions_body(session, part), delivery)

    async def read(part: list[Bill], reply: Reply) -> None:
        await _read_decisions(session, part, reply, asks, delivery)

    await session.ask_or_halve(bills, ask, read, delivery)


async def _read_decisions(session: Session, bills: list[Bill], reply: Reply, asks: int, delivery: Delivery) -> None:
    answers = answers_by_position(reply.data or {}, len(bills))
    rest = []
    for position, bill in enumerate(bills):
        answer = answers.get(position)
        refused = answer is not None and answer["type"] == "refusal"
        bill.refusals += refused
        if answer is None or (refused and asks > 1 and bill.refusals < session.config.refusals):
            rest.append(bill)
        elif refused:
            note = "the model declined to answer"
            delivery.emit(bill.answer(Verdict.REFUSED, session.by, raw=json.dumps(answer), note=note))
        else:
            probability = float(answer["probability"])
            delivery.emit(label_answer(session, bill, probability >= YES_FROM, json.dumps(answer), probability))
    if rest and asks > 1 and session.affords(rest, delivery):
        await _ask_decisions(session, rest, asks - 1, delivery)
        return
    note = "the reply does not answer this predicate"
    for bill in rest:
        delivery.emit(bill.answer(Verdict.UNREADABLE, session.by, raw=reply.text, note=note))


async def _decisions_body(session: Session, bills: Sequence[Bill]) -> dict[str, Any]:
    labels = [bill.question for bill in bills if isinstance(bill.question, Label)]
    questions = []
    for number, (text, data) in enumerate(predicates(labels), start=1):
        instructions = [DECISIONS.part(text), {"type": "input_json", "data": data}]
        questions.append({"type": "predicate", "name": str(number), "instructions": instructions})
    material = await session.messages(session.config.brief.added_to(material_messages(labels)), DECISIONS)
    return {"model": session.config.model, "input": material, "questions": questions}


def answers_by_position(data: dict[str, Any], count: int) -> dict[int, dict[str, Any]]:
    """Usable answers by their name; by their order only if none has a name and none is missing."""
    answers = data.get("answers")
    if not isinstance(answers, list):
        return {}
    usable = [(place, answer) for place, answer in enumerate(answers) if _is_usable(answer)]
    if all(answer.get("name") is None for _, answer in usable):
        return dict(usable) if len(answers) == count else {}
    places = {str(number): number - 1 for number in range(1, count + 1)}
    named = [(places.get(str(answer.get("name"))), answer) for _, answer in usable]
    once = [place for place, _ in named]
    return {place: answer for place, answer in named if place is not None and once.count(place) == 1}


def _is_usable(answer: object) -> bool:
    if not isinstance(answer, dict):
        return False
    if answer.get("type") == "refusal":
        return True
    probability = answer.get("probability")
    if isinstance(probability, bool) or not isinstance(probability, int | float):
        return False
    return answer.get("type") == "predicate" and 0 <= probability <= 1
