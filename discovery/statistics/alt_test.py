"""May a model replace a person? The alternative annotator test.

N. Calderon, R. Reichart and R. Dror 2025, "The alternative annotator test for LLM-as-a-judge: how to statistically
justify replacing human annotators with LLMs" (ACL). Each person is left out in turn. On every example that this person
labelled, the model and the person are scored by how many of the remaining people they agree with; ρ is how often the
model scores at least as well. The person costs more, so the model may be worse by ε: for each person a one-sided t-test
asks whether the person's advantage is below ε. Among all these tests the false discovery rate is controlled (Benjamini
and Yekutieli 2001). The model may replace a person when it wins against half of them or more."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery.questions import UNKNOWN, Labels

EPSILON = {"expert": 0.2, "skilled": 0.15, "crowd": 0.1}  # the paper's, by kind of annotator
LEVEL = 0.05  # false discovery rate
FEWEST_EXAMPLES = 30  # of one person, for the t-test to hold
FEWEST_PEOPLE = 2
ENOUGH_WINS = 0.5


@dataclass(frozen=True, slots=True)
class AgainstOne:
    """The model against one person who is left out."""

    person: str
    examples: int
    advantage: float  # ρ of this person: how often the model scores at least as well
    behind: float  # the person's mean advantage over the model, to be below ε
    p: float
    won: bool = False


@dataclass(frozen=True, slots=True)
class AltTest:
    epsilon: float
    against: tuple[AgainstOne, ...]
    left_out: int  # people with too few examples
    reason: str = ""  # why there is no result

    @property
    def winning_rate(self) -> float | None:
        """ω: the share of the people against whom the model wins."""
        return sum(result.won for result in self.against) / len(self.against) if self.against else None

    @property
    def advantage(self) -> float | None:
        """ρ: how probable it is that the model is as good as a person drawn at random, or better."""
        return sum(result.advantage for result in self.against) / len(self.against) if self.against else None

    @property
    def passes(self) -> bool | None:
        rate = self.winning_rate
        return None if rate is None else rate >= ENOUGH_WINS

    def to_json(self) -> dict[str, Any]:
        return {
            "epsilon": self.epsilon,
            "people": len(self.against),
            "left_out": self.left_out,
            "winning_rate": self.winning_rate,
            "advantage": self.advantage,
            "passes": self.passes,
            "reason": self.reason,
        }


def alt_test(model: Labels, votes: NDArray[np.int8], people: tuple[str, ...], epsilon: float) -> AltTest:
    """`votes` are instances × people, `model` has one label per instance; 1, 0 or UNKNOWN."""
    cast = votes != UNKNOWN
    usable = (cast.sum(1) >= FEWEST_PEOPLE) & (model != UNKNOWN)
    yes, no = (votes == 1).sum(1), (votes == 0).sum(1)
    tested: list[AgainstOne] = []
    for place, person in enumerate(people):
        rows = np.flatnonzero(usable & cast[:, place])
        if len(rows) >= FEWEST_EXAMPLES:
            mine = votes[rows, place]
            tested.append(_against(person, model[rows], mine, yes[rows] - (mine == 1), no[rows] - (mine == 0), epsilon))
    if not tested:
        return AltTest(epsilon, (), len(people), _why_not(model, cast, usable))
    return AltTest(epsilon, _corrected(tested), len(people) - len(tested))


def _against(
    person: str, model: Labels, mine: Labels, yes: NDArray[np.int64], no: NDArray[np.int64], epsilon: float
) -> AgainstOne:
    """`yes` and `no` count the remaining people; both scores have the same denominator."""
    score_model, score_person = np.where(model == 1, yes, no), np.where(mine == 1, yes, no)
    wins, losses = score_model >= score_person, score_person >= score_model
    difference = losses.astype(np.float64) - wins
    p = _p_below(float(difference.mean()), float(difference.std(ddof=1)), len(difference), epsilon)
    return AgainstOne(person, len(difference), float(wins.mean()), float(difference.mean()), p)


def _p_below(mean: float, deviation: float, n: int, epsilon: float) -> float:
    """One-sided t-test of mean < ε. Where nothing varies, the mean is known."""
    from scipy.stats import t

    if deviation == 0:
        return 0.0 if mean < epsilon else 1.0
    return float(t.cdf((mean - epsilon) / (deviation / math.sqrt(n)), n - 1))


def _corrected(tested: list[AgainstOne]) -> tuple[AgainstOne, ...]:
    """Benjamini and Yekutieli's correction holds whatever the dependence between the tests."""
    from scipy.stats import false_discovery_control

    corrected = false_discovery_control([result.p for result in tested], method="by")
    return tuple(replace(result, won=bool(p <= LEVEL)) for result, p in zip(tested, corrected, strict=True))


def _why_not(model: Labels, cast: NDArray[np.bool_], usable: NDArray[np.bool_]) -> str:
    if not (model != UNKNOWN).any():
        return "the model gave no label"
    if not (cast.sum(1) >= FEWEST_PEOPLE).any():
        return "no example has the labels of two people"
    most = int((cast & usable[:, None]).sum(0).max(initial=0))
    return (
        f"no person labelled {FEWEST_EXAMPLES} examples that the model and another person labelled too (most: {most})"
    )
