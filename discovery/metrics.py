"""How good a set of discovered features is (Section 7 of the paper).

A matrix of labels has one row per feature, in the order of discovery, and one column per example. A missing label is
never evidence: it neither makes a feature interesting nor tells features or examples apart."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery.questions import UNKNOWN, Labels

LabelMatrix = NDArray[np.int8]  # features × examples
PATTERN_PAIRS_AT_ONCE = 1 << 22  # compared
ENOUGH_ROWS = 8  # labels known for both of two features, of which a correlation tells something
ENOUGH_OF_EACH = 2  # examples on the rarer side: two features that select one and the same example prove little
DIFFERENCE = 0.1  # share of the examples in which a feature must differ to count, unless a run has another


def interesting(labels: Labels, difference: float = DIFFERENCE) -> bool:
    """The feature is true of at least a share of all examples and false of at least as many."""
    n = max(labels.size, 1)
    return bool((labels == 1).sum() / n >= difference and (labels == 0).sum() / n >= difference)


def distinct(labels: Labels, kept: LabelMatrix | Sequence[Labels], difference: float = DIFFERENCE) -> bool:
    """The feature differs from each kept one in at least a share of all examples. A complement is distinct."""
    if not len(kept):
        return True
    return bool((differing(labels, np.asarray(kept)) / max(labels.size, 1) >= difference).all())


def interesting_and_distinct(
    matrix: LabelMatrix | Sequence[Labels],
    difference: float = DIFFERENCE,
    repeats: Sequence[bool] = (),
    doubtful: Sequence[bool] = (),
) -> list[bool]:
    """For each feature whether it counts: of several that are much the same, the one found first does."""
    marks = interest_and_distinctness(matrix, difference, repeats, doubtful)
    return [all(both) and not _at(doubtful, place) for place, both in enumerate(marks)]


def interest_and_distinctness(
    matrix: LabelMatrix | Sequence[Labels],
    difference: float = DIFFERENCE,
    repeats: Sequence[bool] = (),
    doubtful: Sequence[bool] = (),
) -> list[tuple[bool, bool]]:
    """For each feature whether it is interesting, and whether it is distinct from the earlier ones that count.
    `repeats` says which are known to mean what an earlier one means: labels that err may make them look distinct.
    Those that are `doubtful` do not count."""
    kept, found = np.empty((len(matrix), len(matrix[0]) if len(matrix) else 0), np.int8), 0
    marks = []
    for place, labels in enumerate(matrix):
        is_distinct = not _at(repeats, place) and distinct(labels, kept[:found], difference)
        marks.append((interesting(labels, difference), is_distinct))
        if all(marks[-1]) and not _at(doubtful, place):
            kept[found] = labels
            found += 1
    return marks


def correlations(features: LabelMatrix, others: LabelMatrix) -> NDArray[np.float64]:
    """Of each feature with each of the others, over the examples labelled with both; 0 where too little is known."""
    known, positive = (features != UNKNOWN).astype(np.float64), (features == 1).astype(np.float64)
    known_others, positive_others = (others != UNKNOWN).astype(np.float64), (others == 1).astype(np.float64)
    labelled = known @ known_others.T  # examples labelled with both features
    a, b, shared = positive @ known_others.T, known @ positive_others.T, positive @ positive_others.T
    spread = np.sqrt(a * (labelled - a)) * np.sqrt(b * (labelled - b))
    rarer = np.minimum.reduce([a, labelled - a, b, labelled - b])
    enough = (labelled >= ENOUGH_ROWS) & (rarer >= ENOUGH_OF_EACH)
    return np.where(enough, (labelled * shared - a * b) / np.where(enough, spread, 1.0), 0.0)


def g(matrix: LabelMatrix | Sequence[Labels], n: int) -> float:
    """The average share of the `n` examples that an example cannot be told apart from, itself included.

    1 before any feature is known, 1/n when all are told apart; with complete labels the paper's Σ|P_r|²/N². Examples
    with the same labels form a pattern: complete patterns are told apart by being different."""
    if not n or not len(matrix):
        return 1.0
    patterns, sizes = np.unique(np.asarray(matrix, np.int8).reshape(-1, n), axis=1, return_counts=True)
    has, lacks = (patterns == 1).astype(np.float32), (patterns == 0).astype(np.float32)
    incomplete = np.flatnonzero((patterns == UNKNOWN).any(axis=0))
    weights = 2 * sizes  # of a pair of an incomplete pattern and a complete one, which is met once
    weights[incomplete] = sizes[incomplete]
    confused = int(sizes @ sizes)
    for rows in np.array_split(incomplete, max(1, incomplete.size * sizes.size // PATTERN_PAIRS_AT_ONCE)):
        alike = has[:, rows].T @ lacks + lacks[:, rows].T @ has == 0
        alike[np.arange(rows.size), rows] = False
        confused += int(sizes[rows] @ (alike @ weights))
    return confused / n**2


def g_curve(found: Iterable[Sequence[Labels]], n: int) -> list[float]:
    """g after each query, given the labels of the features that each query found."""
    known: list[Labels] = []
    curve: list[float] = []
    for new in found:
        known += new
        curve.append(g(known, n) if new or not curve else curve[-1])
    return curve


def queries_to_reach(curve: Sequence[float], target: float) -> int | None:
    """After how many queries g is at most `target`; None when it never is."""
    return next((query for query, value in enumerate(curve, start=1) if value <= target), None)


def none_bound(nones: int, confidence: float = 0.95) -> float:
    """After `nones` NONEs in a row on uniform draws: with this confidence, at most this share of the unresolved triples
    still yields a feature. About 3/nones at 95 %."""
    return min(1.0, -math.log(1 - confidence) / nones) if nones else 1.0


@dataclass(frozen=True, slots=True)
class TruthMatch:
    best: NDArray[np.intp]  # for each feature its best-matching truth column, -1 where none can be compared
    balanced_accuracy: NDArray[np.float64]  # against that column; 0.5 where none can be compared
    complement: NDArray[np.bool_]  # the feature is the negation of that column
    matched: int  # how many different truth columns are matched well enough

    @property
    def mean_balanced_accuracy(self) -> float:
        return float(self.balanced_accuracy.mean()) if self.balanced_accuracy.size else math.nan


def matches_with_truth(matrix: LabelMatrix | Sequence[Labels], truth: LabelMatrix, enough: float = 0.9) -> TruthMatch:
    """Compare each feature with every truth column (`truth` has one row per column, as `matrix` has per feature).

    Only examples with both labels known count, and only columns of which such examples show both values."""
    labels = np.asarray(matrix, np.int8).reshape(-1, truth.shape[1])
    accuracy = _balanced_accuracies(labels, truth)
    either = np.maximum(accuracy, 1 - accuracy)
    if not either.size:
        nothing = np.full(len(labels), 0.5)
        return TruthMatch(np.full(len(labels), -1), nothing, np.zeros(len(labels), np.bool_), 0)
    best = np.where(np.isnan(either), -1, either).argmax(axis=1)
    rows = np.arange(len(labels))
    score = either[rows, best]
    complement = accuracy[rows, best] < 0.5
    best = np.where(np.isnan(score), -1, best)
    matched = len(np.unique(best[score >= enough]))
    return TruthMatch(best, np.nan_to_num(score, nan=0.5), complement, matched)


MOST_SHUFFLES = 20
SHUFFLED_PRODUCTS = 2e9  # labels compared with truths, over all shuffles


def mean_match_by_chance(matrix: LabelMatrix, truth: LabelMatrix, seed: int) -> float:
    """The mean balanced accuracy of `matches_with_truth` where the labels are shuffled among the examples: best of many
    columns is far above one half. Of very many labels one shuffle tells it."""
    n = truth.shape[1]
    shuffles = int(np.clip(SHUFFLED_PRODUCTS / max(len(matrix) * truth.size, 1), 1, MOST_SHUFFLES))
    rng = np.random.default_rng(seed)
    shuffled = (matches_with_truth(matrix[:, rng.permutation(n)], truth) for _ in range(shuffles))
    return float(np.mean([match.mean_balanced_accuracy for match in shuffled]))


def _balanced_accuracies(labels: LabelMatrix, truth: LabelMatrix) -> NDArray[np.float64]:
    """Features × truth columns; NaN where a truth column has but one value."""
    positive, negative = (labels == 1).astype(np.float64), (labels == 0).astype(np.float64)
    true, false = (truth == 1).astype(np.float64), (truth == 0).astype(np.float64)
    hits, misses = positive @ true.T, negative @ true.T
    rejections, alarms = negative @ false.T, positive @ false.T
    positives, negatives = hits + misses, rejections + alarms
    comparable = (positives > 0) & (negatives > 0)
    accuracy = np.full(hits.shape, np.nan)
    np.divide(hits, positives, out=accuracy, where=comparable)
    np.divide(rejections, negatives, out=rejections, where=comparable)
    return np.where(comparable, (accuracy + rejections) / 2, np.nan)


def differing(labels: Labels, others: LabelMatrix) -> NDArray[np.intp]:
    """From each of the others, in so many examples."""
    counts: NDArray[np.intp] = ((labels == 1) & (others == 0) | (labels == 0) & (others == 1)).sum(axis=-1)
    return counts


def _at(marks: Sequence[bool], place: int) -> bool:
    return place < len(marks) and marks[place]
