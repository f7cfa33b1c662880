"""Periods of budgets, in UTC: what all runs of one job book in a period counts against one budget.

A run counts in the period in which it began, to its end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

EVER = "ever"
_NO_END = 1e11


class Job(NamedTuple):
    """What the runs of several nights, or of one comparison, have in common. `per` (day, week, month or EVER) is the
    period of its budget; where it is None, the budget is that of the scope."""

    name: str = ""
    per: str | None = None

    def period_at(self, time: float) -> Period | None:
        """The period in which the time is; weeks begin on Mondays."""
        if self.per is None:
            return None
        if self.per == EVER:
            return Period(self.name, EVER, 0.0, _NO_END)
        day = datetime.fromtimestamp(time, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        begins, ends = {
            "day": (day, day + timedelta(days=1)),
            "week": (day - timedelta(days=day.weekday()), day + timedelta(days=7 - day.weekday())),
            "month": (day.replace(day=1), (day.replace(day=1) + timedelta(days=32)).replace(day=1)),
        }[self.per]
        return Period(self.name, self.per, begins.timestamp(), ends.timestamp())


class Period(NamedTuple):
    """One day, week or month of a job, or all of its time, in seconds since 1970."""

    job: str
    per: str
    begins: float
    ends: float

    @property
    def next_day(self) -> str:
        """On which the next one begins."""
        return f"{datetime.fromtimestamp(self.ends, UTC):%Y-%m-%d}"


class Booked(NamedTuple):
    """What counts against a budget, in micro-dollars: of one period of a job, or else of a scope."""

    spent: int
    reserved: int
    period: Period | None = None

    @property
    def per(self) -> str:
        """The period in words, empty where the budget has none."""
        return f" per {self.period.per}" if self.period and self.period.per != EVER else ""

    @property
    def remedy(self) -> str:
        """What to do where the budget is used up."""
        if self.period is None or self.period.per == EVER:
            return "raise --budget and run again"
        begins = f"the next {self.period.per} begins on {self.period.next_day} (UTC)"
        return f"{begins}; run again then, or raise --budget and run again"
