"""Questions by chat completions, with structured output where the server enforces it and else JSON in the text; and
labels by the decisions endpoint, a probability for each of up to 400 predicates about the same material."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from twothirds.models.openai.account import Account, Bill, Server, Spent
from twothirds.models.openai.client import ChatMessage, ServerReply
from twothirds.models.openai.config import OpenAIConfig
from twothirds.models.openai.errors import Declined, TooLong
from twothirds.models.openai.grouping import rectangles
from twothirds.models.openai.probe import ASKED_LOGPROBS, response_format
from twothirds.models.openai.tokens import REPAIR_TOKENS, Form
from twothirds.models.oracle import USABLE, Label, Question, Single, Verdict, changes_raised, digest_of
from twothirds.models.prices import Tokens
from twothirds.models.prompting import (
    ImagePart,
    Message,
    Reading,
    SheetPart,
    arranged,
    found_in,
    is_refusal,
    label_chances,
    parse_labels,
    repair_messages,
    sheet_url,
)
from twothirds.sources import DatasetError

Asked = TypeVar("Asked", bound=Question)
AGAIN_TEMPERATURE = 0.7  # at least, of a repetition: at 0 a model says again what it has said


async def ask(account: Account) -> None:
    """Ask until the questions of a request have usable replies, or as often as is allowed."""
    if isinstance(account.bills[0].question, Label):
        await ask_labels(account, account.bills, 0)
    else:
        await _ask_single(account, account.bills[0], account.bills[0].question)


def wording(account: Account, ask: int) -> int:
    """Which wording an ask has. What brought no usable answer in an earlier run is not asked in the same words."""
    return ask + (account.server.config.asks if account.request.since else 0)


def _reworded(question: Asked, number: int) -> Asked:
    """The question in the words and the order that another voter is shown."""
    return replace(question, voter=question.voter + 1_000 * number) if number else question


async def _ask_single(account: Account, bill: Bill, question: Single) -> None:
    """Ask until the reply is usable: once with the unusable reply and what was wrong with it, else in other words.
    A feature that is known is an answer too, where that repair brings no other."""
    config, pricing = account.server.config, account.server.pricing
    form, repair, replies = pricing.form([question]), list[Message](), list[tuple[Reading, str]]()
    for ask in range(config.asks):
        if repairs := bool(repair) and len(replies) == 1:
            sent = replace(form, messages=repair)
        else:
            sent = form = pricing.form([_reworded(question, wording(account, ask))])
        try:
            reply = await _send(account, [bill], sent, wording(account, ask), form if repairs else None)
        except (TooLong, Declined) as fault:
            account.answer(bill, Verdict.REFUSED, note=str(fault))
            return
        except Spent:
            break
        message = reply.message
        replies.append((reading := _reading(message, form), message.text))
        bill.refusals += reading.verdict is Verdict.REFUSED
        is_answer = reading.verdict in USABLE and not reading.repeats
        if is_answer or bill.refusals >= config.refusals or (len(replies) > 1 and replies[0][0].repeats):
            break
        if not repair and message.text and not message.cut and not bill.refusals:
            repair = repair_messages(form.messages, message.text, reading.problem)
    if not replies:
        account.give_up([bill])
        return
    reading, raw = next((pair for pair in reversed(replies) if pair[0].verdict in USABLE), replies[-1])
    before = [other for other, _ in replies if other is not reading]
    how = account.server.abilities.format or "text"
    account.answer(bill, reading.verdict, raw=raw, how=how, **found_in([*before, reading]))


def _reading(message: ChatMessage, form: Form) -> Reading:
    if message.refused or form.read is None:
        return Reading(Verdict.REFUSED, problem=message.note)
    reading = form.read(message.whole)
    unread = reading.verdict is Verdict.UNREADABLE
    return Reading(Verdict.UNREADABLE, problem=message.note) if unread and message.note else reading


# --- labels


@dataclass(frozen=True, slots=True)
class LabelReading:
    """What a reply says of the labels in its places."""

    how: str
    text: str
    labels: Mapping[int, tuple[bool | None, float | None]]  # and the probability of yes, where it tells one
    refused: Collection[int] = ()
    raws: Mapping[int, str] = field(default_factory=dict)  # what it says of a place; else its whole text
    note: str = ""  # why others are not labelled
    counts: bool = True  # a refusal is meant for the label in its place
    in_parts: bool = False  # parts of what it lacks may fare better


async def ask_labels(account: Account, bills: Sequence[Bill], ask: int) -> None:
    """One request for all of them, or for each part that fits one; what it leaves open is asked again, in smaller
    groups where that may help."""
    parts = label_parts(account, bills, ask)
    await all_of([_ask_together(account, part, form, ask) for part, form in parts])


def label_parts(account: Account, bills: Sequence[Bill], ask: int) -> list[tuple[list[Bill], Form]]:
    """Parts that one request can carry each, and how it asks for them: labels of some examples with the same
    features each."""
    number = wording(account, ask)
    labels = {bill: _reworded(bill.question, number) for bill in bills if isinstance(bill.question, Label)}
    bill_of = {id(label): bill for bill, label in labels.items()}
    ordered = arranged(list(labels.values()))
    parts = [[ordered[place] for place in part] for part in rectangles(ordered)]
    return [([bill_of[id(label)] for label in part], account.server.pricing.form(part)) for part in parts]


async def _ask_together(account: Account, bills: Sequence[Bill], form: Form, ask: int) -> None:
    """All in one request; if the server finds it too long or declines it, each half in a request of its own."""
    try:
        reply = await _send(account, bills, form, wording(account, ask))
    except (TooLong, Declined) as fault:
        if len(bills) == 1:
            account.answer(bills[0], Verdict.REFUSED, note=str(fault))
        else:
            await all_of([ask_labels(account, half, ask) for half in _halves(bills)])
    except Spent:
        account.give_up(bills)
    else:
        by_decisions = form.endpoint == "decisions"
        reading = read_decisions(reply, len(bills)) if by_decisions else read_labels(account.server, reply, form.paths)
        await conclude(account, dict(enumerate(bills)), reading, ask)


def read_labels(server: Server, reply: ServerReply, paths: Sequence[tuple[str, ...]]) -> LabelReading:
    """A reply of chat to labels that stand at these paths."""
    message, is_alone = reply.message, len(paths) == 1
    values = {} if message.refused else parse_labels(message.whole, paths, complete=not message.cut)
    chances = label_chances(message.text, paths, message.tokens)
    refused = message.refused or (not values and is_refusal(message.text))
    word = "next word" if server.abilities.next_word else "one word"
    return LabelReading(
        how=word if list(paths) == [()] else server.abilities.format or "text",
        text=message.text,
        labels={place: (value, chances.get(place)) for place, value in values.items()},
        refused=range(len(paths)) if refused else (),
        raws={place: json.dumps({".".join(paths[place]): value}) for place, value in values.items()},
        note=message.note or (DECLINED if refused else "the reply does not answer this item"),
        counts=is_alone,
        in_parts=refused or message.cut,
    )


DECLINED = "the model declined to answer"


def read_decisions(reply: ServerReply, count: int) -> LabelReading:
    answers = answers_by_position(reply.data or {}, count)
    chances = {place: float(found["probability"]) for place, found in answers.items() if found["type"] == "predicate"}
    return LabelReading(
        how="decisions",
        text=reply.text,
        labels={place: (None, chance) for place, chance in chances.items()},
        refused=answers.keys() - chances.keys(),
        raws={place: json.dumps(found) for place, found in answers.items()},
        note="the reply does not answer this predicate",
    )


async def conclude(account: Account, bills: Mapping[int, Bill], reading: LabelReading, ask: int) -> None:
    """Answer the labels that a reply holds, and ask for the others again while that is allowed."""
    config, again = account.server.config, list[Bill]()
    for place, bill in bills.items():
        raw = reading.raws.get(place, reading.text)
        if place in reading.labels:
            value, chance = reading.labels[place]
            is_yes = value if chance is None else chance >= config.yes_from  # the probability decides where it is known
            verdict = Verdict.YES if is_yes else Verdict.NO
            account.answer(bill, verdict, raw=raw, probability=chance, how=reading.how)
            continue
        refused = place in reading.refused
        bill.refusals += refused and reading.counts
        bill.verdict, bill.raw = (Verdict.REFUSED if refused else Verdict.UNREADABLE), raw
        bill.note = DECLINED if refused and reading.how == "decisions" else reading.note
        if ask + 1 < config.asks and bill.refusals < config.refusals:
            again.append(bill)
        else:
            account.give_up([bill])
    if not again:
        return
    account.tell()
    groups: list[list[Bill]] = [again]
    if reading.in_parts:
        # The last ask is for each alone: one example that is refused must not take others with it.
        groups = [[bill] for bill in again] if ask + 2 == config.asks else _halves(again)
    await all_of([ask_labels(account, group, ask + 1) for group in groups])


def _halves(bills: Sequence[Bill]) -> list[list[Bill]]:
    """By examples where there are several, else by features: each half can be asked in one request."""
    keys = [bill.question.example.digest if isinstance(bill.question, Label) else "" for bill in bills]
    order = list(dict.fromkeys(keys))
    first = set(order[: (len(order) + 1) // 2])
    middle = (len(bills) + 1) // 2
    of_first = [key in first for key in keys] if len(order) > 1 else [place < middle for place in range(len(bills))]
    sides = [[bill for bill, early in zip(bills, of_first, strict=True) if early is side] for side in (True, False)]
    return [part for part in sides if part]


async def all_of(work: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Wait for all of it, then raise the first error: answers in flight are paid for."""
    if len(work) == 1:
        await work[0]
        return
    for result in await asyncio.gather(*work, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result


def answers_by_position(data: dict[str, Any], count: int) -> dict[int, dict[str, Any]]:
    """Usable decisions by their name; by their order only if none has a name and none is missing."""
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


# --- what is sent


async def _send(
    account: Account, bills: Sequence[Bill], form: Form, number: int, repaired: Form | None = None
) -> ServerReply:
    """Ask in this form; raises Spent where these questions were asked in it before, or may cost no more. One that
    repairs shows the last reply, to the form that is `repaired`, too."""
    server, questions = account.server, [bill.question for bill in bills]
    if form.endpoint == "decisions":
        body = await _decisions_body(server, form)
    else:
        body = await chat_body(server, form, questions, number)
    if not account.is_new(bills, (form.content, body.get("temperature"))):
        raise Spent
    most = server.pricing.most(repaired) + Tokens(REPAIR_TOKENS) if repaired else server.pricing.most(form)
    return await account.send(form.endpoint, body, most, bills)


async def chat_body(server: Server, form: Form, questions: Sequence[Question], number: int = 0) -> dict[str, Any]:
    config, abilities = server.config, server.abilities
    body: dict[str, Any] = {
        "model": config.model,
        "messages": await _messages(server, form.messages, CHAT),
        abilities.limit: form.longest,
        "seed": int(digest_of([number, len(questions), questions[0].content])[:7], 16),
        "temperature": _temperature(config, number),
        "reasoning_effort": config.reasoning_effort,
    }
    if abilities.format and form.schema is not None:
        body["response_format"] = response_format(abilities.format, form.name, form.schema)
    if form.paths and (config.logprobs or (form.schema is None and abilities.next_word)):
        body |= ASKED_LOGPROBS
    return {key: value for key, value in body.items() if value is not None and key not in abilities.missing}


def _temperature(config: OpenAIConfig, number: int) -> float | None:
    if config.temperature is None or not number:
        return config.temperature
    return max(config.temperature, AGAIN_TEMPERATURE)


async def _decisions_body(server: Server, form: Form) -> dict[str, Any]:
    questions = [
        {
            "type": "predicate",
            "name": str(number),
            "instructions": [DECISIONS.part(text), {"type": "input_json", "data": data}],
        }
        for number, (text, data) in enumerate(form.predicates, start=1)
    ]
    material = await _messages(server, form.messages, DECISIONS)
    return {"model": server.config.model, "input": material, "questions": questions}


@dataclass(frozen=True, slots=True)
class PartFormat:
    """How an endpoint writes the parts of a message."""

    text: str
    picture: Callable[[str], dict[str, Any]]

    def part(self, text: str) -> dict[str, Any]:
        return {"type": self.text, "text": text}


CHAT = PartFormat("text", lambda url: {"type": "image_url", "image_url": {"url": url}})
DECISIONS = PartFormat("input_text", lambda url: {"type": "input_image", "image_url": url})


async def _messages(server: Server, messages: Sequence[Message], format: PartFormat) -> list[dict[str, Any]]:
    return [{"role": message.role, "content": await _content(server, message, format)} for message in messages]


async def _content(server: Server, message: Message, format: PartFormat) -> str | list[dict[str, Any]]:
    """Plain text if there are no images: some servers accept nothing else for text-only models."""
    if all(isinstance(part, str) for part in message.parts):
        return message.text
    content: list[dict[str, Any]] = []
    text = ""
    for part in message.parts:
        if isinstance(part, str):
            text += part
            continue
        urls = await _urls(server, part)
        text += f"({len(urls)} frames of one moving picture, in order)\n" if len(urls) > 1 else ""
        content.append(format.part(text))
        content.extend(_picture(server.config, url, format) for url in urls)
        text = ""
    return [*content, format.part(text)] if text else content


def _picture(config: OpenAIConfig, url: str, format: PartFormat) -> dict[str, Any]:
    part = format.picture(url)
    if config.detail != "auto":
        (part["image_url"] if isinstance(part["image_url"], dict) else part)["detail"] = config.detail
    return part


async def _urls(server: Server, picture: ImagePart | SheetPart) -> tuple[str, ...]:
    """Raises Declined for an image that cannot be read."""
    cached = server.images.cached(picture.example) if isinstance(picture, ImagePart) else None
    if cached is not None:
        return cached
    try:
        with changes_raised():
            if isinstance(picture, SheetPart):
                return (await asyncio.to_thread(sheet_url, picture),)
            return await asyncio.to_thread(server.images.urls, picture.example)
    except DatasetError as problem:
        raise Declined(str(problem)) from None
