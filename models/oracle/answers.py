"""What an oracle answers, with its cost."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from models.oracle.money import Money
from models.oracle.questions import Feature, Question


class Verdict(StrEnum):
    FEATURE = "feature"
    NONE = "none"
    YES = "yes"
    NO = "no"
    REFUSED = "refused"
    UNREADABLE = "unreadable"


UNUSABLE = frozenset({Verdict.REFUSED.value, Verdict.UNREADABLE.value})
USABLE = frozenset(verdict.value for verdict in Verdict) - UNUSABLE


@dataclass(frozen=True, slots=True)
class Usage:
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0  # of the input tokens, those the provider had read before: cheaper
    reasoning_tokens: int = 0  # of the output tokens, those the model thought with: billed as output

    def to_json(self) -> tuple[int, ...]:
        return self.requests, self.input_tokens, self.output_tokens, self.cached_tokens, self.reasoning_tokens


@dataclass(frozen=True, slots=True)
class NamedFeature:
    """A feature that a comparison brought out, and the positions of the examples that are said to have it. Of a group
    question those of `without` follow."""

    feature: Feature
    shown: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    question: Question
    verdict: Verdict
    by: str  # who answered: a model, a reviewer, a simulated worker
    feature: Feature | None = None  # with Verdict.FEATURE: the best one
    shown: tuple[int, ...] = ()  # with FEATURE: as in NamedFeature
    probability: float | None = None  # of YES, where the oracle knows one
    usage: Usage = Usage()
    cost: Money = 0
    booked: Money = 0  # the part of the cost that is in the books already, and must not be booked again
    in_doubt: Money = 0  # at most what requests for it that failed have cost in addition
    seconds: float = 0.0
    raw: str = ""  # the reply as it came
    note: str = ""  # with REFUSED and UNREADABLE: why, in a few words
    more: tuple[NamedFeature, ...] = ()  # with FEATURE: the next best ones, where the question asks for several
    reason: str = ""  # where the question asks why
    quote: str = ""  # words of the text that show it
    ordered: bool = False  # of a family: its values have an order
    cached: bool = field(default=False, compare=False)  # taken from the store: nothing was paid now

    @property
    def features(self) -> tuple[NamedFeature, ...]:
        """All that were named, best first."""
        return () if self.feature is None else (NamedFeature(self.feature, self.shown), *self.more)

    def cost_of(self, feature: Feature) -> Money:
        """The part of the cost that falls to one of its features."""
        part, rest = divmod(self.cost, max(len(self.features), 1))
        return part + (rest if feature == self.feature else 0)

    def with_cost(self, cost: Money) -> Answer:
        return replace(self, cost=cost)

    def to_json(self) -> dict[str, Any]:
        """Everything but the question, which the store keeps beside it."""
        rare: dict[str, Any] = {"more": [_named_json(named) for named in self.more]} if self.more else {}
        if self.reason:
            rare |= {"reason": self.reason, "quote": self.quote}
        if self.ordered:
            rare["ordered"] = True
        return {
            "verdict": str(self.verdict),
            "by": self.by,
            "feature": [self.feature.name, self.feature.definition] if self.feature else None,
            "shown": self.shown,
            **rare,
            "probability": self.probability,
            "usage": self.usage.to_json(),
            "cost": self.cost,
            "seconds": self.seconds,
            "raw": self.raw,
            "note": self.note,
        }

    @classmethod
    def from_json(cls, question: Question, data: dict[str, Any], *, cached: bool) -> Answer:
        return cls(
            question=question,
            verdict=Verdict(data["verdict"]),
            by=data["by"],
            feature=Feature(*data["feature"]) if data["feature"] else None,
            shown=tuple(data["shown"]),
            more=tuple(
                NamedFeature(Feature(name, definition), tuple(shown))
                for name, definition, shown in data.get("more", ())
            ),
            ordered=data.get("ordered", False),
            probability=data["probability"],
            usage=Usage(*data["usage"]),
            cost=data["cost"],
            seconds=data["seconds"],
            raw=data["raw"],
            note=data["note"],
            reason=data.get("reason", ""),
            quote=data.get("quote", ""),
            cached=cached,
        )


def _named_json(named: NamedFeature) -> list[Any]:
    return [named.feature.name, named.feature.definition, list(named.shown)]
