"""Parse model replies and check them against the rules of the question.

A reply that breaks a rule is UNREADABLE, with a problem text that can be sent back to the model."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discovery import Kind, differs_clearly, possible_counts
from models.oracle import Compare, Feature, NamedFeature, Verdict
from models.prompting.feature_names import NAME_LIMIT, clean, name_problem, sounds_like_an_instruction
from models.prompting.prompts import letter, shown_order

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
_NOTHING = {"", "none", "null", "n/a", "na", "nothing", "no feature"}


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


def parse_feature(reply: str, question: Compare) -> Reading:
    asks_several = question.most > 1
    data = object_with(reply, ("features", "found", "name") if asks_several else ("found", "name"))
    if data is None:
        return no_object(reply, "key features" if asks_several else "keys found, name, definition, have and lack")
    return _features(data, question) if asks_several and "features" in data else _feature(data, question)


def _features(data: dict[str, Any], question: Compare) -> Reading:
    """Every feature is valid by itself, and other than those before it; the rest is left out. If all repeat what is
    known, so does the answer."""
    listed = data["features"]
    if not isinstance(listed, list):
        return unreadable('"features" must be a list of objects')
    readings: list[Reading] = []
    named: list[NamedFeature] = []
    for item in listed[: 2 * question.most]:
        known = (*question.known, *(earlier.feature.name for earlier in named))
        reading = (
            _feature(item, replace(question, known=known)) if isinstance(item, dict) else unreadable("not an object")
        )
        readings.append(reading)
        if reading.feature is not None and not reading.repeats and len(named) < question.most:
            named.append(NamedFeature(reading.feature, reading.shown))
    if named:
        rejected = "; ".join(dict.fromkeys(_rejected(reading) for reading in readings if reading.problem))
        problem = f"left out: {rejected}" if rejected else ""
        return Reading(Verdict.FEATURE, named[0].feature, named[0].shown, problem, more=tuple(named[1:]))
    wrong = [reading for reading in readings if reading.problem]
    return next((reading for reading in wrong if reading.repeats), wrong[0] if wrong else Reading(Verdict.NONE))


def _feature(data: dict[str, Any], question: Compare) -> Reading:
    raw_name, raw_definition = data.get("name"), data.get("definition")
    name = clean(raw_name).rstrip(".") if isinstance(raw_name, str) else ""
    if data.get("found") is False or (data.get("found") is not True and name.casefold() in _NOTHING):
        return Reading(Verdict.NONE)
    if not isinstance(raw_name, str) or not isinstance(raw_definition, str):
        return unreadable("name and definition must be texts")
    problem = name_problem(name)
    if problem:
        return unreadable(problem, name)
    definition = one_sentence(clean(raw_definition))
    problem = definition_problem(definition)
    if repeated := name_problem(name, question.known, question.exclude):
        feature = Feature(name, "" if problem else definition)
        return Reading(Verdict.FEATURE, feature, problem=repeated, named=name[:NAME_LIMIT], repeats=True)
    if problem:
        return unreadable(problem, name)
    shown = _having(data, question)
    if isinstance(shown, str):
        return unreadable(shown, name)
    return Reading(Verdict.FEATURE, Feature(name, definition), shown)


def parse_labels(reply: str, paths: Sequence[Sequence[str]]) -> dict[int, bool]:
    """Values by position (from 0), read from the keys of the reply; missing or garbled ones are skipped."""
    data = object_with(reply, [path[0] for path in paths])
    if data is None:
        alone = parse_yes_no(reply) if len(paths) == 1 else None
        return {} if alone is None else {0: alone}
    answers = {place: truth_of(_at(data, path)) for place, path in enumerate(paths)}
    return {place: value for place, value in answers.items() if value is not None}


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


def _having(data: dict[str, Any], question: Compare) -> tuple[int, ...] | str:
    """Positions in `question.examples`, and for groups behind them in `question.without`; or what is wrong."""
    order = shown_order(question)
    have, lack = _positions(data.get("have"), order), _positions(data.get("lack"), order)
    asked = len(question.examples)
    everyone = set(range(asked + len(question.without)))
    if question.kind in (Kind.LEFT_RIGHT, Kind.TAG):
        group = set(range(asked))
        if (have and have != group) or lack & group:
            return "the feature must hold for all examples of the first group and for none of the others"
        return tuple(sorted(group))
    if question.kind is Kind.GROUPS:
        has = np.array([place in have for place in range(len(everyone))])
        if not differs_clearly(has[:asked], has[asked:]):
            return '"have" must hold the letters of clearly more examples of one group than of the other'
        return tuple(sorted(have))
    wanted = possible_counts(question.kind, asked)
    if len(have) not in wanted:
        count = f"exactly {wanted.start}" if len(wanted) == 1 else f"at least {wanted.start} and at most {wanted[-1]}"
        return f'"have" must hold the letters of {count} of the {asked} examples'
    if lack and lack != everyone - have:
        return '"have" and "lack" must together name each example once'
    return tuple(sorted(have))


def _positions(value: object, order: tuple[int, ...]) -> set[int]:
    """Letters in any form ("A and B", ["Example A"]) as positions in the question."""
    items = value if isinstance(value, list) else [value]
    words = " ".join(item for item in items[: len(order) + 1] if isinstance(item, str))
    places = {letter(place): position for place, position in enumerate(order)}
    return {places[word] for word in re.findall(r"\b[A-Z]{1,2}\b", words[:1000]) if word in places}


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
    rejected = list(dict.fromkeys(_rejected(reading) for reading in before if reading.problem))
    note = last.problem or (f"asked again: {'; '.join(rejected)}" if rejected else "")
    named = {"feature": last.feature, "shown": last.shown, "more": last.more, "ordered": last.ordered}
    return named | {"reason": last.reason, "quote": last.quote, "note": note}


def _rejected(reading: Reading) -> str:
    return f"{reading.named!r}: {reading.problem}" if reading.named else reading.problem


MOST_SURE = 0.999
_PART = re.compile(r'"((?:[^"\\]|\\.)*)"\s*:\s*(?=(\{|"?[A-Za-z0-9]+))|\}')
_YES, _NO = ("true", "yes", "1"), ("false", "no", "0")


def label_chances(text: str, paths: Sequence[Sequence[str]], tokens: object) -> dict[int, float]:
    """Probabilities of yes by position, for as many labels as the tokens tell. `tokens` are as servers send them, the
    `content` of `logprobs`: anything else, or tokens of another text, tell nothing."""
    places = _places(tokens, text)
    if places is None:
        return {}
    offsets = _offsets(text)
    found = {}
    for position, path in enumerate(paths):
        offset = offsets.get(tuple(path), -1)
        token = places.get(offset) if offset >= 0 else None
        chance = _chance(token) if token is not None else None
        if chance is not None:
            found[position] = chance
    return found


def _places(tokens: object, text: str) -> dict[int, Mapping[str, Any]] | None:
    """The token that covers each character."""
    if not isinstance(tokens, list) or not all(isinstance(token, dict) for token in tokens):
        return None
    words = [token.get("token") for token in tokens]
    if not all(isinstance(word, str) for word in words) or "".join(map(str, words)) != text:
        return None
    places: dict[int, Mapping[str, Any]] = {}
    for token in tokens:
        start = len(places)
        places.update((start + place, token) for place in range(len(token["token"])))
    return places


def _offsets(text: str) -> dict[tuple[str, ...], int]:
    """Where the value of each path of keys begins; a path that comes twice says nothing."""
    offsets: dict[tuple[str, ...], int] = {}
    above: list[str] = []
    for part in _PART.finditer(text):
        if part.group(1) is None:
            above = above[:-1]
        elif part.group(2) == "{":
            above.append(part.group(1))
        else:
            path = (*above, part.group(1))
            quoted = part.group(2).startswith('"')
            offsets[path] = -1 if path in offsets else part.end() + quoted
    return offsets


def _chance(token: Mapping[str, Any]) -> float | None:
    others = token.get("top_logprobs")
    candidates = [token, *(others if isinstance(others, list) else [])]
    mass = {True: 0.0, False: 0.0}
    seen: set[str] = set()
    for candidate in candidates:
        word, logprob = (
            (candidate.get("token"), candidate.get("logprob")) if isinstance(candidate, dict) else (None, None)
        )
        if not isinstance(word, str) or isinstance(logprob, bool) or not isinstance(logprob, int | float):
            continue
        value = _meaning(word)
        if value is not None and word not in seen and logprob <= 1e-6:
            mass[value] += math.exp(min(logprob, 0.0))
        seen.add(word)
    total = mass[True] + mass[False]
    return min(max(mass[True] / total, 1 - MOST_SURE), MOST_SURE) if total > 0 else None


def _meaning(word: str) -> bool | None:
    """A token may be the beginning of the word, or have what stands before it."""
    bare = "".join(re.findall(r"\w+", word)[:1]).casefold()
    for value, words in ((True, _YES), (False, _NO)):
        if bare and any(word.startswith(bare) for word in words):
            return value
    return None
