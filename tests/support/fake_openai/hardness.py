"""How hard each label is for the lifelike model: an example is hard where it looks like those of the other side.

A model's answer is a function of what it sees, and so are most of its errors. What this model sees is a thumbnail of
the picture and the words of the text. One direction per feature is fitted through that (ridge regression on the truth,
each example judged by the others). Among those that have a feature, and among those that lack it, the labels that lie
furthest towards the other side are the hardest; features whose sides lie close together are harder than others, and so
are examples that are unlike all others. What lies beyond one border is wrong, as many labels as are to be wrong. One
error in ten has no such reason and comes by chance."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twothirds.sources import Dataset

Floats = NDArray[np.float64]
WORDS = 1_024  # numbers that stand for the words of a text
BY_CHANCE = 0.1  # of the errors
BORDER = 0.1  # standard deviations of a side, within which a label is wrong on some occasions and right on others
OF_FEATURE, OF_EXAMPLE = 0.4, 0.5  # by so much a feature or an example is harder, per standard deviation among them
PENALTIES = (0.01, 0.1, 1.0, 10.0)


@dataclass(frozen=True, eq=False)
class Hardness:
    """Examples × features: the chance that a label is wrong, and how sure the model is of what it says."""

    chance: Floats
    sure: Floats


def hardness(view: Floats, truth: NDArray[np.bool_], noise: float, seed: int) -> Hardness:
    """With `noise` wrong on average."""
    hard = _hardness(view, truth, seed)
    by_chance = BY_CHANCE * noise
    low, high = -100.0, 100.0
    for _ in range(60):
        border = (low + high) / 2
        chance = by_chance + (1 - by_chance) * _sigmoid((hard - border) / BORDER)
        low, high = (border, high) if chance.mean() > noise else (low, border)
    return Hardness(chance, np.clip(_sigmoid(np.abs(hard - border)), 0.5, 0.99))


def seen_of(dataset: Dataset, thumbnails: NDArray[np.float32], pictured: list[int]) -> Floats:
    """What is seen of each example: the thumbnail of its picture, and its words."""
    seen = np.zeros((len(dataset.examples), (thumbnails.shape[1] if pictured else 0) + WORDS), np.float32)
    if pictured:
        seen[pictured, WORDS:] = thumbnails / (thumbnails.std() + 1e-9)
    for row, example in enumerate(dataset.examples):
        for word in re.findall(r"\w+", (example.text or "").casefold()):
            seen[row, zlib.crc32(word.encode()) % WORDS] = 1
    return seen[:, seen.any(axis=0)]


def _hardness(view: Floats, truth: NDArray[np.bool_], seed: int) -> Floats:
    """In standard deviations of a side; by chance where a side is empty or nothing is seen."""
    scores, strange = _scores(view, truth.astype(np.float64))
    hard: Floats = np.random.default_rng([seed, 1]).standard_normal(truth.shape)
    apart = np.zeros(truth.shape[1])
    for column, has in enumerate(truth.T):
        score, sides = scores[:, column], (has, ~has)
        if min(side.sum() for side in sides) == 0 or score.std() < 1e-9:
            continue
        for side, towards in zip(sides, (-1, 1), strict=True):
            hard[side, column] = towards * _standard(score[side])
        spread = np.sqrt(np.mean([score[side].var() for side in sides])) + 1e-9
        apart[column] = (score[has].mean() - score[~has].mean()) / spread
    return hard - OF_FEATURE * _standard(apart) + OF_EXAMPLE * _standard(strange)[:, None]


def _scores(view: Floats, truth: Floats) -> tuple[Floats, Floats]:
    """What each example looks like by a ridge regression on all others, with the penalty that errs least, and how
    unlike the others it is (its leverage)."""
    if not view.size:
        return np.zeros_like(truth), np.zeros(len(truth))
    inputs, answers = view - view.mean(axis=0), truth - truth.mean(axis=0)
    _, sizes, directions = np.linalg.svd(np.linalg.qr(inputs, mode="r"), full_matrices=False)
    kept = sizes > 1e-5 * sizes.max(initial=1e-9)
    axes = inputs @ (directions[kept] / sizes[kept, None]).T
    along = axes.T @ answers
    tried = []
    for penalty in PENALTIES:
        shrunk = sizes[kept] ** 2 / (sizes[kept] ** 2 + penalty * np.mean(sizes**2))
        leverage = np.minimum(axes**2 @ shrunk + 1 / len(view), 0.99)
        left = (answers - axes @ (shrunk[:, None] * along)) / (1 - leverage)[:, None]
        tried.append((float((left**2).sum()), answers - left, leverage))
    _, scores, strange = min(tried, key=lambda one: one[0])
    return scores, strange


def _standard(values: Floats) -> Floats:
    """With mean 0 and standard deviation 1; all 0 if they do not differ."""
    return np.asarray((values - values.mean()) / (values.std() + 1e-9))


def _sigmoid(values: Floats) -> Floats:
    chances: Floats = 1 / (1 + np.exp(-np.clip(values, -500, 500)))
    return chances
