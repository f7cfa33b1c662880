"""The books of one run in this process: its budget, and what it has counted."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from twothirds.models.oracle import Answer, Money, OracleUnavailable, Overcharge, Traffic, in_usd

if TYPE_CHECKING:
    from twothirds.store import Store


class RunLedger:
    """What all oracles of a run share: the store, the run, its budget, and the only counters. Safe to use from many
    threads. Refused and unreadable answers from before the time `retry_unusable` are asked again."""

    def __init__(
        self,
        store: Store,
        run_id: str,
        scope: str,
        budget: Money | None = None,
        retry_unusable: float | None = None,
    ) -> None:
        self.store = store
        self.run_id = run_id
        self.scope = scope
        self.budget = budget  # what is booked counts against it
        self.retry_unusable = retry_unusable
        self.paid_calls = 0
        self.cached_calls = 0
        self.cost: Money = 0  # paid by this run, now
        self.in_doubt: Money = 0  # at most what requests of this run, now, cost in addition that never reported it
        self.halted = False
        self.overcharge: Overcharge | None = None  # the first reply above its bound: nothing more is sent
        self.outage: OracleUnavailable | None = None  # nothing was answered since
        self.traffic = Traffic()
        self._counting = threading.Lock()

    def halt(self) -> None:
        """Send nothing more, from any thread: what is on its way is waited for, and `ask` raises Halted then."""
        self.halted = True

    def set_budget(self, budget: Money | None) -> None:
        """From the next request on, from any thread."""
        self.budget = budget

    def count_paid(self, answers: int, cost: Money, in_doubt: Money) -> None:
        """Count what has come of requests since it was last counted."""
        with self._counting:
            self.paid_calls += answers
            self.cost += cost
            self.in_doubt += in_doubt

    def count_cached(self, answers: Iterable[Answer]) -> Iterator[Answer]:
        """The same answers, each counted as it is taken."""
        for answer in answers:
            with self._counting:
                self.cached_calls += 1
            yield answer

    def count_stored(self, oracle: str, hits: Mapping[str, tuple[int, Money]], answers: int = 0) -> None:
        """Count answers from the store: by kind how many that this run has not paid for, and what they had cost.
        `answers` are counted here that `count_cached` does not see."""
        if hits:
            self.store.costs.note_stored(self.run_id, oracle, hits)
        with self._counting:
            self.cached_calls += answers

    def count_computed(self, oracle: str, labels: int) -> None:
        """Count labels that an oracle which computes them was asked for past the store."""
        self.store.costs.note_computed(self.run_id, oracle, labels)
        with self._counting:
            self.paid_calls += labels

    def left(self) -> Money | None:
        """What is left of the budget; None without one."""
        budget = self.budget
        if budget is None:
            return None
        booked = self.store.runs.booked(self.run_id)
        return budget - booked.spent - booked.reserved

    def why_refused(self, scale: float) -> str:
        """`scale`: how many times their bounds the requests are booked at."""
        booked, budget = self.store.runs.booked(self.run_id), self.budget or 0
        allowed = f"budget of {in_usd(budget, 6 if budget % 10_000 else 2)}{booked.per}"
        used = f"{in_usd(booked.spent, 6)} spent, {in_usd(booked.reserved, 6)} reserved{_why_scaled(scale)}"
        return f"{allowed} is used up ({used}): {booked.remedy}"


def _why_scaled(scale: float) -> str:
    why = f", {scale:.2g} times its bound for every request, because replies were charged above theirs"
    return why if scale > 1.0 else ""
