"""What a run costs that predicts labels: a part is asked in full, and of the rest what cannot be predicted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discovery.statistics import Promise
from flows.discover.price.rehearsal import Measuring, PriceRange, RehearsedOracle
from models import Feature, Oracle, Panel
from models.predicted import asked_in_full, groups_of
from sources import Example

LEFT_TO_ASK = 0.2  # of what is neither learned from nor sampled: as if the middle one of the cuts passed
AT_ONCE = 8_192  # labels


@dataclass(frozen=True)
class AskedShares:
    """How much of a pool is asked."""

    examples: int  # that are asked in full: to learn from, and to certify
    of: int
    left: tuple[float, ...]  # of each feature, which share of its labels of the other examples is asked
    is_measured: bool = False  # by an earlier run

    @classmethod
    def expected(cls, pool: int, features: int, promise: Promise, *, known: int = 0) -> AskedShares:
        """`known` are examples of the pool that are labelled already."""
        return cls(asked_in_full(pool, promise, known=known), pool - known, (LEFT_TO_ASK,) * features)

    @classmethod
    def as_before(cls, pool: int, promise: Promise, left: tuple[float, ...], *, kept: bool) -> AskedShares:
        """By what an earlier run asked; `kept` says that its classifiers are there."""
        return cls(asked_in_full(pool, promise, kept=kept), pool, left, is_measured=True)

    @property
    def saves(self) -> bool:
        return self.examples < self.of

    def words(self, agree: float) -> str:
        if not self.saves:
            return f"{self.of:,} examples are too few to predict any: all are asked"
        share = sum(self.left) / max(len(self.left), 1)
        source = "as in the run before" if self.is_measured else "assumed"
        return (
            f"{self.examples:,} of {self.of:,} examples are asked, and {share:.0%} of what is left ({source}); the "
            f"other labels are predicted, certified to agree on {agree:.0%}; at most if nothing can be certified"
        )

    def cells(self, examples: Sequence[Example], features: int) -> NDArray[np.bool_]:
        """Those that are asked of a sample of the pool: of pictures whole rows, of texts any."""
        n, rng = len(examples), np.random.default_rng(0)
        full, whole_rows = round(n * self.examples / self.of), examples[0].image is not None
        cells = np.zeros((n, features), np.bool_)
        cells[:full] = True
        for feature in range(features):
            left = max(self.left) if whole_rows else self.left[feature]
            cells[full : full + round((n - full) * left), feature] = True
            if not whole_rows:
                cells[full:, feature] = rng.permutation(cells[full:, feature])
        return cells


def label_cells(
    rehearsal: Oracle,
    examples: Sequence[Example],
    features: Sequence[Feature],
    votes: int,
    cells: NDArray[np.bool_],
) -> None:
    for rows, columns in groups_of(cells, AT_ONCE // votes, examples):
        panel = Panel(rehearsal, [examples[row] for row in rows], votes)
        panel.label([features[column] for column in columns])


def predicted_range(
    full: PriceRange,
    rehearse: Callable[[RehearsedOracle, AskedShares], None],
    shares: AskedShares,
    oracle: Oracle,
    measured: Measuring,
    **terms: Any,
) -> PriceRange:
    """`full` is the price of asking everything, which it costs at most. Where the share is assumed, the range goes from
    nothing that is left to ask to all of it."""
    if not shares.saves:
        return full

    def rehearsed(asked: AskedShares) -> RehearsedOracle:
        rehearsal = RehearsedOracle(oracle, measured, **terms)
        rehearse(rehearsal, asked)
        return rehearsal

    likely = rehearsed(shares)
    least = likely if shares.is_measured else rehearsed(replace(shares, left=(0.0,) * len(shares.left)))
    of_all = 1 / max(full.likely.cost, 1)
    low = round(full.low * least.total.cost * of_all)
    high = round(full.high * likely.total.cost * of_all) if shares.is_measured else full.high
    return replace(full, likely=likely.total, low=low, high=high, calls=round(likely.calls))
