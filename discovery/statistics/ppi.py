"""The share of a feature from people's labels on a sample and a model's labels on all.

A. N. Angelopoulos, J. C. Duchi and T. Zrnic 2023, "PPI++: efficient prediction-powered inference" (arXiv 2311.01453),
for a mean. With Y the people's labels and f the model's on the n examples of the sample, f′ the model's on N others,

    θ = mean(Y) + λ (mean(f′) − mean(f)),    variance = λ² var(f′) / N + var(Y − λ f) / n,
    λ = cov(Y, f) / ((1 + n / N) var(f over all)), held between 0 and 1,

so that an uninformative model gets λ = 0, which leaves the people's own estimate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery.questions import UNKNOWN, Labels
from twothirds.discovery.statistics.intervals import Z_95, Estimate, share

MIN_LABELS_OF_PEOPLE = 10  # people's labels, below which the normal interval means nothing


@dataclass(frozen=True, slots=True)
class Corrected:
    """The same share estimated three ways, and what the model was worth."""

    corrected: Estimate
    people: Estimate
    model: Estimate
    weight: float | None  # λ
    sampled: int
    others: int
    saved: Estimate  # people's labels that the model replaced: to be as sure without it, so many more would be needed

    def to_json(self) -> dict[str, Any]:
        return {
            "corrected": self.corrected.to_json(),
            "people": self.people.to_json(),
            "model": self.model.to_json(),
            "weight": self.weight,
            "sampled": self.sampled,
            "others": self.others,
            "saved": self.saved.to_json(),
        }


def corrected_share(people: Labels, model: Labels) -> Corrected:
    """Over the same examples; where people gave no label, `people` is UNKNOWN. Examples without a model's label are
    left out, as far as the model is concerned."""
    known = model != UNKNOWN
    sample, rest = known & (people != UNKNOWN), known & (people == UNKNOWN)
    n, others = int(sample.sum()), int(rest.sum())
    labelled = people[people != UNKNOWN]
    alone = share(int((labelled == 1).sum()), len(labelled), "people labelled no example")
    machine = share(int((model == 1).sum()), int(known.sum()), "the model labelled no example")
    reason = _why_not(n, others)
    if reason:
        nothing = Estimate.undefined(reason)
        return Corrected(nothing, alone, machine, None, n, others, nothing)
    y, f, unseen = (values.astype(np.float64) for values in (people[sample], model[sample], model[rest]))
    weight = tuning(y, f, unseen)
    value = float(y.mean() + weight * (unseen.mean() - f.mean()))
    variance = float(weight**2 * unseen.var() / others + (y - weight * f).var() / n)
    return Corrected(_around(value, variance), alone, machine, weight, n, others, _saved(y, variance, n))


def tuning(y: NDArray[np.float64], f: NDArray[np.float64], unseen: NDArray[np.float64]) -> float:
    """λ, the weight of the model that makes the variance least."""
    spread = float(np.concatenate([f, unseen]).var(ddof=1))
    if spread == 0 or len(y) < 2:
        return 0.0
    together = float(np.cov(y, f, bias=True)[0, 1])
    return min(1.0, max(0.0, together / ((1 + len(y) / len(unseen)) * spread)))


def _around(value: float, variance: float) -> Estimate:
    value = min(1.0, max(0.0, value))
    if variance == 0:
        return Estimate(value, reason="no interval: people and model gave the same label everywhere")
    half = Z_95 * math.sqrt(variance)
    return Estimate(value, max(0.0, value - half), min(1.0, value + half))


def _saved(y: NDArray[np.float64], variance: float, n: int) -> Estimate:
    if variance == 0 or y.var() == 0:
        return Estimate.undefined("people gave one and the same label to the whole sample")
    return Estimate(max(0.0, float(y.var()) / variance - n))


def _why_not(n: int, others: int) -> str:
    if n < MIN_LABELS_OF_PEOPLE:
        return f"people and model both labelled {n} examples, and it takes {MIN_LABELS_OF_PEOPLE}"
    return "" if others else "people labelled every example that the model did: nothing is left to estimate"
