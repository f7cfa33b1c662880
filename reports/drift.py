"""Whether features have become more or less frequent: the examples labelled now against those labelled before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from discovery.questions import Labels
from reports.groups import fisher, holm, newcombe

SURE = 0.05
MOST_COUNTED = 20_000  # of a side; the exact test grows with it, and more says nothing more


@dataclass(frozen=True)
class Drift:
    """Shares of positives among the labels known; `low` to `high` is the 95 % interval of their difference."""

    feature: str
    before: float | None
    now: float | None
    examples_before: int
    examples_now: int
    low: float | None = None
    high: float | None = None
    p: float = 1.0  # Fisher's exact test
    corrected: float = 1.0  # for all features together (Holm)

    @property
    def moved(self) -> bool:
        return self.corrected < SURE


def drift_of(names: Sequence[str], before: Sequence[Labels], now: Sequence[Labels]) -> list[Drift]:
    """One line per feature, in their order."""
    found = [_drift(name, old, new) for name, old, new in zip(names, before, now, strict=True)]
    values = holm([one.p for one in found])
    return [replace(one, corrected=value) for one, value in zip(found, values, strict=True)]


def _drift(name: str, before: Labels, now: Labels) -> Drift:
    a, n = int((now == 1).sum()), int((now >= 0).sum())
    b, m = int((before == 1).sum()), int((before >= 0).sum())
    if not n or not m:
        return Drift(name, b / m if m else None, a / n if n else None, m, n)
    low, high = newcombe(a, n, b, m)
    return Drift(name, b / m, a / n, m, n, low, high, fisher(*_counted(a, n), *_counted(b, m)))


def _counted(successes: int, trials: int) -> tuple[int, int]:
    if trials <= MOST_COUNTED:
        return successes, trials
    return int(np.rint(successes * MOST_COUNTED / trials)), MOST_COUNTED
