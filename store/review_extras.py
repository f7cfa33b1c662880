"""Questions mixed in to learn about the person: some whose answer is known, some that they have answered before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import BindParameter, Connection, Row, Text, bindparam, cast, exists, func, or_, select

from store.review_items import CHECK, CHECKED, DONE, EXPIRED, GIVEN, REPEAT, VOTE, items, votes

PERSON: BindParameter[Any] = bindparam("person")


def extras(
    connection: Connection, person: int, chosen: Sequence[Row[Any]], shares: tuple[float, float], chance: float
) -> list[tuple[int, str]]:
    """Checks and repetitions to mix in among labels, each with its purpose: as many as their shares of the page say, by
    chance (0 to 1) for the fraction."""
    if not chosen[0].page:
        return []
    checks, repeats = (_count(share * len(chosen), chance) for share in shares)
    about = {"person": person, "beside": chosen[0].page, "near": chosen[0].id}
    extra: list[tuple[int, str]] = []
    if checks:
        found = connection.execute(_CHECKS, about | {"most": checks}).scalars()
        extra += [(item, CHECKED) for item in found]
    if repeats:
        del about["near"]
        found = connection.execute(_REPEATS, about | {"most": repeats}).scalars()
        extra += [(item, REPEAT) for item in found]
    return extra


_BESIDE = items.c.page == bindparam("beside")
_VOTED = select(items.c.id).where(_BESIDE, items.c.state == DONE, items.c.given > 1)
_UNANIMOUS = (
    select(votes.c.item)
    .where(votes.c.item.in_(_VOTED), votes.c.purpose == VOTE, votes.c.state == GIVEN)
    .group_by(votes.c.item)
    .having(func.count(cast(votes.c.answer, Text).distinct()) == 1)
)
# Questions on the page whose answer is known, first from outside, then because all votes agree.
_CHECKS = (
    select(items.c.id)
    .where(_BESIDE, items.c.id.not_in(select(votes.c.item).where(votes.c.person == PERSON, votes.c.state != EXPIRED)))
    .where(or_(items.c.state == CHECK, items.c.id.in_(_UNANIMOUS)))
    .order_by(items.c.state, func.abs(items.c.id - bindparam("near")))
    .limit(bindparam("most"))
)
_again = votes.alias("again")
# Questions on the page that the person has answered once, the oldest first.
_REPEATS = (
    select(items.c.id)
    .join(votes, votes.c.item == items.c.id)
    .where(votes.c.person == PERSON, votes.c.purpose == VOTE, votes.c.state == GIVEN, _BESIDE)
    .where(~exists().where(_again.c.item == items.c.id, _again.c.person == PERSON, _again.c.purpose == REPEAT))
    .order_by(votes.c.answered_at)
    .limit(bindparam("most"))
)


def _count(expected: float, chance: float) -> int:
    return int(expected) + (chance < expected - int(expected))
