"""Comparisons: what is asked about examples, the schema of the reply, and how the reply is read.

A reply names a feature and chooses among letters that the schema lists, so that it can neither be malformed nor run
away. Labels decide which examples have the feature: a good name with wrong letters is kept, without the letters."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from twothirds.discovery import Kind, differs_clearly, possible_counts
from twothirds.models.oracle import Compare, Feature, NamedFeature, Verdict
from twothirds.models.prompting.feature_names import NAME_LIMIT, clean, name_problem
from twothirds.models.prompting.prompts import Message, Part, example_parts, letter, listed, strict, system_message
from twothirds.models.prompting.replies import (
    NOTHING,
    Reading,
    definition_problem,
    no_object,
    object_with,
    one_sentence,
    rejected,
    unreadable,
)
from twothirds.sources import Example

# One wording per voter, in turn: independent votes should not share the quirks of one sentence.
COMPARISONS: dict[Kind, tuple[str, ...]] = {
    Kind.TWO_OF_THREE: (
        "Two of these three examples have something in common that the third lacks. What is it?",
        "Which feature do two of these three examples share that the remaining one lacks?",
        "Find something that exactly two of these three examples have in common and the third lacks.",
    ),
    Kind.SHARED: (
        "Two or more of these examples have something in common that at least one of the others lacks. What is it?",
        "Which feature do two or more of these examples share that is not true of all of them?",
        "Find something that two or more of these examples have in common and at least one of them lacks.",
    ),
    Kind.ONE_OR_TWO: (
        "Find something that one or two of these three examples have and the others lack.",
        "Which feature do one or two of these three examples have that is not true of all three?",
        "One or two of these three examples have something that the others do not have. What is it?",
    ),
    Kind.PAIR: (
        "Find something that one of these two examples has and the other lacks.",
        "Which feature does one of these two examples have that the other lacks?",
        "One of these two examples has something that the other one does not have. What is it?",
    ),
    Kind.ONE_OF_THREE: (
        "Find something that exactly one of these three examples has and the other two lack.",
        "Which feature does one of these three examples have that the other two lack?",
        "One of these three examples has something that the other two do not have. What is it?",
    ),
    Kind.LEFT_RIGHT: (
        "Find something that all examples of group 1 have in common and all of group 2 lack.",
        "Which feature does every example of group 1 have that no example of group 2 has?",
        "All examples of group 1 have something that no example of group 2 has. What is it?",
    ),
    Kind.GROUPS: (
        "Find something that clearly more examples of one group have than of the other.",
        "Which feature do many examples of one group have and few of the other?",
        "Most examples of one of the two groups have something that most of the other lack. What is it?",
    ),
    Kind.TAG: (
        "Find something that is true of this example.",
        "Which feature does this example have?",
        "What is one thing that characterises this example?",
    ),
}
CHOICES = {  # the key by which a reply says which examples have the feature, and what it means
    Kind.TWO_OF_THREE: ("have", "the letters of all examples that have it"),
    Kind.PAIR: ("has", "the letter of the example that has it"),
    Kind.ONE_OF_THREE: ("has", "the letter of the example that has it"),
    Kind.SHARED: ("have", "the letters of all examples that have it"),
    Kind.ONE_OR_TWO: ("have", "the letters of all examples that have it"),
    Kind.GROUPS: ("have", "the letters of all examples that have it"),
}
OF_ONE = (Kind.PAIR, Kind.ONE_OF_THREE, Kind.TAG)  # what is asked for is of one example
THE_TWO = "the two examples that have it"
IN_COMMON, WHAT_IT_HAS = "what they have in common", "what it has"
NAME = '"name": {what}, in one to five words, as in "striped fur"; never what is missing; "none" if there is nothing'
DEFINITION = '"definition": the same as a short sentence about any example, as in "The example has fur with stripes."'
SEVERAL = "Name up to {most} such features that have nothing to do with each other, the most obvious first."
OTHERS = "These are known, name something else: "
EXCLUDED = "These are not wanted, nor the same in other words: "
ANSWER = "Answer with one JSON object and nothing else."
ANSWER_SEVERAL = (
    'Answer with one JSON object and nothing else; its key "features" holds a list of at most {most} objects.'
)


def compare_messages(question: Compare) -> list[Message]:
    content: list[Part] = []
    everyone = (*question.examples, *question.without)
    for place, position in enumerate(shown_order(question)):
        if question.without and place in (0, len(question.examples)):
            content.append(f"Group {1 if place == 0 else 2}\n")
        content.extend(example_parts(f"Example {letter(place)}", everyone[position]))
    wordings = COMPARISONS[question.kind]
    lines = [wordings[question.voter % len(wordings)]]
    if question.most > 1:
        lines += [SEVERAL.format(most=question.most), ANSWER_SEVERAL.format(most=question.most)]
    else:
        lines.append(ANSWER)
    choice = []
    if question.kind in CHOICES:
        key, meaning = CHOICES[question.kind]
        choice = [f'"{key}": {THE_TWO if _asks_for_two(question) else meaning}']
    name = NAME.format(what=WHAT_IT_HAS if question.kind in OF_ONE else IN_COMMON)
    lines += [f"- {line}." if not line.endswith('"') else f"- {line}" for line in (name, *choice, DEFINITION)]
    if question.known:
        lines.append(OTHERS + listed(question.known))
    if question.exclude:
        lines.append(EXCLUDED + listed(question.exclude))
    return [system_message(), Message("user", (*content, "\n".join(lines)))]


def shown_order(question: Compare) -> tuple[int, ...]:
    """For each position in the prompt, the position of its example in the question. Voter 0 sees them as asked.

    Positions run through `examples` and then `without`; the two groups are never mixed."""
    first, second = list(range(len(question.examples))), list(range(len(question.without)))
    if question.voter:
        shuffle = random.Random(f"{question.voter}:{','.join(example.digest for example in question.examples)}")
        shuffle.shuffle(first)
        shuffle.shuffle(second)
    return (*first, *(len(first) + position for position in second))


def compare_schema(question: Compare) -> dict[str, Any]:
    """The JSON schema of an answer, in the strict form that providers enforce."""
    letters = [letter(place) for place in range(len(question.examples) + len(question.without))]
    one: dict[str, Any] = {"type": "string", "enum": letters}
    choice: dict[str, Any] = {}
    if question.kind in CHOICES:
        key, _ = CHOICES[question.kind]
        counts = _counts(question)
        several = {"type": "array", "items": one, "minItems": counts.start, "maxItems": counts[-1]}
        pairs = {"type": "string", "enum": [" and ".join(pair) for pair in combinations(letters, 2)]}
        choice = {key: one if key == "has" else pairs if _asks_for_two(question) else several}
    feature = strict({"name": {"type": "string"}, **choice, "definition": {"type": "string"}})
    if question.most == 1:
        return feature
    return strict({"features": {"type": "array", "items": feature, "maxItems": question.most}})


def _counts(question: Compare) -> range:
    """How many letters answer the question."""
    if question.kind is Kind.GROUPS:
        return range(1, len(question.examples) + len(question.without) + 1)
    return possible_counts(question.kind, len(question.examples))


def _asks_for_two(question: Compare) -> bool:
    return question.kind in CHOICES and list(_counts(question)) == [2]


def usual_reply(question: Compare) -> str:
    """What an answer is like, for estimates."""
    feature = (
        '{"name": "a name of words", "have": "A and C", '
        '"definition": "The example shows something that a few words say."}, '
    )
    return feature * ((question.most + 1) // 2)


def parse_feature(reply: str, question: Compare) -> Reading:
    asks_several = question.most > 1
    data = object_with(reply, ("features", "name") if asks_several else ("name",))
    if data is None:
        return no_object(reply, "key features" if asks_several else "keys name and definition")
    return _features(data, question) if asks_several and "features" in data else _feature(data, question)


def _features(data: dict[str, Any], question: Compare) -> Reading:
    """Every feature is valid by itself, and other than those before it; the rest is left out. If all repeat what is
    known, so does the answer."""
    found = data["features"]
    if not isinstance(found, list):
        return unreadable('"features" must be a list of objects')
    readings: list[Reading] = []
    named: list[NamedFeature] = []
    for item in found[: 2 * question.most]:
        known = (*question.known, *(earlier.feature.name for earlier in named))
        reading = (
            _feature(item, replace(question, known=known)) if isinstance(item, dict) else unreadable("not an object")
        )
        readings.append(reading)
        if reading.feature is not None and not reading.repeats and len(named) < question.most:
            named.append(NamedFeature(reading.feature, reading.shown))
    if named:
        problems = "; ".join(dict.fromkeys(rejected(reading) for reading in readings if reading.problem))
        problem = f"left out: {problems}" if problems else ""
        return Reading(Verdict.FEATURE, named[0].feature, named[0].shown, problem, more=tuple(named[1:]))
    wrong = [reading for reading in readings if reading.problem]
    return next((reading for reading in wrong if reading.repeats), wrong[0] if wrong else Reading(Verdict.NONE))


def _feature(data: dict[str, Any], question: Compare) -> Reading:
    raw_name, raw_definition = data.get("name"), data.get("definition")
    if raw_name is None:
        return Reading(Verdict.NONE)
    if not isinstance(raw_name, str):
        return unreadable("the name must be a text")
    name = clean(raw_name).rstrip(".")
    if name and name.casefold() in NOTHING:
        return Reading(Verdict.NONE)
    problem = name_problem(name)
    if problem:
        return unreadable(problem, name)
    definition = general_definition(clean(raw_definition) if isinstance(raw_definition, str) else "", name, question)
    problem = definition_problem(definition)
    if problem:
        return unreadable(problem, name)
    shown = _having(data, question)
    if repeated := name_problem(name, question.known, question.exclude):
        feature = Feature(name, definition)
        return Reading(Verdict.FEATURE, feature, shown, repeated, named=name[:NAME_LIMIT], repeats=True)
    return Reading(Verdict.FEATURE, Feature(name, definition), shown)


_POINTS = re.compile(
    r"\b(?i:examples?|images?|pictures?|items?|texts?|groups?|animals?) ([A-Z]|[1-9])\b"
    r"|\b(?i:(both|all three|neither|two|one) of (the|these|them)|both (examples|are|have|share|can|show))\b"
    r"|\b(?i:the (others?|third|(other|first|second|last) (one|two|examples?))|unlike)\b"
)
_CLAUSE = re.compile(r"[;,]\s|\s(?=(?:which|while|whereas|but|unlike)\b)")
_SUBJECT = re.compile(r"(?:(?:the|an?|this)\s+)?", re.IGNORECASE)
FEWEST_WORDS = 3  # of a definition that is left when a clause is taken away
BEGINNING = 60  # characters of a text in which its subject is looked for


def general_definition(definition: str, name: str, question: Compare) -> str:
    """The definition as a sentence about any example: without clauses that point at the examples of the question, and
    with "The example" where one of them is named. What the name says, where nothing else is left."""
    said = one_sentence(definition)
    sentence = _without_subject(said, question)
    if sentence != said and not _share_a_word(sentence, name):
        return f"It is true of the example: {name}."
    if _points(sentence, question):
        kept = _CLAUSE.split(sentence)[0].rstrip(" .")
        pointless = not _points(kept, question) and len(kept.split()) >= FEWEST_WORDS
        sentence = f"{kept}." if pointless else ""
    return sentence or f"It is true of the example: {name}."


def _share_a_word(sentence: str, name: str) -> bool:
    """Or the beginning of one. A sentence about one example that does not speak of the name describes that example."""
    words, named = (re.findall(r"\w{3,}", text.casefold()) for text in (sentence, name))
    return any(word.startswith(other) or other.startswith(word) for word in words for other in named)


def _points(sentence: str, question: Compare) -> bool:
    """At an example of the question by its place, or by its id where only one has it."""
    called = [_own_word(example) for example in (*question.examples, *question.without)]
    words = {word.removesuffix("s") for word in re.findall(r"[\w'’-]+", sentence.casefold())}
    return bool(_POINTS.search(sentence)) or any(called.count(word) == 1 for word in words if len(word) >= 3)


def _without_subject(sentence: str, question: Compare) -> str:
    """With "The example" in the place of a subject that only one example of the question has."""
    start = match.end() if (match := _SUBJECT.match(sentence)) else 0
    words = [*re.finditer(r"[\w'’-]+", sentence[start:])][:3]
    everyone = (*question.examples, *question.without)
    for count in range(len(words) - 1, 0, -1):
        subject = "".join(word.group() for word in words[:count]).casefold()
        if len(subject) >= 3 and sum(_names(example, subject) for example in everyone) == 1:
            return f"The example{sentence[start + words[count - 1].end() :]}"
    return sentence


def _names(example: Example, subject: str) -> bool:
    """Whether the id of the example is this word, without digits and signs, or the beginning of its text names it."""
    begins = re.match(rf"\W*(?:(?:the|an?)\W+)?{re.escape(subject)}\b", (example.text or "")[:BEGINNING], re.IGNORECASE)
    return _own_word(example) == re.sub(r"[\W\d_]+", "", subject) or bool(begins)


def _own_word(example: Example) -> str:
    """The letters of its id, without a folder and an ending."""
    return re.sub(r"[\W\d_]+", "", example.id.rpartition("/")[2].partition(".")[0]).casefold()


def _having(data: dict[str, Any], question: Compare) -> tuple[int, ...]:
    """Positions in `question.examples`, and for groups behind them in `question.without`; none where the letters do not
    answer the question."""
    asked = len(question.examples)
    if question.kind in (Kind.LEFT_RIGHT, Kind.TAG):
        return tuple(range(asked))
    said = _positions(data.get(CHOICES[question.kind][0]), shown_order(question))
    if question.kind is Kind.GROUPS:
        has = np.array([place in said for place in range(asked + len(question.without))])
        return tuple(sorted(said)) if differs_clearly(has[:asked], has[asked:]) else ()
    return tuple(sorted(said)) if len(said) in _counts(question) else ()


def _positions(value: object, order: Sequence[int]) -> set[int]:
    """Letters in any form ("A and B", ["Example A"]) as positions in the question."""
    items = value if isinstance(value, list) else [value]
    words = " ".join(item for item in items[: len(order) + 1] if isinstance(item, str))
    places = {letter(place): position for place, position in enumerate(order)}
    return {places[word] for word in re.findall(r"\b[A-Z]{1,2}\b", words[:1000]) if word in places}
