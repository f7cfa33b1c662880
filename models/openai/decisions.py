"""Labels by the decisions endpoint: a probability for each of up to 400 predicates about the same material."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from models.openai.chat import halves, label_answer
from models.openai.errors import Declined, TooLong
from models.openai.session import DECISIONS, Bill, Desk, Emit, all_of
from models.oracle import Label, Verdict
from models.prompting.prompts import arranged, material_messages, predicates

YES_FROM = 0.5


async def ask_decisions(desk: Desk, labels: Sequence[Label], emit: Emit) -> None:
    await _ask(desk, desk.bills(arranged(labels)), desk.config.asks, emit)


async def _ask(desk: Desk, bills: list[Bill], asks: int, emit: Emit) -> None:
    """One call for all of them; what it leaves open is asked again."""
    labels = [bill.question for bill in bills if isinstance(bill.question, Label)]
    try:
        reply = await desk.wire.decide(await _body(desk, labels), desk.bounds.request(labels).input)
    except (TooLong, Declined) as fault:
        if len(bills) == 1:
            emit(bills[0].answer(Verdict.REFUSED, desk.by, note=str(fault)))
        else:
            await all_of([_ask(desk, part, asks, emit) for part in halves(bills)])
        return
    desk.book(bills, reply)
    answers = answers_by_place(reply.data or {}, len(bills))
    rest = []
    for place, bill in enumerate(bills):
        answer = answers.get(place)
        refused = answer is not None and answer["type"] == "refusal"
        bill.refusals += refused
        if answer is None or (refused and asks > 1 and bill.refusals < desk.config.refusals):
            rest.append(bill)
        elif refused:
            raw = json.dumps(answer)
            emit(bill.answer(Verdict.REFUSED, desk.by, raw=raw, note="the model declined to answer"))
        else:
            probability = float(answer["probability"])
            emit(label_answer(desk, bill, probability >= YES_FROM, json.dumps(answer), probability))
    if rest and asks > 1:
        await _ask(desk, rest, asks - 1, emit)
        return
    for bill in rest:
        emit(bill.answer(Verdict.UNREADABLE, desk.by, raw=reply.text, note="the reply does not answer this predicate"))


async def _body(desk: Desk, labels: Sequence[Label]) -> dict[str, Any]:
    questions = []
    for number, (text, data) in enumerate(predicates(labels), start=1):
        instructions = [DECISIONS.part(text), {"type": "input_json", "data": data}]
        questions.append({"type": "predicate", "name": str(number), "instructions": instructions})
    material = await desk.messages(material_messages(labels), DECISIONS)
    return {"model": desk.config.model, "input": material, "questions": questions}


def answers_by_place(data: dict[str, Any], count: int) -> dict[int, dict[str, Any]]:
    """Usable answers by the name they bear; by their order only where none bears one and none is missing."""
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
    return answer.get("type") == "predicate" and math.isfinite(probability) and 0 <= probability <= 1
