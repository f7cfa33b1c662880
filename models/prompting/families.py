"""Attributes with values: which features are values of one, and which value an example has."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from twothirds.discovery.families import WordGroup, groups_by_words
from twothirds.models.oracle import SEVERAL, Answer, Choose, Family, Feature, NamedFeature, Verdict
from twothirds.models.prompting.feature_names import clean, name_problem
from twothirds.models.prompting.prompts import (
    Message,
    Part,
    example_parts,
    feature_line,
    letter,
    strict,
    system_message,
)
from twothirds.models.prompting.replies import (
    Reading,
    definition_problem,
    no_object,
    object_with,
    one_sentence,
    unreadable,
)

MOST_VALUES = 40  # of one attribute
EXCLUSIVE = (
    "You are shown a list of features that seem to exclude one another. Say whether some of them are values of one "
    "attribute of which an example has one value at most, as black, blonde and grey are values of a hair colour."
)
SCALE = (
    "You are shown a list of features of which each seems to include the next. Say whether they are levels of one "
    "scale, as 'at least two' and 'at least three' are levels of a count."
)
FAMILY_RULES = """Rules:
- Take only features that belong to the same attribute, as many as do. Features that exclude one another for another \
reason do not belong together.
- "attribute": one to five words for what the values are values of. "definition": one sentence that says what it is.
- "ordered": true if the values have a natural order, then list them from low to high.
- The examples, if there are any, seem to have none of the features.
- "values": the values of the attribute. For a listed feature give its "number", and leave "name" and "definition" \
empty. A usual value that is missing in the list, or that one of the examples shows, has the number 0, and a name and \
a definition in the style of the others. Name no value "other" or "none"."""
FAMILY_SHAPE = (
    'Answer with one JSON object and nothing else, with the keys "found" (true or false), "attribute", "definition", '
    '"ordered" (true or false) and "values" (a list of objects with the keys "number", "name" and "definition"). If no '
    'two features are values of one attribute, "found" is false and the rest is empty.'
)
# One wording per voter, in turn: independent votes should not share the quirks of one sentence.
CHOOSING = (
    "Decide which one of the numbered values of the attribute the example has. Judge by the definitions.",
    "Look at the example and choose the value that is true of it, as the definitions state.",
    "Which of the numbered values fits the example? Go by the definitions.",
)
CHOICE_SHAPE = (
    'Answer with one JSON object and nothing else, with the key "value": the number of the value, 0 if the example has '
    "none of them, or -1 if it has several of them."
)


def family_messages(question: Family) -> list[Message]:
    content = [
        part
        for place, example in enumerate(question.examples)
        for part in example_parts(f"Example {letter(place)}", example)
    ]
    lines = "\n".join([SCALE if question.scale else EXCLUSIVE, FAMILY_RULES, FAMILY_SHAPE])
    return [system_message(), Message("user", (*content, _numbered("Feature", question.features), lines))]


def family_schema(question: Family) -> dict[str, Any]:
    number = {"type": "integer", "enum": list(range(len(question.features) + 1))}
    text = {"type": "string"}
    value = strict({"number": number, "name": text, "definition": text})
    values = {"type": "array", "items": value}
    truth = {"type": "boolean"}
    return strict({"found": truth, "attribute": text, "definition": text, "ordered": truth, "values": values})


def parse_family(reply: str, question: Family) -> Reading:
    data = object_with(reply, ("found", "attribute"))
    if data is None:
        return no_object(reply, "keys found, attribute, definition, ordered and values")
    if data.get("found") is False:
        return Reading(Verdict.NONE)
    name, definition = (clean(str(data.get(key) or "")) for key in ("attribute", "definition"))
    if problem := name_problem(name):
        return unreadable(f"attribute: {problem}", name)
    listed = data.get("values")
    if not isinstance(listed, list):
        return unreadable('"values" must be a list of objects', name)
    members, new, problems = _values(listed[:MOST_VALUES], question)
    if len(members) < 2:
        return Reading(Verdict.NONE) if not problems else unreadable(problems[0], name)
    left_out = f"left out: {'; '.join(dict.fromkeys(problems))}" if problems else ""
    feature = Feature(name, "" if definition_problem(one_sentence(definition)) else one_sentence(definition))
    ordered = data.get("ordered") is True
    return Reading(Verdict.FEATURE, feature, tuple(members), left_out, more=tuple(new), ordered=ordered)


def _values(listed: list[object], question: Family) -> tuple[list[int], list[NamedFeature], list[str]]:
    """The places of the features that are values, the values that are missing with their places among all, and what is
    wrong with the others."""
    members, new, problems = list[int](), list[NamedFeature](), list[str]()
    taken = [feature.name for feature in question.features]
    for item in listed:
        number = item.get("number") if isinstance(item, dict) else None
        if not isinstance(item, dict) or not isinstance(number, int) or isinstance(number, bool):
            problems.append("a value is not an object with a number")
        elif 1 <= number <= len(question.features):
            if number - 1 not in members:
                members.append(number - 1)
        elif number == 0:
            name, definition = (clean(str(item.get(key) or "")) for key in ("name", "definition"))
            names = [*taken, *(found.feature.name for found in new)]
            problem = name_problem(name, names) or definition_problem(definition)
            if problem:
                problems.append(f"{name!r}: {problem}")
            else:
                new.append(NamedFeature(Feature(name, one_sentence(definition)), (len(members) + len(new),)))
        else:
            problems.append(f"there is no feature with the number {number}")
    return members, new, problems


def choose_messages(question: Choose) -> list[Message]:
    values = _numbered("Value", tuple(question.values[place] for place in _shown_values(question)))
    attribute = f"Attribute: {feature_line(question.attribute.name, question.attribute.definition)}\n"
    content: list[Part] = [*example_parts("Example", question.example), attribute, values]
    lines = f"{CHOOSING[question.voter % len(CHOOSING)]}\n{CHOICE_SHAPE}"
    return [system_message(), Message("user", (*content, lines))]


def _shown_values(question: Choose) -> list[int]:
    """For each position in the prompt the place of its value. Voter 0 sees them as asked, every other in an order of
    its own: which value a model chooses depends on where it stands."""
    order = list(range(len(question.values)))
    if question.voter:
        random.Random(f"{question.voter}:{question.example.digest}").shuffle(order)
    return order


def choose_schema(question: Choose) -> dict[str, Any]:
    return strict({"value": {"type": "integer", "enum": list(range(-1, len(question.values) + 1))}})


def parse_choice(reply: str, question: Choose) -> Reading:
    data = object_with(reply, ("value",))
    if data is None:
        return no_object(reply, "key value")
    number = data["value"]
    if isinstance(number, str) and number.strip().lstrip("-").isdecimal():
        number = int(number.strip()[:9])
    if isinstance(number, int) and not isinstance(number, bool):
        if number in (0, -1):
            return Reading(Verdict.NONE, problem=SEVERAL if number else "")
        if 1 <= number <= len(question.values):
            place = _shown_values(question)[number - 1]
            return Reading(Verdict.FEATURE, question.values[place], (place,))
    return unreadable(f'"value" must be a number from -1 to {len(question.values)}')


def _numbered(title: str, features: tuple[Feature, ...]) -> str:
    lines = (feature_line(feature.name, feature.definition) for feature in features)
    return "".join(f"{title} {number}: {line}\n" for number, line in enumerate(lines, start=1))


# For oracles that write no text: answers by the names of features, or by which values an example is known to have.


def named_by_words(question: Family, by: str, vocabulary: Sequence[Feature] = ()) -> Answer:
    """The largest group of features whose names share a word, called by it. Colours and numbers that are missing are
    taken from the vocabulary. NONE where no word is shared."""
    if question.scale:
        return Answer(question, Verdict.NONE, by)
    names = [feature.name for feature in question.features]
    group = next(iter(groups_by_words(names)), None)
    if group is None:
        return Answer(question, Verdict.NONE, by)
    new = _missing(group, names, vocabulary) if group.specific else []
    return family_answer(question, by, Feature(group.name), group.members, new)


def family_answer(
    question: Family, by: str, attribute: Feature, members: Sequence[int], new: Sequence[Feature] = (), **rest: Any
) -> Answer:
    """That these features, by place, and values without a feature are the values of an attribute."""
    more = tuple(NamedFeature(value, (len(members) + place,)) for place, value in enumerate(new))
    return Answer(question, Verdict.FEATURE, by, attribute, tuple(members), more=more, **rest)


def chosen_answer(question: Choose, places: Sequence[int], by: str, **rest: Any) -> Answer:
    """That an example has the values at these places: one is the answer."""
    if len(places) == 1:
        return Answer(question, Verdict.FEATURE, by, question.values[places[0]], (places[0],), **rest)
    return Answer(question, Verdict.NONE, by, note=SEVERAL if places else "", **rest)


def _missing(group: WordGroup, names: Sequence[str], vocabulary: Sequence[Feature]) -> list[Feature]:
    known = [names[place] for place in group.members]
    fresh = [feature for feature in vocabulary if feature.name not in names]
    wider = groups_by_words([*known, *(feature.name for feature in fresh)])
    same = next((wide for wide in wider if wide.name == group.name and wide.specific), None)
    return [] if same is None else [fresh[place - len(known)] for place in same.members if place >= len(known)]
