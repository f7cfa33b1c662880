"""Which questions a person gets next. A lease keeps a slot of a question for its holder until it expires."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from typing import Any

import sqlalchemy as sa
from sqlalchemy import BindParameter, ColumnElement, Connection, Row, bindparam, select, update

from twothirds.store.engine import KEYS, Repository, insert_or_update, reads, writes
from twothirds.store.review.questions import (
    ASKED,
    CHECK,
    CHECKED,
    DONE,
    EXPIRED,
    GIVEN,
    LEASED,
    OPEN,
    REPEAT,
    SLOTS_TAKEN,
    VOTE,
    items,
    votes,
    votes_in,
)
from twothirds.store.schema import review_people as people

PERSON: BindParameter[int] = bindparam("person")
NOW = sa.cast(bindparam("now"), sa.Double)
LONGEST_LEASE = 86_400.0  # seconds; a lease that ends later was written by a clock that was ahead
MAX_CANDIDATES = 24


@dataclass(frozen=True, slots=True)
class LeaseTerms:
    """How many questions a page has, how long a lease lasts, and the share of questions for attention checks."""

    page_size: int = 12
    lease_seconds: float = 900.0  # from when the page was last touched
    queue: str | None = None
    checks: float = 0.0  # share of attention checks
    repeats: float = 0.0  # share of questions asked a second time
    untouched_seconds: float | None = None  # of a page that nobody has touched yet, if not the same
    training: int = 0  # questions on which others agree that a new reviewer answers first

    @property
    def first_seconds(self) -> float:
        """Of a lease when its page is shown."""
        wanted = self.lease_seconds if self.untouched_seconds is None else self.untouched_seconds
        return min(wanted, self.lease_seconds)


@dataclass(frozen=True, slots=True)
class HeldPage:
    """The questions of one kind in one queue that a person has leased."""

    person: str
    queue: str
    kind: str
    questions: int
    since: float
    until: float


@dataclass(frozen=True, slots=True)
class LeasedQuestion:
    """A question that a person has leased; `id` is that of the lease."""

    id: int
    item: int
    kind: str
    question: dict[str, Any]
    purpose: str
    answer: dict[str, Any] | None  # that was undone
    queue: str


# Literal states let partial indexes be used.
_IS_LEASED: ColumnElement[bool] = votes.c.state == bindparam(None, LEASED, literal_execute=True)
_IS_OPEN: ColumnElement[bool] = items.c.state == bindparam(None, OPEN, literal_execute=True)
_IS_OVER = sa.or_(votes.c.lease_until <= NOW, votes.c.lease_until > NOW + LONGEST_LEASE + 1)
_END = update(votes).values(state=EXPIRED, slot=None)
_EXPIRE = _END.where(_IS_LEASED, _IS_OVER)
_RENEW = update(votes).where(votes.c.person == bindparam("of_person"), _IS_LEASED)
_RENEW = _RENEW.values(lease_until=bindparam("until"))
_RENEW_AT_LEAST = _RENEW.where(votes.c.lease_until < bindparam("until"))
HAS_FREE_SLOT = sa.and_(
    _IS_OPEN, items.c.votes > SLOTS_TAKEN, sa.or_(items.c.deadline.is_(None), items.c.deadline > NOW)
)
# A list, computed once: a join is a hundred times slower on a server without statistics.
NOT_SEEN = items.c.id.not_in(
    select(votes.c.item).where(votes.c.person == PERSON, votes.c.purpose == VOTE, votes.c.state != EXPIRED)
)
_WITH_QUESTION = votes.join(items, items.c.id == votes.c.item)
_OWN = (
    select(votes, items.c.kind, items.c.question, items.c.queue)
    .select_from(_WITH_QUESTION)
    .where(votes.c.person == PERSON)
    .order_by(items.c.digest)  # so that checks and repetitions are anywhere among the others
)
_OWN_LEASES = _OWN.where(_IS_LEASED)
_UNANSWERED = _OWN.where(votes.c.id.in_(KEYS), votes.c.state.in_((LEASED, EXPIRED)))
_TAKEN = select(votes.c.item, votes.c.slot).where(votes.c.item.in_(KEYS), votes.c.slot.is_not(None))


class Leases(Repository):
    @writes
    def next_page(self, connection: Connection, person: int, terms: LeaseTerms) -> list[LeasedQuestion]:
        """The questions that the person has leased, with the lease renewed, or else the next ones, if there are any."""
        now = self._clock()
        until = now + terms.first_seconds
        expire_leases(connection, now)
        if own := leased_by(connection, person):
            connection.execute(_RENEW_AT_LEAST, {"of_person": person, "until": until})
            return own
        while chosen := _choose(connection, person, terms, now):
            taken = taken_slots(connection, [row.id for row in chosen])
            slots = {row.id: free_slot(taken.get(row.id, ()), row.votes) for row in chosen}
            free = [(item, VOTE, slot) for item, slot in slots.items() if slot is not None]
            if free:  # else others were faster, and the next look sees that
                extra = extras(connection, person, chosen, (terms.checks, terms.repeats), random.random())
                wanted = [*free, *((row.id, purpose, None) for row, purpose in extra)]
                lease(connection, person, wanted, now, until)
                return leased_by(connection, person)
        return []

    @writes
    def touch(self, connection: Connection, person: int, terms: LeaseTerms) -> None:
        """The person is at work on their page: from now on it has the whole time."""
        connection.execute(_RENEW, {"of_person": person, "until": self._clock() + terms.lease_seconds})

    @writes
    def release(self, connection: Connection, person: int) -> None:
        """End the person's leases, so that others get the questions."""
        end_leases(connection, votes.c.person == person)

    @reads
    def held(self, connection: Connection) -> list[HeldPage]:
        """Who has which questions now, the oldest first."""
        columns = (people.c.name.label("person"), items.c.queue, items.c.kind)
        times = (sa.func.min(votes.c.shown_at).label("since"), sa.func.max(votes.c.lease_until).label("until"))
        query = (
            select(*columns, sa.func.count().label("questions"), *times)
            .select_from(_WITH_QUESTION.join(people, people.c.id == votes.c.person))
            .where(_IS_LEASED, votes.c.lease_until > self._clock())
            .group_by(*columns)
            .order_by("since")
        )
        return [HeldPage(**row) for row in connection.execute(query).mappings()]

    @reads
    def unanswered(self, connection: Connection, person: int, leases: Collection[int]) -> list[LeasedQuestion]:
        """The person's own among these leases that have no answer yet, including expired ones."""
        return unanswered_by(connection, person, leases)


def leased_by(connection: Connection, person: int) -> list[LeasedQuestion]:
    return [_leased(row) for row in connection.execute(_OWN_LEASES, {"person": person})]


def unanswered_by(connection: Connection, person: int, leases: Collection[int]) -> list[LeasedQuestion]:
    return [_leased(row) for row in connection.execute(_UNANSWERED, {"person": person, "keys": list(leases)})]


def _leased(row: Row[Any]) -> LeasedQuestion:
    return LeasedQuestion(row.id, row.item, row.kind, row.question, row.purpose, row.answer, row.queue)


def expire_leases(connection: Connection, now: float) -> None:
    """End the leases that have expired, which frees their slots."""
    connection.execute(_EXPIRE, {"now": now})


def end_leases(connection: Connection, which: ColumnElement[bool]) -> None:
    connection.execute(_END.where(_IS_LEASED, which))


_NEW = ("slot", "state", "shown_at", "lease_until")


def lease(
    connection: Connection,
    person: int,
    wanted: Sequence[tuple[int, str, int | None]],
    now: float,
    until: float,
    state: str = LEASED,
) -> None:
    """Lease questions, each with its purpose and slot; a lease of the person that has expired is used again."""
    same = {"person": person, "state": state, "shown_at": now, "lease_until": until, "seconds": 0.0, "cost": 0}
    rows = [
        {"item": item, "purpose": purpose, "slot": slot} | same
        for item, purpose, slot in sorted(wanted, key=itemgetter(0, 1))
    ]
    insert_or_update(connection, votes, rows, ("item", "person", "purpose"), _NEW, votes.c.state == EXPIRED)


@cache
def is_available(one_queue: bool) -> ColumnElement[bool]:
    """That a question may be asked of invited people, in one queue or in all."""
    of_queue = [items.c.queue == bindparam("queue")] if one_queue else []
    return sa.and_(HAS_FREE_SLOT, ~items.c.published, *of_queue)


@cache
def _answerable(one_queue: bool, one_page: bool, most: int, skip_locked: bool = True) -> sa.Select[Any]:
    """Questions that the person has neither answered nor skipped, the most urgent first."""
    query = select(*ASKED).where(is_available(one_queue), NOT_SEEN).order_by(items.c.priority.desc(), items.c.id)
    if one_page:
        query = query.where(items.c.page == bindparam("on_page"))
    # A planner that does not know how few are wanted sorts them all.
    few: BindParameter[int] = bindparam(None, most, literal_execute=True)
    return query.limit(few).with_for_update(of=items, skip_locked=skip_locked)


def _choose(connection: Connection, person: int, terms: LeaseTerms, now: float) -> list[Row[Any]]:
    """The most urgent question and those that may share its page, locked. Those locked by others are left out, unless
    there are no more: they may have a place left."""
    one_queue = terms.queue is not None
    values = {"person": person, "now": now} | ({"queue": terms.queue} if one_queue else {})
    first = connection.execute(_answerable(one_queue, False, 1), values).one_or_none()
    if first is None:
        first = connection.execute(_answerable(one_queue, False, 1, skip_locked=False), values).one_or_none()
    if first is None or not first.page:
        return [] if first is None else [first]
    same_page = _answerable(one_queue, True, terms.page_size)
    return list(connection.execute(same_page, values | {"on_page": first.page}))


def taken_slots(connection: Connection, numbers: Collection[int]) -> Mapping[int, set[int]]:
    slots: dict[int, set[int]] = {}
    for row in connection.execute(_TAKEN, {"keys": list(numbers)}):
        slots.setdefault(row.item, set()).add(row.slot)
    return slots


def free_slot(taken: Iterable[int], wanted: int) -> int | None:
    return next((slot for slot in range(wanted) if slot not in taken), None)


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
    checks, repeats = (int(count) + (chance < count - int(count)) for count in (s * len(chosen) for s in shares))
    pages = [chosen[0].page, page_of_checks(chosen[0].queue, chosen[0].question["feature"][0])]
    values = {"person": person, "on_pages": pages}
    extra: list[tuple[Row[Any], str]] = []
    if checks:
        known = connection.execute(_CHECKS, values | {"most": checks, "close_to": chosen[0].id})
        extra += [(row, CHECKED) for row in known]
    if repeats:
        extra += [(row, REPEAT) for row in connection.execute(_REPEATS, values | {"most": repeats})]
    return extra


_SAME_PAGE = items.c.page.in_(bindparam("on_pages", expanding=True))
_SEEN = select(votes.c.item).where(votes.c.person == PERSON, votes.c.state != EXPIRED)
# Questions whose answer may be known, the closest ones only: a feature may have very many.
_CANDIDATES = (
    select(items.c.id, items.c.state)
    .where(_SAME_PAGE, items.c.id.not_in(_SEEN))
    .where(sa.or_(items.c.state == CHECK, sa.and_(items.c.state == DONE, votes_in(GIVEN) > 1)))
    .order_by(items.c.state, sa.func.abs(items.c.id - bindparam("close_to")))
    .limit(bindparam(None, MAX_CANDIDATES, literal_execute=True))
    .subquery()
)
_DISTINCT_ANSWERS = (
    select(sa.func.count(sa.cast(votes.c.answer, sa.Text).distinct()))
    .where(votes.c.item == _CANDIDATES.c.id, votes.c.purpose == VOTE, votes.c.state == GIVEN)
    .scalar_subquery()
)
# Questions of the page whose answer is known: first those given as checks, then those whose votes all agree.
_CHECKS = (
    select(*ASKED)
    .join(_CANDIDATES, _CANDIDATES.c.id == items.c.id)
    .where(sa.or_(_CANDIDATES.c.state == CHECK, _DISTINCT_ANSWERS == 1))
    .order_by(_CANDIDATES.c.state, sa.func.abs(_CANDIDATES.c.id - bindparam("close_to")))
    .limit(bindparam("most"))
)
_again = votes.alias("again")
_HAS_REPEATED = sa.exists().where(_again.c.item == items.c.id, _again.c.person == PERSON, _again.c.purpose == REPEAT)
# Questions of the page that the person has answered once, the oldest first.
_REPEATS = (
    select(*ASKED)
    .join(votes, votes.c.item == items.c.id)
    .where(votes.c.person == PERSON, votes.c.purpose == VOTE, votes.c.state == GIVEN, _SAME_PAGE, ~_HAS_REPEATED)
    .order_by(votes.c.answered_at)
    .limit(bindparam("most"))
)
