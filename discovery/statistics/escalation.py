"""How many votes are enough, and when to escalate from a model to people: the cost and accuracy of each setting.

Accuracies are computed from recorded votes. Votes are drawn without replacement in all possible ways at once
(hypergeometric distribution), so that the curve over the number of votes has no noise of its own; a tie counts as half
right. Settings that ask people about some labels only select them by the model's own doubt, which is known before
people are asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery.questions import UNKNOWN, Labels

NEGLIGIBLE_LOSS = 0.01  # of accuracy


def chance_of_right(
    votes: NDArray[np.int8], true: Labels, drawn: int, *, first_right: bool | None = None
) -> NDArray[np.float64]:
    """For each example (votes are examples × workers), how probable it is that the majority of `drawn` of its votes is
    right; NaN where there is no vote or the truth is unknown. Where fewer were cast, all of them are drawn.

    With `first_right`, given that the first of the drawn votes is right, or wrong; NaN where that cannot be."""
    right = (votes == true[:, None]).sum(1)
    cast = (votes != UNKNOWN).sum(1)
    pairs, place = np.unique(np.stack([right, cast], axis=1), axis=0, return_inverse=True)
    chances = np.array([_chance(int(r), int(c), min(drawn, int(c)), first_right) for r, c in pairs])
    return np.where(true != UNKNOWN, chances[place.reshape(-1)], np.nan)


@cache
def _chance(right: int, cast: int, drawn: int, first_right: bool | None) -> float:
    if cast == 0 or (first_right is not None and (right if first_right else cast - right) == 0):
        return float("nan")
    ahead, given = int(first_right is True), int(first_right is not None)
    right, cast, more = right - ahead, cast - given, drawn - given
    ways = comb(cast, more)
    total = 0.0
    for good in range(max(0, more - (cast - right)), min(right, more) + 1):
        sure = 2 * (good + ahead)
        worth = 1.0 if sure > drawn else 0.5 if sure == drawn else 0.0
        total += worth * comb(right, good) * comb(cast - right, more - good) / ways
    return total


def odd_numbers(most: int) -> list[int]:
    """1, 3, 5 … and `most` itself: an even number of votes is no better than one less, and can be tied."""
    return sorted({*range(1, most + 1, 2), most}) if most else []


def enough(curve: dict[int, float]) -> int | None:
    """The fewest votes that give nearly as much as all of them."""
    if not curve:
        return None
    most = curve[max(curve)]
    return min(votes for votes, accuracy in curve.items() if accuracy >= most - NEGLIGIBLE_LOSS)


Floats = NDArray[np.float64]
MAX_THRESHOLDS = 40  # of a curve


@dataclass(frozen=True, slots=True)
class Setting:
    who: str  # as people read it
    kind: str  # model, people, uncertainty or disagreement
    model_votes: int
    people_votes: int
    escalated: float  # share of the labels that go to people
    threshold: float | None  # they go where the doubt is at least this
    cost: float  # per label
    accuracy: float

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, eq=False)
class Side:
    """Chances of being right per label, by number of votes, and what a vote costs."""

    name: str
    right: Mapping[int, Floats]
    cost_per_vote: float

    def over(self, rows: NDArray[np.bool_]) -> Side:
        return Side(self.name, {votes: chances[rows] for votes, chances in self.right.items()}, self.cost_per_vote)


def alone(side: Side, kind: str) -> list[Setting]:
    """The side by itself, with every number of votes."""
    return [
        Setting(
            f"{side.name}, {votes} vote{'s' if votes > 1 else ''}",
            kind,
            votes if kind == "model" else 0,
            votes if kind == "people" else 0,
            1.0 if kind == "people" else 0.0,
            None,
            votes * side.cost_per_vote,
            float(chances.mean()),
        )
        for votes, chances in side.right.items()
        if len(chances)
    ]


def escalated(model: Side, model_votes: int, people: Side, doubt: Floats, kind: str) -> list[Setting]:
    """The model labels everything; where its doubt is at least a threshold, people decide instead."""
    if not len(doubt):
        return []
    thresholds = np.unique(doubt)[::-1]
    if len(thresholds) > MAX_THRESHOLDS:
        thresholds = thresholds[np.unique(np.linspace(0, len(thresholds) - 1, MAX_THRESHOLDS).astype(int))]
    base = model.right[model_votes]
    settings = []
    for votes, chances in people.right.items():
        for threshold in thresholds.tolist():
            asked = doubt >= threshold
            share = float(asked.mean())
            if share == 1.0 and len(thresholds) > 1:
                continue  # people alone, and the model paid for nothing
            settings.append(
                Setting(
                    f"{model.name}, {people.name} where in doubt ({votes} vote{'s' if votes > 1 else ''})",
                    kind,
                    model_votes,
                    votes,
                    share,
                    float(threshold),
                    model_votes * model.cost_per_vote + share * votes * people.cost_per_vote,
                    float(np.where(asked, chances, base).mean()),
                )
            )
    return settings


def cheapest(settings: list[Setting], accuracy: float) -> Setting | None:
    """The cheapest that reaches the accuracy; of equally cheap ones the most accurate."""
    good = [setting for setting in settings if setting.accuracy >= accuracy]
    return min(good, key=lambda setting: (setting.cost, -setting.accuracy, setting.people_votes), default=None)


def frontier(settings: list[Setting]) -> list[Setting]:
    """Those that no other beats in both cost and accuracy, the cheapest first."""
    best: list[Setting] = []
    for setting in sorted(settings, key=lambda setting: (setting.cost, -setting.accuracy)):
        if not best or setting.accuracy > best[-1].accuracy:
            best.append(setting)
    return best
