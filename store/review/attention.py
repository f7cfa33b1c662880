"""Questions mixed in to learn about the person: some whose answer is known, some that they have answered before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import BindParameter, Connection, Row, Text, and_, bindparam, cast, exists, func, or_, select

from store.review.items import ASKED, CHECK, CHECKED, DONE, EXPIRED, GIVEN, REPEAT, VOTE, items, votes

LOOKED_AT = 24
PERSON: BindParameter[Any] = bindparam("person")


def extras(
    connection: Connection, person: int, chosen: Sequence[Row[Any]], shares: tuple[float, float], chance: float
) -> list[tuple[Row[Any], str]]:
    """Questions to mix in among labels as checks and repetitions, each with its purpose: as many as their shares of the
    page say, by chance (0 to 1) for the fraction."""
    if not chosen[0].page:
        return []
    checks, repeats = (_count(share * len(chosen), chance) for share in shares)
    about = {"person": person, "beside": chosen[0].page, "near": chosen[0].id}
    extra: list[tuple[Row[Any], str]] = []
    if checks:
        extra += [(row, CHECKED) for row in connection.execute(_CHECKS, about | {"most": checks})]
    if repeats:
        del about["near"]
        extra += [(row, REPEAT) for row in connection.execute(_REPEATS, about | {"most": repeats})]
    return extra


_BESIDE = items.c.page == bindparam("beside")
_MET = select(votes.c.item).where(votes.c.person == PERSON, votes.c.state != EXPIRED)
# Those of which the answer may be known, the nearest: to look at all of a large feature would take long.
_NEAR = (
    select(items.c.id, items.c.state)
    .where(_BESIDE, items.c.id.not_in(_MET))
    .where(or_(items.c.state == CHECK, and_(items.c.state == DONE, items.c.given > 1)))
    .order_by(items.c.state, func.abs(items.c.id - bindparam("near")))
    .limit(bindparam(None, LOOKED_AT, literal_execute=True))
    .subquery()
)
_OPINIONS = (
    select(func.count(cast(votes.c.answer, Text).distinct()))
    .where(votes.c.item == _NEAR.c.id, votes.c.purpose == VOTE, votes.c.state == GIVEN)
    .scalar_subquery()
)
# Questions on the page whose answer is known, first from outside, then because all votes agree.
_CHECKS = (
    select(*ASKED)
    .join(_NEAR, _NEAR.c.id == items.c.id)
    .where(or_(_NEAR.c.state == CHECK, _OPINIONS == 1))
    .order_by(_NEAR.c.state, func.abs(_NEAR.c.id - bindparam("near")))
    .limit(bindparam("most"))
)
_again = votes.alias("again")
# Questions on the page that the person has answered once, the oldest first.
_REPEATS = (
    select(*ASKED)
    .join(votes, votes.c.item == items.c.id)
    .where(votes.c.person == PERSON, votes.c.purpose == VOTE, votes.c.state == GIVEN, _BESIDE)
    .where(~exists().where(_again.c.item == items.c.id, _again.c.person == PERSON, _again.c.purpose == REPEAT))
    .order_by(votes.c.answered_at)
    .limit(bindparam("most"))
)


def _count(expected: float, chance: float) -> int:
    return int(expected) + (chance < expected - int(expected))
