"""Rate limits that all processes share: each request reserves its turn, and a 429 of the server slows all of them.

Turns are evenly spaced (a leaky bucket without a burst), so no minute holds more than is allowed. After a 429 the
pace is halved, and it recovers within RECOVERY seconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import Connection, select, update

from twothirds.store.engine import Repository, insert_new, reads, writes
from twothirds.store.schema import rate_limits

MINUTE = 60.0
RECOVERY = 300.0
SLOWEST = 1 / 16
LONGEST_PAUSE = 3600.0  # seconds


class _Turns(NamedTuple):
    """A row: when the next turns are, and how fast they follow each other."""

    name: str
    requests_at: float
    tokens_at: float
    not_before: float
    pace: float
    paced_at: float

    def by_this_clock(self, now: float) -> _Turns:
        """The same if its times can be; else they were written by a clock that was ahead, and are counted from now."""
        ahead = self.paced_at - now if self.paced_at > now + LONGEST_PAUSE else 0.0
        turns = self._replace(
            requests_at=self.requests_at - ahead, tokens_at=self.tokens_at - ahead, paced_at=self.paced_at - ahead
        )
        not_before = self.not_before - ahead
        return turns._replace(not_before=not_before if not_before <= now + LONGEST_PAUSE else now)


@dataclass(frozen=True, slots=True)
class Rate:
    """Limits per minute; None is no limit."""

    requests: int | None = None
    tokens: int | None = None


class Rates(Repository):
    @writes
    def reserve(self, connection: Connection, name: str, rate: Rate, tokens: int) -> float:
        """Take the next turn of what `name` limits, for a request of so many tokens; returns the seconds until then."""
        now = self._clock()
        row = _locked(connection, name, now)
        pace = _pace(row, now)
        turn = max(now, row.not_before)
        if rate.requests is not None:
            turn = max(turn, row.requests_at)
        if rate.tokens is not None:
            turn = max(turn, row.tokens_at)
        taken = {"pace": pace, "paced_at": now}
        if rate.requests is not None:
            taken["requests_at"] = turn + MINUTE / (rate.requests * pace)
        if rate.tokens is not None:
            taken["tokens_at"] = turn + MINUTE * tokens / (rate.tokens * pace)
        connection.execute(update(rate_limits).where(rate_limits.c.name == row.name).values(taken))
        return float(turn - now)

    @writes
    def pause(self, connection: Connection, name: str, seconds: float) -> None:
        """Send nothing for so long, and then more slowly: the server has asked for less."""
        now = self._clock()
        row, seconds = _locked(connection, name, now), min(seconds, LONGEST_PAUSE)
        changed = {"not_before": max(row.not_before, now + seconds)}
        if now >= row.not_before:  # requests to slow down that come together are one
            changed |= {"pace": max(SLOWEST, _pace(row, now) / 2), "paced_at": max(now + seconds, row.paced_at)}
        connection.execute(update(rate_limits).where(rate_limits.c.name == row.name).values(changed))

    @reads
    def paused_for(self, connection: Connection, name: str) -> float:
        """The seconds for which nothing may be sent."""
        query = select(rate_limits.c.not_before).where(rate_limits.c.name == name)
        left = (connection.execute(query).scalar_one_or_none() or 0.0) - self._clock()
        return max(0.0, left) if left <= LONGEST_PAUSE else 0.0  # else it was written by a clock that was ahead


def _pace(row: _Turns, now: float) -> float:
    return float(min(1.0, row.pace + max(0.0, now - row.paced_at) / RECOVERY))


def _locked(connection: Connection, name: str, now: float) -> _Turns:
    """The row, locked until the transaction ends."""
    wanted = select(rate_limits).where(rate_limits.c.name == name).with_for_update()
    row = connection.execute(wanted).mappings().one_or_none()
    if row is None:
        new = {"name": name, "requests_at": now, "tokens_at": now, "not_before": 0.0, "pace": 1.0, "paced_at": now}
        insert_new(connection, rate_limits, [new])
        row = connection.execute(wanted).mappings().one()
    return _Turns(**row).by_this_clock(now)
