"""Questions by chat completions, with structured output where the server enforces it and else JSON in the text; and
labels by the decisions endpoint, a probability for each of up to 400 predicates about the same material."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from twothirds.models.openai.client import ChatMessage, Reply
from twothirds.models.openai.config import OpenAIConfig
from twothirds.models.openai.errors import Declined, TooLong
from twothirds.models.openai.label_groups import rectangles
from twothirds.models.openai.probe import ASKED_LOGPROBS, response_format
from twothirds.models.openai.session import CHAT, DECISIONS, Bill, Delivery, Session, all_of, halves, is_new_form
from twothirds.models.oracle import USABLE, Answer, Label, Question, Single, Verdict, digest_of
from twothirds.models.prompting import (
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
)

Asked = TypeVar("Asked", bound=Question)
AGAIN_TEMPERATURE = 0.7  # at least, of a repetition: at 0 a model says again what it has said


def reworded(question: Asked, ask: int) -> Asked:
    """The question in the words and the order that another voter is shown."""
    return replace(question, voter=question.voter + 1_000 * ask) if ask else question


async def ask_single(session: Session, question: Single, delivery: Delivery) -> None:
    """Ask until the reply is usable: once with the unusable reply and what was wrong with it, else in other words.
    A feature that is known is an answer too, where that repair brings no other."""
    [bill] = session.bills([question])
    repair, replies, first = list[Message](), list[tuple[Reading, str]](), session.first_ask(question)
    for ask in range(first, first + session.config.asks):
        if not (repairs := bool(repair) and len(replies) == 1):
            bill.asked = reworded(question, ask)
            form = session.bounds.single(bill.asked)
        body = await _body(session, repair if repairs else form.messages, [question], form.name, form.schema, ask)
        if not is_new_form([bill], body) or (replies and not session.affords([bill], delivery, repairs=repairs)):
            break
        try:
            reply = await session.send("chat", [bill], body, delivery, repairs=repairs)
        except (TooLong, Declined) as fault:
            delivery.emit(bill.answer(Verdict.REFUSED, session.by, note=str(fault)))
            return
        message = reply.message
        replies.append((reading := _reading(message, form), message.text))
        bill.refusals += reading.verdict is Verdict.REFUSED
        is_answer = reading.verdict in USABLE and not reading.repeats
        if is_answer or bill.refusals >= session.config.refusals or (len(replies) > 1 and replies[0][0].repeats):
            break
        if not repair and message.text and not message.cut and not bill.refusals:
            repair = repair_messages(form.messages, message.text, reading.problem)
    reading, raw = next((pair for pair in reversed(replies) if pair[0].verdict in USABLE), replies[-1])
    before = [other for other, _ in replies if other is not reading]
    delivery.emit(bill.answer(reading.verdict, session.by, raw=raw, **found_in([*before, reading])))


def _reading(message: ChatMessage, form: SingleForm) -> Reading:
    if message.refused:
        return Reading(Verdict.REFUSED, problem=message.note)
    reading = form.read(message.whole)
    unread = reading.verdict is Verdict.UNREADABLE
    return Reading(Verdict.UNREADABLE, problem=message.note) if unread and message.note else reading


async def ask_labels(session: Session, labels: Sequence[Label], delivery: Delivery) -> None:
    await ask_label_bills(session, session.bills(arranged(labels)), session.config.asks, delivery)


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
    number = _reword(session, bills, asks)

    async def ask(part: list[Bill]) -> Reply | None:
        body = await label_body(session, part, number)
        return await session.send("chat", part, body, delivery) if is_new_form(part, body) else None

    async def read(part: list[Bill], reply: Reply) -> None:
        await _read_labels(session, part, reply, asks - 1, delivery)

    await session.ask_or_halve(bills, ask, read, delivery)


def _reword(session: Session, bills: list[Bill], asks: int) -> int:
    """Put the labels in the words and the order in which they are asked now; the number of this ask."""
    number = session.config.asks - asks + max(session.first_ask(bill.question) for bill in bills)
    labels = [reworded(bill.question, number) for bill in bills if isinstance(bill.question, Label)]
    for bill, label in zip(bills, labels, strict=True):
        bill.asked = label
    places = {id(label): place for place, label in enumerate(arranged(labels))}
    bills.sort(key=lambda bill: places[id(bill.asked)])
    return number


async def _read_labels(session: Session, bills: list[Bill], reply: Reply, asks: int, delivery: Delivery) -> None:
    """Emit the labels that a reply holds, and ask for the others while `asks` are left."""
    message = reply.message
    paths = form_of(session, bills).paths
    values = {} if message.refused else parse_labels(message.whole, paths, complete=not message.cut)
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
    verdict = Verdict.REFUSED if refused else Verdict.UNREADABLE
    note = message.note or ("the model declined to answer" if refused else "the reply does not answer this item")
    for bill in rest:
        bill.unusable = verdict, message.text, note
    enough = len(rest) == 1 and rest[0].refusals >= session.config.refusals
    if asks <= 0 or enough or not session.affords(rest, delivery):
        for bill in rest:
            delivery.emit(bill.unanswered(session.by))
        return
    groups = [rest]
    if refused or message.cut:
        # The last ask is for each alone: one example that is refused must not take others with it.
        groups = [[bill] for bill in rest] if asks == 1 else halves(rest)
    await all_of([ask_label_bills(session, part, asks, delivery) for part in groups])


def label_answer(
    session: Session, bill: Bill, value: bool | None, raw: str, probability: float | None = None
) -> Answer:
    """The probability decides where it is known, else the value that the reply says."""
    is_yes = value if probability is None else probability >= session.config.yes_from
    return bill.answer(Verdict.YES if is_yes else Verdict.NO, session.by, raw=raw, probability=probability)


def form_of(session: Session, bills: Sequence[Bill]) -> LabelForm:
    """How a request with these labels, which must be all that it carries, asks for them."""
    labels = [bill.asked for bill in bills if isinstance(bill.asked, Label)]
    return label_form(labels, session.config.brief, listing=session.config.label_reply)


async def label_body(session: Session, bills: Sequence[Bill], ask: int = 0) -> dict[str, Any]:
    form, labels = form_of(session, bills), [bill.question for bill in bills]
    body = await _body(session, form.messages, labels, "labels", form.schema, ask)
    one_word = form.schema is None and session.abilities.next_word
    wanted = ASKED_LOGPROBS if session.config.logprobs or one_word else {}
    return body | {name: value for name, value in wanted.items() if name not in session.abilities.missing}


async def _body(
    session: Session,
    messages: Sequence[Message],
    questions: Sequence[Question],
    name: str,
    schema: dict[str, Any] | None,
    ask: int,
) -> dict[str, Any]:
    config, abilities = session.config, session.abilities
    seed = int(digest_of([ask, *(question.content for question in questions)])[:7], 16)
    body: dict[str, Any] = {
        "model": config.model,
        "messages": await session.messages(messages, CHAT),
        abilities.limit: session.bounds.reply_tokens(questions),
        "seed": seed,
        "temperature": _temperature(config, ask),
        "reasoning_effort": config.reasoning_effort,
    }
    if abilities.format and schema is not None:
        body["response_format"] = response_format(abilities.format, name, schema)
    return {key: value for key, value in body.items() if value is not None and key not in abilities.missing}


def _temperature(config: OpenAIConfig, ask: int) -> float | None:
    if config.temperature is None or not ask:
        return config.temperature
    return max(config.temperature, AGAIN_TEMPERATURE)


async def ask_decisions(session: Session, labels: Sequence[Label], delivery: Delivery) -> None:
    await _ask_decisions(session, session.bills(arranged(labels)), session.config.asks, delivery)


async def _ask_decisions(session: Session, bills: list[Bill], asks: int, delivery: Delivery) -> None:
    """One call for all of them; what it leaves open is asked again."""
    _reword(session, bills, asks)

    async def ask(part: list[Bill]) -> Reply | None:
        body = await _decisions_body(session, part)
        return await session.send("decisions", part, body, delivery) if is_new_form(part, body) else None

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
            delivery.emit(label_answer(session, bill, None, json.dumps(answer), probability))
    for bill in rest:
        bill.unusable = Verdict.UNREADABLE, reply.text, "the reply does not answer this predicate"
    if rest and asks > 1 and session.affords(rest, delivery):
        await _ask_decisions(session, rest, asks - 1, delivery)
        return
    for bill in rest:
        delivery.emit(bill.unanswered(session.by))


async def _decisions_body(session: Session, bills: Sequence[Bill]) -> dict[str, Any]:
    labels = [bill.asked for bill in bills if isinstance(bill.asked, Label)]
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
