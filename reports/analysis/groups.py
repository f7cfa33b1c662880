"""How groups of examples differ: the shares of each feature, with intervals and correction for many tests;
and how the shares of a table drift from one version to the next."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery import Labels, same_name
from twothirds.discovery.statistics import wilson
from twothirds.reports.analysis.columns import in_halves, read_column
from twothirds.reports.run import Findings, RunError
from twothirds.sources import Dataset

SIGNIFICANCE = 0.05


@dataclass(frozen=True)
class Share:
    """Positives among the labels known."""

    positives: int
    examples: int

    @classmethod
    def of(cls, labels: Labels) -> Share:
        return cls(int((labels == 1).sum()), int((labels >= 0).sum()))

    def __add__(self, other: Share) -> Share:
        return Share(self.positives + other.positives, self.examples + other.examples)

    @property
    def value(self) -> float | None:
        return self.positives / self.examples if self.examples else None


@dataclass(frozen=True)
class Drift:
    """`low` to `high` is the 95 % interval of the difference between the shares."""

    feature: str
    before: float | None
    now: float | None
    positives_before: int
    positives_now: int
    examples_before: int
    examples_now: int
    low: float | None = None
    high: float | None = None
    p: float = 1.0  # Fisher's exact test
    corrected: float = 1.0  # for all features together (Holm)

    @property
    def moved(self) -> bool:
        return self.corrected < SIGNIFICANCE


def drift_of(names: Sequence[str], before: Sequence[Share], now: Sequence[Share]) -> list[Drift]:
    """One line per feature, in their order."""
    found = [_drift(name, old, new) for name, old, new in zip(names, before, now, strict=True)]
    values = holm([drift.p for drift in found])
    return [replace(drift, corrected=value) for drift, value in zip(found, values, strict=True)]


def _drift(name: str, before: Share, now: Share) -> Drift:
    a, n, b, m = now.positives, now.examples, before.positives, before.examples
    drift = Drift(
        feature=name,
        before=before.value,
        now=now.value,
        positives_before=b,
        positives_now=a,
        examples_before=m,
        examples_now=n,
    )
    if not n or not m:
        return drift
    low, high = newcombe(a, n, b, m)
    return replace(drift, low=low, high=high, p=fisher(a, n, b, m))


MAX_EXAMPLES = 6


@dataclass(frozen=True)
class Difference:
    """One feature in one group against another, or against all the other groups together."""

    order: int
    name: str
    group: str
    other: str
    share: float
    share_other: float
    low: float  # 95 % interval of share - share_other
    high: float
    p: float
    corrected: float = 1.0
    having: tuple[int, ...] = ()  # rows of examples on the side that has it more often
    lacking: tuple[int, ...] = ()  # and of examples on the other side that lack it

    @property
    def difference(self) -> float:
        return self.share - self.share_other

    @property
    def differs(self) -> bool:
        return self.corrected < SIGNIFICANCE


@dataclass(frozen=True)
class GroupsResult:
    by: str
    groups: list[tuple[str, int]]
    differences: list[Difference]  # the surest first
    left_out: list[str]
    pooled: str = ""

    @property
    def tests(self) -> int:
        return len(self.differences)


def compare_groups(findings: Findings, dataset: Dataset | None, name: str) -> GroupsResult:
    """Groups are the values of a column; a quantity is cut in halves."""
    column = read_column(dataset, name, findings.ids)
    column = in_halves(column) if column.is_number else column
    names = [str(group) for group in np.unique(column.values)]
    members = {group: column.rows[column.values == group] for group in names}
    sides: list[tuple[str, str]] = (
        [(names[0], names[1])] if len(names) == 2 else [(name, "the others") for name in names]
    )
    differences = []
    for group, other in sides:
        inside = members[group]
        outside = members[other] if other in members else np.setdiff1d(column.rows, inside)
        for order, feature in enumerate(findings.found, start=1):
            found = _difference(order, feature.name, group, other, feature.labels[inside], feature.labels[outside])
            if found is not None:
                differences.append(_with_examples(found, feature.labels, inside, outside))
    groups = [(group, len(rows)) for group, rows in members.items()]
    return GroupsResult(name, groups, _corrected(differences), column.left_out, column.pooled)


def compare_runs(findings: Findings, name: str, other: Findings, other_name: str) -> GroupsResult:
    """Two data sets that were labelled with features of the same names."""
    differences = []
    for order, feature in enumerate(findings.found, start=1):
        twin = next((candidate for candidate in other.found if same_name(candidate.name, feature.name)), None)
        if twin is None:
            continue
        found = _difference(order, feature.name, name, other_name, feature.labels, twin.labels)
        if found is not None:
            everywhere = np.arange(len(feature.labels))
            differences.append(_with_examples(found, feature.labels, everywhere, everywhere))
    if not differences:
        raise RunError(f"{name} and {other_name} have no feature in common: label one with the other's features first")
    groups = [(name, len(findings.ids)), (other_name, len(other.ids))]
    return GroupsResult("data set", groups, _corrected(differences), [])


def _difference(
    order: int, name: str, group: str, other: str, inside: NDArray[np.int8], outside: NDArray[np.int8]
) -> Difference | None:
    a, n = int((inside == 1).sum()), int((inside >= 0).sum())
    b, m = int((outside == 1).sum()), int((outside >= 0).sum())
    if n == 0 or m == 0:
        return None
    low, high = newcombe(a, n, b, m)
    return Difference(
        order,
        name,
        group=group,
        other=other,
        share=a / n,
        share_other=b / m,
        low=low,
        high=high,
        p=fisher(a, n, b, m),
    )


def newcombe(a: int, n: int, b: int, m: int) -> tuple[float, float]:
    """The 95 % interval of a/n - b/m, from the two Wilson intervals (Newcombe 1998, method 10)."""
    (low_a, high_a), (low_b, high_b) = wilson(a, n), wilson(b, m)
    share_a, share_b = a / n, b / m
    difference = share_a - share_b
    low = difference - math.hypot(share_a - low_a, high_b - share_b)
    high = difference + math.hypot(high_a - share_a, share_b - low_b)
    return max(-1.0, low), min(1.0, high)


def fisher(a: int, n: int, b: int, m: int) -> float:
    """Fisher's exact test, two-sided, of a of n against b of m."""
    from scipy.stats import fisher_exact

    return float(fisher_exact([[a, n - a], [b, m - b]]).pvalue)


def holm(p: list[float]) -> list[float]:
    """Corrected so that with 95 % probability not one of those below 0.05 is there by chance (Holm 1979)."""
    order = sorted(range(len(p)), key=lambda place: p[place])
    corrected, largest = [1.0] * len(p), 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, p[place] * (len(p) - rank)))
        corrected[place] = largest
    return corrected


def _corrected(differences: list[Difference]) -> list[Difference]:
    values = holm([difference.p for difference in differences])
    corrected = [replace(difference, corrected=value) for difference, value in zip(differences, values, strict=True)]
    return sorted(corrected, key=lambda difference: (difference.corrected, difference.p, -abs(difference.difference)))


def _with_examples(
    found: Difference, labels: NDArray[np.int8], inside: NDArray[Any], outside: NDArray[Any]
) -> Difference:
    more, less = (inside, outside) if found.difference >= 0 else (outside, inside)
    rng = np.random.default_rng(found.order)  # others for every feature, the same on every writing
    having, lacking = rng.permutation(more[labels[more] == 1]), rng.permutation(less[labels[less] == 0])
    return replace(found, having=tuple(having[:MAX_EXAMPLES].tolist()), lacking=tuple(lacking[:MAX_EXAMPLES].tolist()))
