"""What an oracle is asked. The content of a question is part of the key under which its answer is kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, zip_longest
from typing import Any

import orjson

from discovery import Kind
from sources import Example


@dataclass(frozen=True, slots=True)
class Exemplar:
    """An example that is known to have a feature or to lack it."""

    example: Example
    has: bool


@dataclass(frozen=True, slots=True)
class Feature:
    """`exemplars` show what is meant: people always see them, models the first `models_see`. Whether features are the
    same is a matter of their words."""

    name: str
    definition: str = ""
    exemplars: tuple[Exemplar, ...] = field(default=(), compare=False)
    models_see: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Compare:
    """`known` names features the answer must differ from, `exclude` others that are not wanted; another list is another
    question."""

    kind: Kind
    examples: tuple[Example, ...]
    without: tuple[Example, ...] = ()
    known: tuple[str, ...] = ()
    voter: int = 0
    most: int = 1  # features that the answer may hold
    exclude: tuple[str, ...] = ()

    @property
    def content(self) -> dict[str, Any]:
        options: dict[str, Any] = {"most": self.most} if self.most > 1 else {}
        if self.exclude:
            options["exclude"] = list(self.exclude)
        return {
            "kind": self.kind.value,
            "examples": [example.digest for example in self.examples],
            "without": [example.digest for example in self.without],
            "known": list(self.known),
            "voter": self.voter,
            **options,
        }


MOST_EXEMPLARS = 8  # of a feature


def exemplars_of(asked: Compare, shown: Sequence[int]) -> tuple[Exemplar, ...]:
    """The examples of a comparison as its answer says; none where it does not say which have the feature."""
    everyone = (*asked.examples, *asked.without)
    having = range(len(asked.examples)) if asked.kind is Kind.LEFT_RIGHT else shown
    has = [everyone[place] for place in having]
    return in_turn(has, [example for place, example in enumerate(everyone) if place not in having]) if has else ()


def in_turn(having: Iterable[Example], lacking: Iterable[Example]) -> tuple[Exemplar, ...]:
    """One that has the feature, one that lacks it, and so on: the first few show both."""
    has = (Exemplar(example, True) for example in having)
    pairs = zip_longest(has, (Exemplar(example, False) for example in lacking))
    return tuple(exemplar for pair in pairs for exemplar in pair if exemplar is not None)[:MOST_EXEMPLARS]


@dataclass(frozen=True, slots=True)
class Label:
    feature: Feature
    example: Example
    voter: int = 0
    kind = Kind.LABEL

    @property
    def exemplars(self) -> tuple[Exemplar, ...]:
        """Those that a model is shown with the feature: never the example itself."""
        feature = self.feature
        if not feature.models_see:
            return ()
        others = (exemplar for exemplar in feature.exemplars if exemplar.example.digest != self.example.digest)
        return tuple(islice(others, feature.models_see))

    @property
    def content(self) -> dict[str, Any]:
        content = _content_of(self)
        if self.feature.models_see and (
            shown := [[exemplar.example.digest, exemplar.has] for exemplar in self.exemplars]
        ):
            content["exemplars"] = shown
        return content


@dataclass(frozen=True, slots=True)
class Same(Label):
    """Whether two features mean the same: a label whose example is a text that states both. Whoever can label texts
    can answer it, many in one request."""

    pair: tuple[Feature, ...] = ()
    kind = Kind.SAME

    @classmethod
    def of(cls, feature: Feature, other: Feature, voter: int = 0) -> Same:
        """The same question whichever comes first."""
        features = first, second = sorted((feature, other), key=lambda found: (found.name, found.definition))
        stated = (f"{found.name} ({found.definition})" if found.definition else found.name for found in features)
        text = "\n".join(f"Feature {number}: {words}" for number, words in enumerate(stated, start=1))
        pair = Example(f"{first.name} = {second.name}", digest_of(["pair", text]), text=text)
        return cls(MEAN_THE_SAME, pair, voter, (first, second))


MEAN_THE_SAME = Feature(
    "mean the same",
    "The two features that the text defines mean the same in other words: whoever finds the one in an example would "
    "find the other in it, and would count them as one.",
)


@dataclass(frozen=True, slots=True)
class Why:
    """Whether the example has the feature, and the reason; of a text also the words that show it."""

    feature: Feature
    example: Example
    voter: int = 0
    kind = Kind.WHY

    @property
    def content(self) -> dict[str, Any]:
        return _content_of(self)


def _content_of(question: Label | Why) -> dict[str, Any]:
    return {
        "kind": str(question.kind),  # `value` takes longer than all the rest
        "feature": (question.feature.name, question.feature.definition),
        "example": question.example.digest,
        "voter": question.voter,
    }


@dataclass(frozen=True, slots=True)
class Family:
    """Which of these features are values of one attribute? The answer is its name; `shown` are the places of those that
    are, and `more` values that no feature stands for, each with its place among all values. NONE: they are not."""

    features: tuple[Feature, ...]
    examples: tuple[Example, ...] = ()  # that seem to have none of them
    scale: bool = False  # each seems to include the next: levels, rather than values that exclude one another
    voter: int = 0
    kind = Kind.FAMILY

    @property
    def content(self) -> dict[str, Any]:
        return {
            "kind": self.kind.value,
            "features": [[feature.name, feature.definition] for feature in self.features],
            "examples": [example.digest for example in self.examples],
            "scale": self.scale,
            "voter": self.voter,
        }


@dataclass(frozen=True, slots=True)
class Choose:
    """Which value does the example have? The answer is one of the values; NONE: none of them, or with the note SEVERAL
    more than one."""

    attribute: Feature
    values: tuple[Feature, ...]
    example: Example
    voter: int = 0
    kind = Kind.VALUE

    @property
    def content(self) -> dict[str, Any]:
        return {
            "kind": self.kind.value,
            "attribute": [self.attribute.name, self.attribute.definition],
            "values": [[value.name, value.definition] for value in self.values],
            "example": self.example.digest,
            "voter": self.voter,
        }


SEVERAL = "more than one of the values"
Single = Compare | Family | Choose | Why  # what has a request of its own; labels may share one
Question = Single | Label


def examples_of(question: Question) -> tuple[Example, ...]:
    """The examples that a question shows."""
    if isinstance(question, Label | Choose | Why):
        return (question.example,)
    return (*question.examples, *(question.without if isinstance(question, Compare) else ()))


NO_QUESTION = Compare(Kind.TAG, ())  # of an answer that is read without its examples, or that is about none

_encoder = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def canonical_json(value: Any) -> str:
    return _encoder.encode(value)


def digest_of(value: Any) -> str:
    return hashlib.sha256(canonical_json(value).encode("utf-8", "surrogatepass")).hexdigest()


def digest_of_content(who: str, content: Mapping[str, Any]) -> str:
    """The same as `digest_of([…, content])`, where `who` is the canonical JSON of what comes first."""
    try:  # texts and whole numbers are all that a question holds: both encoders write them alike
        text = orjson.dumps(content, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # a lone surrogate
        text = canonical_json(content).encode("utf-8", "surrogatepass")
    return hashlib.sha256(b"[%b,%b]" % (who.encode("utf-8", "surrogatepass"), text)).hexdigest()
