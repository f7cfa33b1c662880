"""Attention checks: questions mixed in whose answer is known, and some that the person has answered before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import BindParameter, Connection, Row, Text, and_, bindparam, cast, exists, func, or_, select

from store.review.items import ASKED, CHECK, CHECKED, DONE, EXPIRED, GIVEN, REPEAT, VOTE, items, votes

MAX_CANDIDATES = 24
PERSON: BindParameter[Any] = bindparam("person")


def page_of_checks(queue: str, feature: str) -> str:
    """Of attention checks that are entered by the name of a feature, whatever its definition, and perhaps before it is
    found."""
    return f"checks {queue} {' '.join(feature.casefold().split())}"


def extras(
    connection: Connection, person: int, chosen: Sequence[Row[Any]], shares: tuple[float, float], chance: float
) -> list[tuple[Row[Any], str]]:
    """Checks and repetitions to mix in among labels, each with its purpose: as many as their shares of the page say;
    `chance` (0 to 1) rounds the fraction."""
    if not chosen[0].page or "feature" not in chosen[0].question:
        return []
    checks, repeats = (_count(share * len(chosen), chance) for share in shares)
    pages = [chosen[0].page, page_of_checks(chosen[0].queue, chosen[0].question["feature"][0])]
    values = {"person": person, "on_pages": pages, "close_to": chosen[0].id}
    extra: list[tuple[Row[Any], str]] = []
    if checks:
        extra += [(row, CHECKED) for row in connection.execute(_CHECKS, values | {"most": checks})]
    if repeats:
        del values["close_to"]
        extra += [(row, REPEAT) for row in connection.execute(_REPEATS, values | {"most": repeats})]
    return extra


_SAME_PAGE = items.c.page.in_(bindparam("on_pages", expanding=True))
_SEEN = select(votes.c.item).where(votes.c.person == PERSON, votes.c.state != EXPIRED)
# Questions whose answer may be known, the closest ones only: a feature may have very many.
_CANDIDATES = (
    select(items.c.id, items.c.state)
    .where(_SAME_PAGE, items.c.id.not_in(_SEEN))
    .where(or_(items.c.state == CHECK, and_(items.c.state == DONE, items.c.given > 1)))
    .order_by(items.c.state, func.abs(items.c.id - bindparam("close_to")))
    .limit(bindparam(None, MAX_CANDIDATES, literal_execute=True))
    .subquery()
)
_DISTINCT_ANSWERS = (
    select(func.count(cast(votes.c.answer, Text).distinct()))
    .where(votes.c.item == _CANDIDATES.c.id, votes.c.purpose == VOTE, votes.c.state == GIVEN)
    .scalar_subquery()
)
# Questions of the page whose answer is known: first those given as checks, then those whose votes all agree.
_CHECKS = (
    select(*ASKED)
    .join(_CANDIDATES, _CANDIDATES.c.id == items.c.id)
    .where(or_(_CANDIDATES.c.state == CHECK, _DISTINCT_ANSWERS == 1))
    .order_by(_CANDIDATES.c.state, func.abs(_CANDIDATES.c.id - bindparam("close_to")))
    .limit(bindparam("most"))
)
_again = votes.alias("again")
# Questions of the page that the person has answered once, the oldest first.
_REPEATS = (
    select(*ASKED)
    .join(votes, votes.c.item == items.c.id)
    .where(votes.c.person == PERSON, votes.c.purpose == VOTE, votes.c.state == GIVEN, _SAME_PAGE)
    .where(~exists().where(_again.c.item == items.c.id, _again.c.person == PERSON, _again.c.purpose == REPEAT))
    .order_by(votes.c.answered_at)
    .limit(bindparam("most"))
)


def _count(expected: float, chance: float) -> int:
    return int(expected) + (chance < expected - int(expected))
