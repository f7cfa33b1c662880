"""What a run has paid, and what it did not have to pay, at its own prices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from models import MICRO, Ballot, Money, Recorded, in_usd
from models.people import RecordedCrowd


@dataclass(frozen=True)
class Spent:
    """What a run has counted, with who labelled first where somebody did."""

    recorded: Recorded | RecordedCrowd
    cheap: Recorded | RecordedCrowd | None

    def allow(self, budget: Money) -> None:
        """Another budget from now on."""
        for one in self._both:
            one.allow(budget)

    def halt(self) -> None:
        """Nothing more is asked."""
        for one in self._both:
            one.halt()

    @property
    def _both(self) -> list[Recorded | RecordedCrowd]:
        return [one for one in (self.recorded, self.cheap) if one is not None]

    def _sum(self, name: str) -> int:
        return int(sum(getattr(one, name) for one in self._both))

    @property
    def cost(self) -> int:
        return self._sum("cost")

    @property
    def in_doubt(self) -> int:
        return self._sum("in_doubt")

    @property
    def paid_calls(self) -> int:
        return self._sum("paid_calls")

    @property
    def cached_calls(self) -> int:
        return self._sum("cached_calls")


@dataclass(frozen=True)
class Savings:
    predicted_labels: int = 0
    predicted: Money = 0  # what these would have cost at the mean price of the labels that were asked beside them
    rows: Money = 0  # what labels in whole rows would have cost more at the mean price of those feature by feature

    def to_json(self) -> dict[str, Any]:
        return {
            "predicted_labels": self.predicted_labels,
            "predicted_usd": self.predicted / MICRO,
            "rows_usd": self.rows / MICRO,
        }

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> Savings:
        """Of what `to_json` wrote, or of nothing."""
        money = (round(saved.get(name, 0) * MICRO) for name in ("predicted_usd", "rows_usd"))
        return cls(saved.get("predicted_labels", 0), *money)

    def __add__(self, other: Savings) -> Savings:
        labels, predicted = self.predicted_labels + other.predicted_labels, self.predicted + other.predicted
        return Savings(labels, predicted, self.rows + other.rows)

    def lines(self) -> list[str]:
        lines = []
        if self.predicted_labels and self.predicted:
            worth = in_usd(self.predicted, 2, at_most=True)
            lines.append(f"{self.predicted_labels:,} labels were predicted: asked, they would have cost about {worth}")
        if self.rows > 0:
            worth = in_usd(self.rows, 2, at_most=True)
            lines.append(f"rows at the end: labelled feature by feature, they would have cost about {worth} more")
        return lines


def savings_of(compared: Sequence[Ballot], rest: Sequence[Ballot], predicted_labels: int) -> Savings:
    """`compared` were labelled feature by feature, `rest` in whole rows, some of them predicted."""
    price, price_in_rows = _mean_price(compared), _mean_price(rest)
    rows = sum(int((ballot.cast > 0).sum()) for ballot in rest)
    return Savings(predicted_labels, round(price_in_rows * predicted_labels), round((price - price_in_rows) * rows))


def _mean_price(ballots: Sequence[Ballot]) -> float:
    """Of a label with all its votes."""
    labels = sum(int((ballot.cast > 0).sum()) for ballot in ballots)
    return sum(vote.cost for ballot in ballots for vote in ballot.answers) / max(labels, 1)
