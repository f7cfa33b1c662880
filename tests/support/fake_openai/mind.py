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

from discovery import same_name
from discovery.families import groups_by_words
from discovery.questions import Kind, differs_clearly, possible_counts
from models.oracle import MEAN_THE_SAME
from models.prompting.families import CHOOSING, EXCLUSIVE, SCALE
from models.prompting.prompts import COMPARISONS
from models.prompting.single_forms import WHY
from tests.support.fake_openai.sheets import pictures_of

COLOURS = {"red": (200, 0, 0), "green": (0, 200, 0), "blue": (0, 0, 200), "grey": (128, 128, 128)}
SIGNATURE = (8, 8)


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

    instructions: str = ""
    examples: list[Shown] = field(default_factory=list)
    features: dict[str, dict[str, str]] = field(default_factory=dict)  # by number; "" is the one for all items
    values: list[dict[str, str]] = field(default_factory=list)  # of an attribute, to choose among
    known: list[str] = field(default_factory=list)
    exemplars: list[Shown] = field(default_factory=list)  # whose answer is given
    seed: str = ""  # a digest of the request, for a model that varies its answers

    @property
    def compact(self) -> bool:
        """Whether the reply is to hold no spaces."""
        return "without spaces" in self.instructions

    def cells(self) -> dict[tuple[str, ...], tuple[Shown, dict[str, str]]]:
        """Labels that are asked for, by the keys that lead to them in the reply: numbers of items or features, letters
        of examples, or a letter and then a number."""
        if "" in self.features:
            return {(one.title.split()[1],): (one, self.features[""]) for one in self.examples}
        if len(self.examples) == 1:
            return {(number,): (self.examples[0], feature) for number, feature in self.features.items()}
        named = {one.title.removeprefix("Example "): one for one in self.examples}
        if len(self.features) == 1:
            [feature] = self.features.values()
            return {(name,): (one, feature) for name, one in named.items()}
        return {(name, number): (one, what) for name, one in named.items() for number, what in self.features.items()}

    @property
    def kind(self) -> Kind | None:
        first = self.instructions.split("\n", 1)[0]
        return next((kind for kind, wordings in COMPARISONS.items() if first in wordings), None)

    @property
    def asks_why(self) -> bool:
        return self.instructions.split("\n", 1)[0] in WHY

    @property
    def asks_family(self) -> bool:
        return self.instructions.split("\n", 1)[0] in (EXCLUSIVE, SCALE)

    @property
    def asks_value(self) -> bool:
        return self.instructions.split("\n", 1)[0] in CHOOSING

    @property
    def most(self) -> int:
        """Features that a comparison asks for."""
        several = re.search(r"^Name not one but up to (\d+) such features", self.instructions, re.MULTILINE)
        return int(several.group(1)) if several else 1


def read_page(messages: Sequence[Mapping[str, Any]]) -> Page:
    page, group, last = Page(), 1, Shown("")
    numbered = list[tuple[Shown, int]]()  # on the sheet that follows
    page.instructions = "\n".join(_text(m["content"]) for m in messages if m["role"] in ("system", "developer"))
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


def _read_line(page: Page, line: str, group: int) -> Shown | None:
    """The example that begins with the line, if one does."""
    if line.startswith("Known features: "):
        page.known = json.loads(line.removeprefix("Known features: "))
    elif line.startswith("Not wanted features: "):
        page.known += json.loads(line.removeprefix("Not wanted features: "))
    elif line.startswith("Feature: "):
        page.features[""] = json.loads(line.removeprefix("Feature: "))
    elif item := re.match(r"Item (\d+): does it have the feature (.*)", line):
        page.features[item.group(1)] = json.loads(item.group(2))
    elif numbered := re.match(r"(Feature|Value) (\d+): (.*)", line):
        name, end = json.JSONDecoder().raw_decode(numbered.group(3))
        pair = {"name": name, "definition": json.loads(numbered.group(3)[end + 2 :])}
        if numbered.group(1) == "Feature":
            page.features[numbered.group(2)] = pair
        else:
            page.values.append(pair)
    elif example := re.match(r"(Example(?: [A-Z]+)?|Item \d+): ?(\".*)?", line):
        text = json.JSONDecoder().raw_decode(example.group(2))[0] if example.group(2) else None
        page.examples.append(Shown(example.group(1), text, group=group))
        return page.examples[-1]
    elif exemplar := re.match(r"((?:Has|Lacks) .*?): ?(\".*)?$", line):
        page.exemplars.append(Shown(exemplar.group(1), exemplar.group(2)))
        return page.exemplars[-1]
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
            lacking = [name for name in letters if name not in having]
            if not any(same_name(word, one) for one in page.known) and self._answers(page, having, letters):
                meaning = f"The example shows or says {word}."
                return {"found": True, "name": word, "definition": meaning, "have": having, "lack": lacking}
        return {"found": False, "name": "", "definition": "", "have": [], "lack": []}

    def compare_several(self, page: Page) -> dict[str, Any]:
        """Up to `page.most` answers, each as if those before it were known."""
        features: list[dict[str, Any]] = []
        known, seed = list(page.known), page.seed
        while len(features) < page.most:
            page.known = [*known, *(feature["name"] for feature in features)]
            page.seed = f"{seed}:{len(features)}"
            answer = self.compare(page)
            if not answer.pop("found"):
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
        return nested({keys: self.has(one, feature, dice) for keys, (one, feature) in page.cells().items()})

    def has(self, example: Shown, feature: Mapping[str, str], dice: random.Random) -> bool:
        """Whether an example has a feature, or whether the two features that it states mean the same."""
        if feature["name"] == MEAN_THE_SAME.name and len(pair := stated_pair(example.text or "")) == 2:
            return self.same(pair[0], pair[1], dice)
        return self.sees(example, feature, dice)

    def sees(self, example: Shown, feature: Mapping[str, str], dice: random.Random) -> bool:  # noqa: ARG002
        return feature["name"] in self.traits(example)

    def same(self, one: Mapping[str, str], other: Mapping[str, str], dice: random.Random) -> bool:  # noqa: ARG002
        return one["name"].casefold() == other["name"].casefold()

    def why(self, page: Page) -> dict[str, Any]:
        [example], feature = page.examples, page.features[""]
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
        cells = iter(page.cells().values() if page.kind is None and page.features else ())
        tokens = []
        for word in re.findall(r"true|false|[^tf]+|.", content, re.DOTALL):
            cell = next(cells, None) if word in ("true", "false") else None
            sure = self.sure(*cell) if cell else 1.0
            one = {"token": word, "logprob": math.log(sure), "bytes": None}
            other = {"token": "false" if word == "true" else "true", "logprob": math.log(max(1e-9, 1 - sure))}
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
