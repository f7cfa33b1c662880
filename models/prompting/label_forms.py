"""Labels that share a request: what it shows, the schema of its reply, and where in the reply each label stands.

Features come first and then examples, all of them to be decided for all: what is the same in every request comes
first, so that a provider that caches the beginnings of prompts has read it before."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from models.oracle import Feature, Label
from models.prompting.prompts import (
    MATERIAL,
    Brief,
    ImagePart,
    Message,
    Part,
    example_parts,
    exemplar_parts,
    letter,
    quoted,
    strict,
    with_exemplars,
)
from sources import Example

LABELS_VERSION = "2"  # of these prompts: part of every answer's key
NO_BRIEF = Brief()
Path = tuple[str, ...]  # the keys that lead to a label in a reply

# One wording per voter, in turn: independent votes should not share the quirks of one sentence.
LABELLING = (
    "Decide for each numbered feature whether the example has it. Judge by its definition.",
    "For every numbered feature say whether it is present in the example, as its definition states.",
    "Check feature by feature: is it, as it is defined, true of the example?",
)
COMPACT = "Answer with one JSON object, written without spaces or line breaks, and nothing else: "
BY_FEATURE = "each feature's number, as a text, is a key, and its value is true (has it) or false (lacks it)."
BY_EXAMPLE = "each example's letter is a key, and its value is true (has the feature) or false (lacks it)."
BY_BOTH = (
    "each example's letter is a key, and its value an object in which each feature's number, as a text, is a key, and "
    "its value is true (the example has it) or false (lacks it). Judge each example by itself."
)


@dataclass(frozen=True, slots=True)
class LabelForm:
    """How labels of one voter are asked in one request."""

    messages: list[Message]
    schema: dict[str, Any]
    paths: list[Path]  # in the order of the labels
    columns: int  # features of each example
    prefix: str  # what every request with these features begins with

    @property
    def usual_reply(self) -> str:
        """A reply that says yes to all."""
        reply: dict[str, Any] = {}
        for *outer, key in self.paths:
            (reply.setdefault(outer[0], {}) if outer else reply)[key] = True
        return json.dumps(reply, separators=(",", ":"))


def label_form(labels: Sequence[Label], brief: Brief = NO_BRIEF) -> LabelForm:
    """For labels in the order of `arranged`; raises ValueError where one request cannot carry them."""
    examples, features = _sides(labels)
    paths = label_paths(len(labels), len(features))
    system = with_exemplars(_instructions(labels[0].voter, len(examples), len(features)), labels)
    content: list[Part] = []
    for number, label in enumerate(labels[: len(features)], start=1):  # those of the first example: of each feature one
        content += [
            f"Feature {number}: {quoted(label.feature.name)}: {quoted(label.feature.definition)}\n",
            *exemplar_parts(label.exemplars, f"feature {number}"),
        ]
    listed = "".join(part.example.digest if isinstance(part, ImagePart) else str(part) for part in content)
    if all(isinstance(part, str) for part in content):
        content = [listed]
    for place, example in enumerate(examples):
        content.extend(example_parts(f"Example {letter(place)}" if len(examples) > 1 else "Example", example))
    content.append(
        f"Answer in the JSON form given above, with the keys {_keys_in_words(len(examples), len(features))}."
    )
    messages = brief.added_to([Message("system", (system,)), Message("user", tuple(content))])
    return LabelForm(
        messages, _schema(len(examples), len(features)), paths, len(features), brief.about + system + listed
    )


def label_paths(count: int, columns: int) -> list[Path]:
    """Where labels stand in a reply: example by example, so many features of each. Raises ValueError where that does
    not go up."""
    if count % columns:
        raise ValueError(f"{count} labels are no rows of {columns}")
    numbers = [str(number) for number in range(1, columns + 1)]
    letters = [letter(place) for place in range(count // columns)]
    if len(letters) == 1:
        return [(number,) for number in numbers]
    if columns == 1:
        return [(name,) for name in letters]
    return [(name, number) for name in letters for number in numbers]


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


def _instructions(voter: int, examples: int, features: int) -> str:
    shape = BY_FEATURE if examples == 1 else BY_EXAMPLE if features == 1 else BY_BOTH
    return "\n".join([LABELLING[voter % len(LABELLING)], MATERIAL, COMPACT + shape])


def _keys_in_words(examples: int, features: int) -> str:
    numbers = f"1 to {features}" if features > 1 else "1"
    if examples == 1:
        return numbers
    letters = f"A to {letter(examples - 1)}"
    return letters if features == 1 else f"{letters}, and in each {numbers}"


def _schema(examples: int, features: int) -> dict[str, Any]:
    """In the strict form that providers enforce; the features of an example are listed once, whatever the examples."""
    letters = [letter(place) for place in range(examples)]
    numbers = [str(number) for number in range(1, features + 1)]
    if examples == 1 or features == 1:
        return _booleans(numbers if examples == 1 else letters)
    rows = {name: {"$ref": "#/$defs/row"} for name in letters}
    return strict(rows) | {"$defs": {"row": _booleans(numbers)}}


def _booleans(keys: Sequence[str]) -> dict[str, Any]:
    return strict({key: {"type": "boolean"} for key in keys})
