"""The model behind the fake server: it reads the prompt as a model must, and answers by what it sees there.

A trait is a word. A text has the traits whose words it contains; a picture has those of its nearest neighbour in the
picture book, or the name of its colour."""

from __future__ import annotations

import base64
import io
import itertools
import json
import math
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from PIL import Image

from tests.support.fake_openai.sheets import pictures_of
from twothirds.discovery import same_name
from twothirds.discovery.families import groups_by_words
from twothirds.discovery.questions import Kind, differs_clearly, possible_counts
from twothirds.models.oracle import MEAN_THE_SAME
from twothirds.models.prompting.comparisons import CHOICES, COMPARISONS, EXCLUDED, OTHERS
from twothirds.models.prompting.families import CHOOSING, EXCLUSIVE, SCALE
from twothirds.models.prompting.labels import (
    BY_BOTH,
    BY_EXAMPLE,
    BY_FEATURE,
    HOLD,
    LISTED,
    LISTED_BY_EXAMPLE,
    YES_OR_NO,
)
from twothirds.models.prompting.labels import statement as statement_of
from twothirds.models.prompting.single_forms import WHY

COLOURS = {"red": (200, 0, 0), "green": (0, 200, 0), "blue": (0, 0, 200), "grey": (128, 128, 128)}
SIGNATURE = (8, 8)
VALUES = (BY_FEATURE, BY_EXAMPLE, BY_BOTH)
LISTS = tuple(form.partition("{what}")[2] for form in (LISTED, LISTED_BY_EXAMPLE))


@dataclass
class Shown:
    """One example on the page."""

    title: str
    text: str | None = None
    pictures: list[str] = field(default_factory=list)  # data URLs
    group: int = 1


@dataclass
class Page:
    """What a prompt shows."""

    lines: list[str] = field(default_factory=list)  # what is asked
    examples: list[Shown] = field(default_factory=list)
    features: dict[str, dict[str, str]] = field(default_factory=dict)  # by name; of a family by number
    values: list[dict[str, str]] = field(default_factory=list)  # of an attribute, to choose among
    known: list[str] = field(default_factory=list)
    exemplars: list[Shown] = field(default_factory=list)  # whose answer is given
    seed: str = ""  # a digest of the request, for a model that varies its answers

    @property
    def compact(self) -> bool:
        """Whether the reply is to hold no spaces."""
        return any("without spaces" in line for line in self.lines)

    @property
    def asks_labels(self) -> bool:
        return self.asks_word or self.asks_lists or any(line.endswith(VALUES) for line in self.lines)

    @property
    def asks_lists(self) -> bool:
        """Whether the reply is to list what holds."""
        return any(line.endswith(LISTS) for line in self.lines)

    @property
    def asks_word(self) -> bool:
        """Whether the reply is to be yes or no."""
        return any(line in YES_OR_NO for line in self.lines)

    def cells(self) -> dict[tuple[str, ...], tuple[Shown, dict[str, str]]]:
        """Labels that are asked for, by the keys that lead to them in the reply: names of features, letters of
        examples, or a letter and then a name; none where the reply is one word."""
        if self.asks_word:
            [example], [feature] = self.examples, self.features.values()
            return {(): (example, feature)}
        if len(self.examples) == 1:
            return {(name,): (self.examples[0], feature) for name, feature in self.features.items()}
        lettered = {example.title.removeprefix("Example "): example for example in self.examples}
        if len(self.features) == 1:
            [feature] = self.features.values()
            return {(letter,): (example, feature) for letter, example in lettered.items()}
        return {
            (letter, name): (example, feature)
            for letter, example in lettered.items()
            for name, feature in self.features.items()
        }

    @property
    def kind(self) -> Kind | None:
        return next((kind for kind, wordings in COMPARISONS.items() if set(self.lines) & set(wordings)), None)

    @property
    def asks_why(self) -> bool:
        return any(line in WHY for line in self.lines)

    @property
    def asks_family(self) -> bool:
        return any(line in (EXCLUSIVE, SCALE) for line in self.lines)

    @property
    def asks_scale(self) -> bool:
        return SCALE in self.lines

    @property
    def asks_value(self) -> bool:
        return any(line in CHOOSING for line in self.lines)

    @property
    def is_ours(self) -> bool:
        """Whether it asks what this model can answer."""
        return self.kind is not None or self.asks_labels or self.asks_why or self.asks_family or self.asks_value

    @property
    def most(self) -> int:
        """Features that a comparison asks for."""
        several = next(
            (re.match(r"Name up to (\d+) such features", line) for line in self.lines if "such" in line), None
        )
        return int(several.group(1)) if several else 1


def read_page(messages: Sequence[Mapping[str, Any]]) -> Page:
    page, group, last = Page(), 1, Shown("")
    numbered = list[tuple[Shown, int]]()  # on the sheet that follows
    material = next(message["content"] for message in messages if message["role"] == "user")
    for part in [{"type": "text", "text": material}] if isinstance(material, str) else material:
        if "image_url" in part:
            url = part["image_url"]["url"] if isinstance(part["image_url"], dict) else part["image_url"]
            on_sheet = pictures_of(url) if numbered else {}
            for example, number in numbered:
                example.pictures.append(on_sheet[number])
            if not numbered:
                last.pictures.append(url)
            numbered.clear()
            continue
        for line in part["text"].split("\n"):
            if place := re.fullmatch(r"Picture (\d) on the sheet\.", line):
                numbered.append((last, int(place.group(1))))
                continue
            group = int(line.split()[1]) if re.fullmatch(r"Group \d", line) else group
            last = _read_line(page, line, group) or last
    return page


_FEATURE = re.compile(
    r"(Feature|Attribute|-|(\d+)\.|(?:Feature|Value) (\d+))(?:: | (?=\"))(\"(?:[^\"\\]|\\.)*\"(?:: \".*)?)$"
)

_STATEMENT = re.compile(rf"(\"(?:[^\"\\]|\\.)*\") ({'|'.join(map(re.escape, YES_OR_NO))})$")


def _read_line(page: Page, line: str, group: int) -> Shown | None:
    """The example that begins with the line, if one does."""
    if line.startswith((OTHERS, EXCLUDED)):
        page.known += json.loads(line.removeprefix(OTHERS).removeprefix(EXCLUDED))
    elif feature := _FEATURE.match(line):
        name, end = json.JSONDecoder().raw_decode(feature.group(4))
        rest = feature.group(4)[end + 2 :]
        pair = {"name": name, "definition": json.loads(rest) if rest else ""}
        if feature.group(1).startswith("Value"):
            page.values.append(pair)
        elif feature.group(1) != "Attribute":
            page.features[feature.group(2) or feature.group(3) or name] = pair
    elif example := re.match(r"(Example(?: [A-Z]+)?|Item \d+): ?(\".*)?", line):
        text = json.JSONDecoder().raw_decode(example.group(2))[0] if example.group(2) else None
        page.examples.append(Shown(example.group(1), text, group=group))
        return page.examples[-1]
    elif exemplar := re.match(r"((?:Has|Lacks) .*?): ?(\".*)?$", line):
        page.exemplars.append(Shown(exemplar.group(1), exemplar.group(2)))
        return page.exemplars[-1]
    elif statement := _STATEMENT.match(line):
        said = json.loads(statement.group(1))
        page.features[""] = {"name": said, "definition": said}
        page.lines.append(statement.group(2))
    else:
        page.lines.append(line)
    return None


def _text(content: str | Sequence[Mapping[str, Any]]) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


class FakeModel:
    def __init__(self, words: Iterable[str] = (), book: Mapping[str, bytes] | None = None) -> None:
        """`book` maps a picture's traits, separated by commas, to the picture; two pictures may share their traits."""
        self.words = list(words) or list(COLOURS)
        self._book: list[tuple[set[str], bytes]] = []
        for traits, content in (book or {}).items():
            self.learn(traits.split(","), content)

    def learn(self, traits: Iterable[str], picture: bytes) -> None:
        with Image.open(io.BytesIO(picture)) as image:
            self._book.append(({trait.strip() for trait in traits}, _signature(image)))

    def traits(self, example: Shown) -> set[str]:
        found = {word for word in self.words if example.text and word in example.text.casefold()}
        for url in example.pictures:
            with Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))) as image:
                found |= self._traits_of_picture(image)
        return found

    def _traits_of_picture(self, image: Image.Image) -> set[str]:
        seen = _signature(image)
        if self._book:
            return min(self._book, key=lambda known: sum(abs(a - b) for a, b in zip(known[1], seen, strict=True)))[0]
        middle = image.convert("RGB").resize((1, 1)).getpixel((0, 0))
        assert isinstance(middle, tuple)
        colour = min(COLOURS, key=lambda name: sum(abs(a - b) for a, b in zip(COLOURS[name], middle, strict=True)))
        return {colour}

    def compare(self, page: Page) -> dict[str, Any]:
        traits = [self.traits(example) for example in page.examples]
        letters = [example.title.removeprefix("Example ") for example in page.examples]
        for word in self.words:
            having = [letters[place] for place, found in enumerate(traits) if word in found]
            if not any(same_name(word, one) for one in page.known) and self._answers(page, having, letters):
                return named(page, having, letters, word, f"The example shows or says {word}.")
        return named(page, [], letters, "none", "")

    def compare_several(self, page: Page) -> dict[str, Any]:
        """Up to `page.most` answers, each as if those before it were known."""
        features: list[dict[str, Any]] = []
        known, seed = list(page.known), page.seed
        while len(features) < page.most:
            page.known = [*known, *(feature["name"] for feature in features)]
            page.seed = f"{seed}:{len(features)}"
            answer = self.compare(page)
            if answer["name"] == "none":
                break
            features.append(answer)
        return {"features": features}

    def _answers(self, page: Page, having: list[str], letters: list[str]) -> bool:
        if page.kind is Kind.LEFT_RIGHT:
            first = [name for name, example in zip(letters, page.examples, strict=True) if example.group == 1]
            return having == first
        if page.kind is Kind.GROUPS:
            return differs(page, [name in having for name in letters])
        return page.kind is not None and len(having) in possible_counts(page.kind, len(letters))

    def label(self, page: Page) -> dict[str, Any]:
        dice = random.Random(page.seed)
        said = {keys: self.has(one, feature, dice) for keys, (one, feature) in page.cells().items()}
        return listed(said) if page.asks_lists else nested(said)

    def has(self, example: Shown, feature: Mapping[str, str], dice: random.Random) -> bool:
        """Whether an example has a feature, or whether the two features that it states mean the same."""
        if (
            feature["name"] in (MEAN_THE_SAME.name, statement_of(MEAN_THE_SAME))
            and len(pair := stated_pair(example.text or "")) == 2
        ):
            return self.same(pair[0], pair[1], dice)
        return self.sees(example, feature, dice)

    def sees(self, example: Shown, feature: Mapping[str, str], dice: random.Random) -> bool:  # noqa: ARG002
        """By the name, or by the word of which a statement speaks."""
        spoken = (word for word in self.words if re.search(rf"\b{re.escape(word)}", feature["name"].casefold()))
        name = feature["name"] if feature["name"] != feature["definition"] else next(spoken, "")
        return name in self.traits(example)

    def same(self, one: Mapping[str, str], other: Mapping[str, str], dice: random.Random) -> bool:  # noqa: ARG002
        return one["name"].casefold() == other["name"].casefold()

    def why(self, page: Page) -> dict[str, Any]:
        [example], [feature] = page.examples, page.features.values()
        has, text = self.has(example, feature, random.Random(page.seed)), example.text or ""
        place = max(text.casefold().find(feature["name"].casefold()), 0)
        reason = f"One {'finds' if has else 'looks in vain for'} what is called {feature['name']}."
        quote = text[place : place + 40] if has else ""
        return {"has": has, "reason": reason} | ({"quote": quote} if example.text is not None else {})

    def family(self, page: Page) -> dict[str, Any]:
        """Those whose names share a word."""
        names = [feature["name"] for feature in page.features.values()]
        group = next(iter(groups_by_words(names)), None)
        return family_reply(group.name if group else "", list(group.members) if group else [])

    def choose(self, page: Page) -> dict[str, Any]:
        traits = self.traits(page.examples[0])
        having = [number for number, value in enumerate(page.values, start=1) if value["name"] in traits]
        return {"value": having[0] if len(having) == 1 else -1 if having else 0}

    def sure(self, _example: Shown, _feature: Mapping[str, str]) -> float:
        """How probable the model finds its own answer."""
        return 0.97

    def tokens(self, page: Page, content: str) -> list[dict[str, Any]]:
        """A reply with labels, word by word, with the probabilities of `true` and `false` where it has to choose."""
        cells = iter(page.cells().values() if page.asks_labels else ())
        tokens = []
        for word in re.findall(r"true|false|[Yy]es|[Nn]o|[^tfyYnN]+|.", content, re.DOTALL):
            opposite = OPPOSITE.get(word.casefold())
            cell = next(cells, None) if opposite else None
            sure = self.sure(*cell) if cell else 1.0
            one = {"token": word, "logprob": math.log(sure), "bytes": None}
            other = {"token": opposite, "logprob": math.log(max(1e-9, 1 - sure))}
            tokens.append(one | {"top_logprobs": [dict(one), *([other] if cell else [])]})
        return tokens

    def decide(self, page: Page, questions: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """A probability per predicate. A predicate may name the item that it is about."""
        answers = []
        for question in questions:
            parts = question["instructions"]
            data: dict[str, str] = next((part["data"] for part in parts if "data" in part), {})
            item = re.search(r"[Ii]tem (\d+)", _text(parts))
            shown = [example for example in page.examples if item is None or example.title == f"Item {item.group(1)}"]
            true = bool(shown) and "name" in data and self.has(shown[0], data, random.Random(page.seed))
            answers.append({"type": "predicate", "name": question.get("name"), "probability": 0.97 if true else 0.02})
        return answers


OPPOSITE = {"true": "false", "false": "true", "yes": "no", "no": "yes"}


def named(page: Page, having: Sequence[str], letters: Sequence[str], name: str, definition: str) -> dict[str, Any]:
    """The answer to a comparison, with the letters by which its kind says which examples have the feature."""
    key = CHOICES[page.kind][0] if page.kind in CHOICES else ""
    choice: dict[str, Any] = {"has": (having or letters)[0], "have": having or letters[:1]}
    if page.kind and list(possible_counts(page.kind, len(letters))) == [2]:
        choice["have"] = " and ".join(having if len(having) == 2 else letters[:2])
    return ({key: choice[key]} if key else {}) | {"name": name, "definition": definition}


def stated_pair(text: str) -> list[dict[str, str]]:
    """The features that the text of a pair states."""
    lines = re.findall(r"^Feature \d: (.*?)(?: \((.*)\))?$", text, re.MULTILINE)
    return [{"name": name, "definition": definition} for name, definition in lines]


def family_reply(
    name: str, members: Sequence[int], new: Sequence[str] = (), *, ordered: bool = False
) -> dict[str, Any]:
    """That these features, by place, and new values are the values of an attribute; or without a name that none are."""
    values: list[dict[str, Any]] = [{"number": place + 1, "name": "", "definition": ""} for place in members]
    values += [{"number": 0, "name": one, "definition": f"The example shows {one}."} for one in new]
    said = f"What can be seen or read of the {name}."
    return {
        "found": bool(name),
        "attribute": name,
        "definition": said if name else "",
        "ordered": ordered,
        "values": values if name else [],
    }


def differs(page: Page, values: Sequence[bool]) -> bool:
    """Whether clearly more of one group have it."""
    has, first = np.array(values), np.array([example.group == 1 for example in page.examples])
    return bool(differs_clearly(has[first], has[~first]))


def nested(cells: Mapping[tuple[str, ...], bool]) -> dict[str, Any]:
    """The labels as a reply holds them."""
    reply: dict[str, Any] = {}
    for keys, value in cells.items():
        inner = reply if len(keys) == 1 else reply.setdefault(keys[0], {})
        inner[keys[-1]] = value
    return reply


def listed(cells: Mapping[tuple[str, ...], bool]) -> dict[str, Any]:
    """The labels as a reply that lists what holds has them."""
    reply: dict[str, Any] = {}
    for keys, value in cells.items():
        reply.setdefault(keys[0] if len(keys) > 1 else HOLD, []).extend([keys[-1]] * value)
    return reply


def _signature(image: Image.Image) -> bytes:
    return image.convert("RGB").resize(SIGNATURE, Image.Resampling.BILINEAR).tobytes()


def example_of_schema(schema: Mapping[str, Any]) -> Any:
    """Anything that a JSON schema allows: what an enforced schema makes of a prompt that asks for something else."""
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("type") == "object":
        return {name: example_of_schema(inner) for name, inner in schema.get("properties", {}).items()}
    return {"boolean": True, "array": [], "string": "text", "integer": 0, "number": 0}.get(schema.get("type", ""))


fresh_numbers = itertools.count(1)
