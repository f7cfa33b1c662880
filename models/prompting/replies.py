"""Parse model replies and check them against the rules of the question.

A reply that breaks a rule is UNREADABLE, with a problem text that can be sent back to the model."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any

from twothirds.models.oracle import Feature, NamedFeature, Verdict
from twothirds.models.prompting.feature_names import NAME_LIMIT, sounds_like_an_instruction

REPLY_LIMIT = 200_000  # characters that are looked at
OBJECTS_LIMIT = 40  # opening braces that are tried
DEFINITION_LIMIT = 400

_REFUSAL = re.compile(
    r"^\W*(i['’]?m (really |very )?sorry|sorry\b|i (can ?not|can['’]t|could ?n['’]t|am (not able|unable)|won['’]t)"
    r"|i['’]m (not able|unable)|i must decline|as an ai\b|unfortunately,? i )",
    re.IGNORECASE,
)
_TRUE = {"true", "yes", "y", "1", "has it"}
_FALSE = {"false", "no", "n", "0", "lacks it"}
NOTHING = {"", "none", "null", "n/a", "na", "nothing", "no feature"}


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reply to a question that was asked alone comes to; `problem` says what is wrong when it is UNREADABLE or
    REFUSED."""

    verdict: Verdict
    feature: Feature | None = None
    shown: tuple[int, ...] = ()
    problem: str = ""
    named: str = ""  # the name that is UNREADABLE
    more: tuple[NamedFeature, ...] = ()  # where several were asked for: those after the first
    reason: str = ""  # where the question asks why
    quote: str = ""
    ordered: bool = False  # of the values of an attribute
    repeats: bool = False  # it names a feature that is known or not wanted: an answer, but nothing new


def parse_labels(reply: str, paths: Sequence[Sequence[str]], *, complete: bool = True) -> dict[int, bool]:
    """Values by position (from 0), read from the keys of the reply; missing or garbled ones are skipped. What a list
    leaves out is no, unless the list holds something else besides or the reply was cut."""
    if list(paths) == [()]:
        alone = parse_yes_no(reply)
        return {} if alone is None else {0: alone}
    data = object_with(reply, [path[0] for path in paths])
    if data is None:
        return {}
    siblings = {path[0]: {other[-1] for other in paths if other[0] == path[0]} for path in paths}
    answers = dict[int, bool | None]()
    for place, path in enumerate(paths):
        listed = data.get(path[0]) if len(path) > 1 else None
        if isinstance(listed, list):
            answers[place] = _in_list(listed, path[-1], siblings[path[0]], complete=complete)
        else:
            answers[place] = truth_of(_at(data, path))
    return {place: value for place, value in answers.items() if value is not None}


def _in_list(listed: Sequence[object], key: str, known: Set[str], *, complete: bool) -> bool | None:
    said = {str(item).strip() for item in listed}
    if key in said:
        return True
    return False if complete and len(listed) <= len(known) and said <= known else None


def _at(data: object, path: Sequence[str]) -> object:
    for key in path:
        data = data.get(key) if isinstance(data, dict) else None
    return data


def parse_yes_no(reply: str) -> bool | None:
    """A reply that is one word, or starts with it: "Yes", "no.", "Yes, because…"."""
    word = re.match(r"\W*([A-Za-z]+)\b", _without_thoughts(reply[:REPLY_LIMIT]))
    return truth_of(word.group(1)) if word else None


def is_refusal(reply: str) -> bool:
    return _REFUSAL.match(_without_thoughts(reply[:REPLY_LIMIT])) is not None


def json_objects(reply: str) -> list[dict[str, Any]]:
    """The JSON objects in a reply, outermost only, whatever surrounds them."""
    text = _without_thoughts(reply[:REPLY_LIMIT])
    decoder = json.JSONDecoder(object_pairs_hook=_unambiguous)
    found: list[dict[str, Any]] = []
    position = text.find("{")
    for _ in range(OBJECTS_LIMIT):
        if position < 0:
            break
        try:
            value, position = decoder.raw_decode(text, position)
            found.append(value)
        except (ValueError, RecursionError):
            position += 1
        position = text.find("{", position)
    return found


_STRING_OR_SIGN = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|[{}\[\],]', re.DOTALL)


def closed(reply: str) -> str:
    """A reply that was cut, up to the last complete value of the object that it began, with what closes the object."""
    begun, open_at, complete = reply.find("{"), list[str](), ""
    for sign in _STRING_OR_SIGN.finditer(reply[:REPLY_LIMIT], max(begun, 0)):
        if sign.group() in ("{", "["):
            open_at.append("}" if sign.group() == "{" else "]")
        elif sign.group() in ("}", "]") and open_at:
            open_at.pop()
            complete = reply[: sign.end()] + "".join(reversed(open_at))
        elif sign.group() == ",":
            complete = reply[: sign.start()] + "".join(reversed(open_at))
    return complete or reply


def _unambiguous(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A key that is given two different values says nothing."""
    values = dict(pairs)
    if len(values) == len(pairs):
        return values
    first: dict[str, Any] = {}
    contradicted = {key for key, value in pairs if first.setdefault(key, value) != value}
    return {key: value for key, value in values.items() if key not in contradicted}


def object_with(reply: str, keys: Sequence[str]) -> dict[str, Any] | None:
    """The last object that has one of the keys: a reply that repeats the prompt answers after it."""
    for candidate in reversed(json_objects(reply)):
        for value in (candidate, *candidate.values()):
            if isinstance(value, dict) and any(key in value for key in keys):
                return value
    return None


def _without_thoughts(reply: str) -> str:
    """Without the <think> block of a reasoning model, which may mention answers that it rejects."""
    return reply.rpartition("</think>")[2].partition("<think>")[0].strip()


def truth_of(value: object) -> bool | None:
    if isinstance(value, dict):
        value = value.get("answer", value.get("value"))
    if isinstance(value, bool):
        return value
    if isinstance(value, str | int):
        word = str(value).strip().casefold()[:20]
        return True if word in _TRUE else False if word in _FALSE else None
    return None


def one_sentence(definition: str) -> str:
    if len(definition) <= DEFINITION_LIMIT:
        return definition
    end = re.search(r"[.!?](?=\s)", definition[:DEFINITION_LIMIT])
    return definition[: end.end()] if end else definition


def definition_problem(definition: str) -> str:
    if not any(character.isalpha() for character in definition):
        return "the definition is empty"
    if len(definition) > DEFINITION_LIMIT:
        return f"the definition is longer than {DEFINITION_LIMIT} characters"
    if sounds_like_an_instruction(definition):
        return "the definition is an instruction, not a description"
    return ""


def unreadable(problem: str, name: str = "") -> Reading:
    return Reading(Verdict.UNREADABLE, problem=problem, named=name[:NAME_LIMIT])


def no_object(reply: str, keys: str) -> Reading:
    """Of a reply without an object that has these keys."""
    if is_refusal(reply):
        return Reading(Verdict.REFUSED, problem="the model declined to answer")
    return unreadable(f"it holds no JSON object with the {keys}")


def found_in(readings: Sequence[Reading]) -> dict[str, Any]:
    """What an answer holds of the last of the readings; its note says what was wrong with it, or with those before."""
    *before, last = readings
    problems = list(dict.fromkeys(rejected(reading) for reading in before if reading.problem))
    note = last.problem or (f"asked again: {'; '.join(problems)}" if problems else "")
    named = {"feature": last.feature, "shown": last.shown, "more": last.more, "ordered": last.ordered}
    return named | {"reason": last.reason, "quote": last.quote, "note": note}


def rejected(reading: Reading) -> str:
    return f"{reading.named!r}: {reading.problem}" if reading.named else reading.problem
