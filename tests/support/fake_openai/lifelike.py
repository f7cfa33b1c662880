"""A server that answers as a real vision-language model does, about a data set whose truth is known to it.

Comparisons are answered from the truth with natural variety: capitals, plurals, other words for the same thing, vague
names now and then, something that is known already. Labels are wrong where an example looks like those of the other
side (hardness.py), not by coin. Some replies are prose, some requests fail, some take long. Tokens are counted by
OpenAI's rules, in a book of its own."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from tests.support.fake_openai.hardness import hardness, seen_of
from tests.support.fake_openai.mind import FakeModel, Page, Shown, differs, family_reply, listed, named, nested
from tests.support.fake_openai.server import CHAT, Abilities, FakeOpenAI
from tests.support.fake_openai.tokens import TokenCounter
from tests.support.fake_openai.wire import Request, Response
from twothirds.discovery.questions import Kind, possible_counts
from twothirds.discovery.simulation import TrueAttribute, attribute_among, true_attributes, true_scale
from twothirds.models.prices import Price
from twothirds.sources import Dataset, open_image

SIDE = 16  # pixels of the signature by which a picture is recognised
FRAMING = ("", "", "", "", "", "has {}", "visible {}", "{} present", "presence of {}")
MEANINGS = (
    "The example shows or mentions {}.",
    "There is {} in the example.",
    "It can be seen or read that the example has {}.",
    "{} is clearly present.",
    "One notices {} when looking at the example.",
)
VAGUE = ("distinctive style", "overall impression", "similar theme", "unusual character", "general appearance", "mood")
OTHER_WORDS = (
    ("big", "large"), ("small", "little"), ("hat", "cap"), ("glasses", "spectacles"), ("grey", "gray"),
    ("moustache", "mustache"), ("coat", "jacket"), ("picture", "image"), ("person", "human"), ("car", "automobile"),
    ("animal", "creature"), ("predator", "hunter"), ("child", "kid"), ("smiling", "grinning"), ("angry", "cross"),
    ("sea", "ocean"), ("stone", "rock"), ("round", "circular"), ("blonde", "fair"), ("sad", "unhappy"),
    ("company", "firm"), ("money", "cash"), ("sport", "athletics"), ("science", "research"), ("war", "conflict"),
    ("colour", "color"), ("yellow", "golden"), ("stripe", "band"), ("star", "asterisk"), ("wings", "pinions"),
)  # fmt: skip
_FILLERS = {"has", "have", "with", "a", "an", "the", "of", "visible", "present", "presence", "is", "feature", "some"}


def _singular(word: str) -> str:
    return word.rstrip("s") if len(word) > 2 else word


_CANONICAL = {_singular(other): _singular(word) for word, other in OTHER_WORDS}


def meaning_of(name: str) -> str:
    """The words that matter, singular, each in its usual form: equal for names that mean the same."""
    words = re.findall(r"[^\W_]+", name.casefold())
    singular = [_singular(word) for word in words if word not in _FILLERS]
    return " ".join(_CANONICAL.get(word, word) for word in singular)


@dataclass(frozen=True)
class Failings:
    """How often the model does what; shares between 0 and 1."""

    label_noise: float = 0.06
    vague: float = 0.03
    repeats_known: float = 0.06
    other_words: float = 0.125
    misjudges: float = 0.03  # whether two features mean the same
    errs_by_wording: bool = False  # other words for a feature are labelled with errors of their own
    prose: float = 0.03
    too_many: float = 0.01
    broken: float = 0.01
    slow: float = 0.01
    seconds: float = 0.0  # a usual reply takes so long
    slow_seconds: float = 2.0


class LifelikeModel(FakeModel):
    def __init__(self, dataset: Dataset, habits: Failings, seed: int = 0) -> None:
        super().__init__()
        assert dataset.truth is not None, f"{dataset.spec} has no truth: give one with truth.csv"
        self.habits, self.seed = habits, seed
        self.names = dataset.truth.columns
        self.truth = dataset.truth.matrix == 1
        self._by_meaning = {meaning_of(name): column for column, name in enumerate(self.names)}
        self._rows_of_text = {example.text: row for row, example in enumerate(dataset.examples) if example.text}
        self._rows_of_prefix = {text[:200]: row for text, row in self._rows_of_text.items()}
        pictured = [(row, example) for row, example in enumerate(dataset.examples) if example.image]
        self._picture_rows = [row for row, _ in pictured]
        self._signatures = np.array([_signature(open_image(example)) for _, example in pictured], dtype=np.float32)
        self._recognised: dict[str, int] = {}
        view = seen_of(dataset, self._signatures, self._picture_rows)
        self._hardness = hardness(view, self.truth, habits.label_noise, seed)
        self._luck = np.random.default_rng([seed, 2]).random(self.truth.shape)
        self._salience = np.exp(0.8 * np.random.default_rng([seed, 3]).standard_normal(len(self.names)))

    def usual_labels(self) -> NDArray[np.bool_]:
        """What it says of each cell on most occasions."""
        said: NDArray[np.bool_] = self.truth ^ (self._luck < self._hardness.chance)
        return said

    def row_of(self, example: Shown) -> int:
        if example.text is not None and not example.pictures:
            row = self._rows_of_text.get(example.text)
            return row if row is not None else self._rows_of_prefix[example.text[:200]]
        url = example.pictures[0]
        if url not in self._recognised:
            with Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))) as image:
                distance = np.abs(self._signatures - _signature(image)).sum(axis=1)
            self._recognised[url] = self._picture_rows[int(distance.argmin())]
        return self._recognised[url]

    def seen(self, row: int, column: int, dice: random.Random, wording: str = "") -> bool:
        """What the model makes of a cell: the same on most occasions, and by chance where the cell is borderline."""
        luck = float(self._luck[row, column])
        if wording and self.habits.errs_by_wording:
            luck = _hashed(self.seed, row, column, wording)
        return bool(self.truth[row, column]) != _errs(float(self._hardness.chance[row, column]), luck, dice)

    def compare(self, page: Page) -> dict[str, Any]:
        dice, habits = random.Random(f"{self.seed}:{page.seed}"), self.habits
        rows = [self.row_of(example) for example in page.examples]
        letters = [example.title.removeprefix("Example ") for example in page.examples]
        seen = {column: [self.seen(row, column, dice) for row in rows] for column in range(len(self.names))}
        valid = [column for column, values in seen.items() if self._fits(page, values)]
        known = {self._by_meaning.get(meaning_of(name)) for name in page.known}
        new = [column for column in valid if column not in known]
        old = [column for column in valid if column in known]
        if dice.random() < habits.vague or not (new or old):
            if dice.random() < 0.75 and not new:
                return named(page, [], letters, "none", "")
            return self._vague(page, letters, dice)
        if old and (not new or dice.random() < habits.repeats_known):
            if not new and dice.random() < 0.7:
                return named(page, [], letters, "none", "")
            column = dice.choice(old)
        else:
            column = dice.choices(new, [float(self._salience[one]) for one in new])[0]
        having = [letter for letter, has in zip(letters, seen[column], strict=True) if has]
        return self._answer(page, self.reworded(self.names[column], dice), self.names[column], having, letters, dice)

    def _vague(self, page: Page, letters: list[str], dice: random.Random) -> dict[str, Any]:
        name = dice.choice(VAGUE)
        return self._answer(page, name, name, letters[: max(1, len(letters) - 1)], letters, dice)

    @staticmethod
    def _answer(
        page: Page, name: str, thing: str, having: list[str], letters: list[str], dice: random.Random
    ) -> dict[str, Any]:
        definition = dice.choice(MEANINGS).format(thing)
        return named(page, having, letters, name, definition[0].upper() + definition[1:])

    @staticmethod
    def _fits(page: Page, values: Sequence[bool]) -> bool:
        if page.kind is Kind.LEFT_RIGHT:
            return all(has == (example.group == 1) for has, example in zip(values, page.examples, strict=True))
        if page.kind is Kind.GROUPS:
            return differs(page, values)
        return page.kind is not None and sum(values) in possible_counts(page.kind, len(values))

    def reworded(self, name: str, dice: random.Random) -> str:
        """The name as a model may write it: mostly as it is, now and then in other words."""
        if dice.random() < self.habits.other_words:
            swaps = {word: other for word, other in OTHER_WORDS if re.search(rf"\b{word}\b", name)}
            for word, other in swaps.items():
                name = re.sub(rf"\b{word}\b", other, name)
            if not swaps:
                framing = dice.choice(FRAMING)
                name = framing.format(name) if framing else (name if name.endswith("s") else f"{name}s")
        return dice.choice((name, name, name, name.capitalize(), name.title()))

    def column_of(self, name: str, definition: str = "") -> int | None:
        """The attribute that a feature means; None for a vague one."""
        column = self._by_meaning.get(meaning_of(name))
        if column is not None:
            return column
        said = f" {meaning_of(definition)} "
        found = [(len(words), number) for words, number in self._by_meaning.items() if words and f" {words} " in said]
        return max(found)[1] if found else None

    def label(self, page: Page) -> dict[str, Any]:
        dice = random.Random(f"{self.seed}:{page.seed}")
        said = {keys: self.has(one, feature, dice) for keys, (one, feature) in page.cells().items()}
        return listed(said) if page.asks_lists else nested(said)

    def same(self, one: Mapping[str, str], other: Mapping[str, str], dice: random.Random) -> bool:
        """By the attributes that they mean, or the words where they mean none; now and then mistaken, by chance."""
        columns = [self.column_of(each["name"], each["definition"]) for each in (one, other)]
        vague = columns == [None, None] and meaning_of(one["name"]) == meaning_of(other["name"])
        right = vague or (columns[0] is not None and columns[0] == columns[1])
        return right != (dice.random() < self.habits.misjudges)

    def sees(self, example: Shown, feature: Mapping[str, str], dice: random.Random) -> bool:
        row, column = self.row_of(example), self.column_of(feature["name"], feature.get("definition", ""))
        if column is None:
            return _hashed(self.seed, row, meaning_of(feature["name"])) < 0.5
        return self.seen(row, column, dice, feature["name"])

    def family(self, page: Page) -> dict[str, Any]:
        """By the columns of the truth that exclude one another."""
        columns = [self.column_of(one["name"], one["definition"]) for one in page.features.values()]
        if page.asks_scale:
            scale = true_scale(self.truth.astype(np.int8), columns, self.names)
            return family_reply(scale, range(len(columns)) if scale else [], ordered=True)
        found = attribute_among(columns, self._attributes)
        if found is None:
            return family_reply("", [])
        attribute, members = found
        new = [self.names[column] for column in attribute.columns if column not in columns]
        return family_reply(attribute.name, members, new)

    @cached_property
    def _attributes(self) -> list[TrueAttribute]:
        return true_attributes(self.truth.astype(np.int8), self.names)

    def choose(self, page: Page) -> dict[str, Any]:
        """Wrong as often as a label is, where the example is hard: then any other value, or none. The same on most
        occasions, but for the order in which the values stand."""
        row = self.row_of(page.examples[0])
        columns = [self.column_of(one["name"], one["definition"]) for one in page.values]
        having = [place for place, column in enumerate(columns, 1) if column is not None and self.truth[row, column]]
        right = having[0] if len(having) == 1 else -1 if having else 0
        dice = random.Random(f"{self.seed}:{page.seed}")
        known = [column for column in columns if column is not None]
        chance = float(self._hardness.chance[row, known].mean()) if known else 0.5
        luck = _hashed(self.seed, "value", row, [one["name"] for one in page.values])
        wrong = _errs(chance, luck, dice)
        others = [value for value in range(len(columns) + 1) if value != right]
        return {"value": dice.choice(others) if wrong else right}

    def sure(self, example: Shown, feature: Mapping[str, str]) -> float:
        """Less where a cell is near the border."""
        column = self.column_of(feature["name"], feature.get("definition", ""))
        return 0.6 if column is None else float(self._hardness.sure[self.row_of(example), column])

    def decide(self, page: Page, questions: Sequence[Any]) -> list[dict[str, Any]]:
        dice, answers = random.Random(f"{self.seed}:{page.seed}"), []
        for question in questions:
            parts = question["instructions"]
            data = next(part["data"] for part in parts if "data" in part)
            item = re.search(r"[Ii]tem (\d+)", "".join(part.get("text", "") for part in parts))
            shown = [one for one in page.examples if item is None or one.title == f"Item {item.group(1)}"]
            sure = dice.uniform(0.75, 0.99)
            probability = sure if self.has(shown[0], data, dice) else 1 - sure
            answers.append({"type": "predicate", "name": question.get("name"), "probability": round(probability, 4)})
        return answers


def _errs(chance: float, luck: float, dice: random.Random) -> bool:
    """By luck, which is the same on every occasion, and near its border by the dice of this one."""
    width = 0.3 * min(chance, 1 - chance)
    return luck < chance - width or (luck < chance + width and dice.random() < 0.5)


def _signature(image: Image.Image) -> NDArray[np.float32]:
    return np.asarray(image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR), dtype=np.float32).ravel()


def _hashed(*parts: object) -> float:
    return int(hashlib.sha256(repr(parts).encode()).hexdigest()[:12], 16) / 16**12


class LifelikeServer(FakeOpenAI):
    """`GET /book` tells what it has charged so far."""

    def __init__(
        self,
        dataset: Dataset,
        habits: Failings | None = None,
        *,
        price: Price | None = None,
        seed: int = 0,
        abilities: Abilities | None = None,
        port: int = 0,
    ) -> None:
        self.habits = habits or Failings()
        self.lifelike = LifelikeModel(dataset, self.habits, seed)
        super().__init__(self.lifelike, abilities, port)
        self.price = price
        self.pictures_sent, self.labels_asked, self.failed = 0, 0, 0
        self.sends: Counter[int] = Counter()  # of the pictures of each example, by its row
        self._tokens = TokenCounter()
        self._pace = random.Random(seed)
        faults = {"prose": self.habits.prose, "429 with time": self.habits.too_many, "500": self.habits.broken}
        wanted = {kind: share for kind, share in faults.items() if share}
        if wanted:
            kinds = [kind for kind, share in wanted.items() for _ in range(round(1000 * share))]
            self.misbehave(sum(wanted.values()), kinds, seed)

    def summary(self) -> dict[str, Any]:
        """Requests, tokens and dollars in all."""
        usages = [charge.usage for charge in self.book]
        total = {"charged_requests": len(usages), "failed_requests": self.failed}
        for name in ("prompt_tokens", "completion_tokens"):
            total[name] = sum(usage[name] for usage in usages)
        total["cached_tokens"] = sum(usage["prompt_tokens_details"]["cached_tokens"] for usage in usages)
        total |= {"pictures_sent": self.pictures_sent, "labels_asked": self.labels_asked}
        return total | ({"usd": self.spent(self.price) / 1e6} if self.price else {})

    def complete(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        data = super().complete(path, body)
        if path == CHAT:
            data["usage"] = self._tokens.usage(body, data["choices"][0]["message"]["content"])
        return data

    def _content(self, page: Page, body: dict[str, Any], enforced: str | None) -> str:
        page.seed = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
        self.pictures_sent += sum(len(example.pictures) for example in page.examples)
        self.sends.update(self.lifelike.row_of(example) for example in page.examples if example.pictures)
        if page.asks_labels:
            self.labels_asked += len(page.cells())
        return super()._content(page, body, enforced)

    def _spoiled(self, path: str, body: dict[str, Any]) -> Response:
        response = super()._spoiled(path, body)
        self.failed += response.status >= 400
        slow = self._pace.random() < self.habits.slow
        response.delay += self.habits.slow_seconds if slow else self.habits.seconds * self._pace.uniform(0.5, 2.0)
        return response

    def _route(self, request: Request) -> Response:
        if request.path == "/book":
            return Response.of(self.summary() | {"habits": asdict(self.habits)})
        return super()._route(request)


def lines_of(summary: dict[str, Any]) -> Iterable[str]:
    return (f"{name.replace('_', ' ')}: {value:,}" for name, value in summary.items())
