"""What a check of the whole store reads: every answer as the text that is stored, and claims that nobody will end.

Pages are read in transactions of their own, so a check of a large store takes little memory and stops no run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import Connection, Text, and_, exists, func, select, type_coerce

from store.owners import is_dead
from store.schema import LIVE, PAID, answer_checksum, answers, charges, identities


class StoredAnswer(NamedTuple):
    """An answer as it is stored, before anything in it is believed."""

    id: int
    key: str
    kind: str
    oracle: str
    identity_digest: str
    identity: str
    question: str
    answer: str
    cost: int
    checksum: str | None
    booked: bool  # a charge of this very cost was paid for it

    @property
    def is_as_it_was(self) -> bool:
        """Whether it is what was written; of one that an earlier schema kept nobody knows."""
        return self.checksum is None or self.checksum == answer_checksum(self.question, self.answer, self.cost)


@dataclass(frozen=True, slots=True)
class Orphans:
    """Claims that are open though their process has died or their lease is over, and what they hold."""

    claims: int
    micro: int


_BOOKED = exists().where(
    and_(charges.c.key == answers.c.key, charges.c.state == PAID, charges.c.cost == answers.c.cost)
)
_PAGE = (
    select(
        answers.c.id,
        answers.c.key,
        answers.c.kind,
        identities.c.oracle,
        identities.c.digest,
        type_coerce(identities.c.identity, Text),
        type_coerce(answers.c.question, Text),
        type_coerce(answers.c.answer, Text),
        answers.c.cost,
        answers.c.checksum,
        _BOOKED,
    )
    .join(identities, identities.c.id == answers.c.identity)
    .order_by(answers.c.id)
)


def page(connection: Connection, after: int, limit: int) -> list[StoredAnswer]:
    return [StoredAnswer(*row) for row in connection.execute(_PAGE.where(answers.c.id > after).limit(limit))]


def count(connection: Connection) -> int:
    return connection.execute(select(func.count()).select_from(answers)).scalar_one()


def orphans(connection: Connection, now: float, dead: Callable[[str], bool] = is_dead) -> Orphans:
    live = select(charges.c.owner, charges.c.lease_until, charges.c.reserved).where(charges.c.state.in_(LIVE))
    rows = connection.execute(live).all()
    gone = {owner for owner in {row.owner for row in rows} if dead(owner)}
    left = [row.reserved for row in rows if row.owner in gone or row.lease_until <= now]
    return Orphans(len(left), sum(left))
