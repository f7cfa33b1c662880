"""Whether features have become more or less frequent: the examples labelled now against those labelled before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from discovery import Labels
from reports.analysis.groups import fisher, holm, newcombe

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
