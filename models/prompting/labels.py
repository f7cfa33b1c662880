"""Labels: what a request shows, the schema of its reply, and where in the reply each label stands.

Examples come first and then features: on real models the other order was worse than not looking (docs/results.md). A
label that is alone in its request is answered by the next word, yes or no; several by a JSON object whose keys are the
features' names, under the examples' letters where there are several examples, or by lists of those that hold."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from twothirds.models.oracle import Feature, Label
from twothirds.models.prompting.prompts import (
    Brief,
    Message,
    Part,
    example_parts,
    exemplar_parts,
    feature_line,
    json_text,
    key_of,
    letter,
    quoted,
    strict,
    system_message,
)
from twothirds.sources import Example

LABELS_VERSION = "3"  # of these prompts: part of every answer's key
NO_BRIEF = Brief()
Path = tuple[str, ...]  # the keys that lead to a label in a reply; none where the reply is one word
Listing = Literal["each", "names", "numbers"]  # how several labels are answered
HOLD = "have"  # the key of the one list of a reply

SENTENCE_WORDS = 3  # of a definition that says by itself what is meant

# One wording per voter, in turn: independent votes should not share the quirks of one sentence.
YES_OR_NO = (
    "Is that true of this example? Answer yes or no.",
    "Does that hold for this example? Answer yes or no.",
    "Is that so in this example? Answer yes or no.",
)
WHICH = (
    "Which of these features does {it} have?",
    "Which of these features are true of {it}?",
    "Which of these features hold for {it}?",
)
WHICH_EXAMPLES = (
    "Which of the examples have this feature?",
    "Of which of the examples is this feature true?",
    "For which of the examples does this feature hold?",
)
COMPACT = "Answer with a JSON object, written without spaces or line breaks, and nothing else: "
BY_FEATURE = "each feature's name as a key, true or false as its value."
BY_EXAMPLE = "each example's letter as a key, true or false as its value."
BY_BOTH = (
    "each example's letter as a key, and as its value an object with each feature's name as a key, true or false as "
    "its value."
)
LISTED = 'under the key "have" the list of the {what} that hold; leave out those that do not.'
LISTED_BY_EXAMPLE = "each example's letter as a key, and as its value the list of the {what} that hold for it."
PREDICATES = (
    "It is true of {it}: it has the feature that this JSON object names and defines.",
    "The feature that this JSON object names and defines is present in {it}.",
    "Judging by its definition, the feature in this JSON object holds for {it}.",
)


@dataclass(frozen=True, slots=True)
class LabelForm:
    """How labels of one voter are asked in one request."""

    messages: list[Message]
    schema: dict[str, Any] | None  # None where the reply is one word
    paths: list[Path]  # in the order of the labels
    lists: bool = False  # the reply lists what holds

    @property
    def usual_reply(self) -> str:
        """A reply that says yes to all."""
        if self.schema is None:
            return "yes"
        reply: dict[str, Any] = {}
        for *outer, key in self.paths:
            if self.lists:
                reply.setdefault(outer[0], []).append(key)
            else:
                (reply.setdefault(outer[0], {}) if outer else reply)[key] = True
        return json.dumps(reply, separators=(",", ":"), ensure_ascii=False)


def label_form(
    labels: Sequence[Label], brief: Brief = NO_BRIEF, *, feature_first: bool = False, listing: Listing = "each"
) -> LabelForm:
    """For labels in the order of `arranged`; raises ValueError where one request cannot carry them. A label that is
    alone may show its feature first."""
    examples, features = _sides(labels)
    lists = listing != "each" and len(labels) > 1
    names = _keys(features)
    numbered = lists and listing == "numbers" and len(features) > 1
    keys = [str(number + 1) for number in range(len(features))] if numbered else names
    shown: list[Part] = []
    for place, example in enumerate(examples):
        shown.extend(example_parts(f"Example {letter(place)}" if len(examples) > 1 else "Example", example))
    defined: list[Part] = []
    if len(features) > 1:
        which = WHICH[labels[0].voter % len(WHICH)].format(it="the example" if len(examples) == 1 else "each example")
        defined.append(f"\n{which}\n")
    for key, name, label in zip(keys, names, labels[: len(features)], strict=True):  # of the first example
        bullet = f"{key}. " if numbered else "- " if len(features) > 1 else "Feature: "
        defined += _defined(name, label, "" if len(labels) == 1 else bullet)
    question = _question(labels, len(examples), len(features), listing if lists else "each")
    material, end = [*shown, *defined], f"\n{question}"
    if len(labels) == 1:
        said = quoted(statement(labels[0].feature))
        material, end = ([f"{said}\n", *defined, *shown], end) if feature_first else (material, f"\n{said} {question}")
    messages = brief.added_to([system_message(labels), Message("user", (*material, end))])
    if lists:
        return LabelForm(messages, _list_schema(len(examples), keys), _list_paths(len(examples), keys), lists=True)
    return LabelForm(messages, _schema(len(examples), keys), _paths(len(examples), keys))


def _defined(key: str, label: Label, bullet: str) -> list[Part]:
    """A feature, and examples that are known to have or to lack it. Of a label that is alone, without a bullet, the
    feature stands beside the question."""
    line = [f"{bullet}{feature_line(key, label.feature.definition)}\n"] if bullet else []
    return [*line, *exemplar_parts(label.exemplars, quoted(key) if bullet else "the feature")]


def _question(labels: Sequence[Label], examples: int, features: int, listing: Listing) -> str:
    voter = labels[0].voter
    if len(labels) == 1:
        return YES_OR_NO[voter % len(YES_OR_NO)]
    which = f"{WHICH_EXAMPLES[voter % len(WHICH_EXAMPLES)]}\n" if features == 1 else ""
    if listing != "each":
        form = LISTED if examples == 1 or features == 1 else LISTED_BY_EXAMPLE
        what = "letters of those" if features == 1 else f"{listing} of those"
        return which + COMPACT + form.format(what=what)
    if features == 1:
        return which + COMPACT + BY_EXAMPLE
    return COMPACT + (BY_FEATURE if examples == 1 else BY_BOTH)


def statement(feature: Feature) -> str:
    """The feature as a sentence: its definition. With the name before it a real model said yes far more often."""
    if len(feature.definition.split()) >= SENTENCE_WORDS:
        return feature.definition
    named = f"{feature.name}, {feature.definition}" if feature.definition else f"{feature.name}."
    return f"It is true of the example: {named}"


def _keys(features: Sequence[Feature]) -> list[str]:
    """The features' names as keys of a reply; one that has come before gets a number."""
    keys: dict[str, None] = {}
    for feature in features:
        name = key = key_of(feature.name)
        number = 1
        while key in keys:
            number += 1
            key = f"{name} ({number})"
        keys[key] = None
    return list(keys)


def _paths(examples: int, keys: Sequence[str]) -> list[Path]:
    """Where labels stand in a reply: example by example, each feature."""
    letters = [letter(place) for place in range(examples)]
    if examples == len(keys) == 1:
        return [()]
    if examples == 1:
        return [(key,) for key in keys]
    return [(name,) if len(keys) == 1 else (name, key) for name in letters for key in keys]


def _schema(examples: int, keys: Sequence[str]) -> dict[str, Any] | None:
    """In the strict form that providers enforce; the features of an example are listed once, whatever the examples."""
    letters = [letter(place) for place in range(examples)]
    if examples == len(keys) == 1:
        return None
    if examples == 1 or len(keys) == 1:
        return _booleans(keys if examples == 1 else letters)
    rows = {name: {"$ref": "#/$defs/row"} for name in letters}
    return strict(rows) | {"$defs": {"row": _booleans(keys)}}


def _booleans(keys: Sequence[str]) -> dict[str, Any]:
    return strict({key: {"type": "boolean"} for key in keys})


def _list_paths(examples: int, keys: Sequence[str]) -> list[Path]:
    """The key of a list, and what stands in it where the label is yes."""
    return [(HOLD, *path) if len(path) == 1 else path for path in _paths(examples, keys)]


def _list_schema(examples: int, keys: Sequence[str]) -> dict[str, Any]:
    lists: dict[str, Any] = {}
    for name, key in _list_paths(examples, keys):
        lists.setdefault(name, []).append(key)
    return strict(
        {
            name: {"type": "array", "items": {"type": "string", "enum": items}, "maxItems": len(items)}
            for name, items in lists.items()
        }
    )


def arranged(labels: Sequence[Label]) -> list[Label]:
    """The order of labels in one request: the same for the same labels, different for each voter."""
    digests = sorted({label.example.digest for label in labels})
    features = sorted({label.feature for label in labels}, key=lambda feature: (feature.name, feature.definition))
    if labels[0].voter:
        random.Random(labels[0].voter).shuffle(digests)
        random.Random(labels[0].voter).shuffle(features)
    rows = {digest: place for place, digest in enumerate(digests)}
    columns = {feature: place for place, feature in enumerate(features)}
    return sorted(labels, key=lambda label: (rows[label.example.digest], columns[label.feature]))


def _sides(labels: Sequence[Label]) -> tuple[list[Example], list[Feature]]:
    examples = list({label.example.digest: label.example for label in labels}.values())
    features = list(dict.fromkeys(label.feature for label in labels))
    wanted = [(example.digest, feature) for example in examples for feature in features]
    if [(label.example.digest, label.feature) for label in labels] != wanted:
        raise ValueError("labels in one request must be those of some examples with the same features each")
    return examples, features


def material_messages(labels: Sequence[Label]) -> list[Message]:
    """The examples alone, for an endpoint that takes the questions apart from the material."""
    content: list[Part] = []
    if share_example(labels):
        content += example_parts("Example", labels[0].example)
    else:
        for number, label in enumerate(labels, start=1):
            content += example_parts(f"Item {number}", label.example)
    for label in {label.feature: label for label in labels}.values():
        content += exemplar_parts(label.exemplars, f"the feature {quoted(key_of(label.feature.name))}")
    return [system_message(labels), Message("user", tuple(content))]


def predicates(labels: Sequence[Label]) -> list[tuple[str, dict[str, str]]]:
    """For each label a statement about its example, and the JSON object that the statement speaks of."""
    alone = share_example(labels)
    return [
        (
            PREDICATES[label.voter % len(PREDICATES)].format(it="the example" if alone else f"item {number}"),
            {"name": json_text(label.feature.name), "definition": json_text(label.feature.definition)},
        )
        for number, label in enumerate(labels, start=1)
    ]


def share_example(labels: Sequence[Label]) -> bool:
    return len({label.example.digest for label in labels}) == 1
