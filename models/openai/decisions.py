"""Labels by the decisions endpoint: a probability for each of up to 400 predicates about the same material."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from models.openai.chat import label_answer
from models.openai.client import Reply
from models.openai.session import DECISIONS, Bill, Delivery, Session
from models.oracle import Label, Verdict
from models.prompting import arranged, material_messages, predicates

YES_FROM = 0.5


async def ask_decisions(session: Session, labels: Sequence[Label], delivery: Delivery) -> None:
    await _ask(session, session.bills(arranged(labels)), session.config.asks, delivery)


async def _ask(session: Session, bills: list[Bill], asks: int, delivery: Delivery) -> None:
    """One call for all of them; what it leaves open is asked again."""

    async def ask(part: list[Bill]) -> Reply:
        return await session.send("decisions", part, await _body(session, part), delivery)

    async def read(part: list[Bill], reply: Reply) -> None:
        await _read(session, part, reply, asks, delivery)

    await session.ask_or_halve(bills, ask, read, delivery)


async def _read(session: Session, bills: list[Bill], reply: Reply, asks: int, delivery: Delivery) -> None:
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
        await _ask(session, rest, asks - 1, delivery)
        return
    note = "the reply does not answer this predicate"
    for bill in rest:
        delivery.emit(bill.answer(Verdict.UNREADABLE, session.by, raw=reply.text, note=note))


async def _body(session: Session, bills: Sequence[Bill]) -> dict[str, Any]:
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
