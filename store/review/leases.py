"""Which questions a person gets next. A lease keeps a slot of a question for its holder until it expires."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Double,
    Row,
    Select,
    Text,
    and_,
    bindparam,
    cast,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    update,
)

from twothirds.store.engine import Repository, any_of, reads, writes
from twothirds.store.review.items import (
    ASKED,
    CHECK,
    CHECKED,
    DONE,
    EXPIRED,
    GIVEN,
    HELD,
    LEASED,
    OPEN,
    REPEAT,
    VOTE,
    items,
    votes,
)
from twothirds.store.review.people import people

PERSON: BindParameter[Any] = bindparam("person")
_NOW: BindParameter[Any] = bindparam("now")
LONGEST_LEASE = 86_400.0  # seconds; a lease that ends later was written by a clock that was ahead


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


# Statements are built once: building one takes longer than running it. Literal states let partial indexes be used.
_IS_LEASED: ColumnElement[bool] = votes.c.state == bindparam(None, LEASED, literal_execute=True)
_IS_OPEN: ColumnElement[bool] = items.c.state == bindparam(None, OPEN, literal_execute=True)
_RENEW = (
    update(votes)
    .where(any_of(votes.c.id), votes.c.lease_until < bindparam("until"))
    .values(lease_until=bindparam("until"))
)
_TOUCH = (
    update(votes).where(votes.c.person == bindparam("of_person"), _IS_LEASED).values(lease_until=bindparam("until"))
)
HAS_FREE_SLOT = and_(
    _IS_OPEN, items.c.filled < items.c.votes, or_(items.c.deadline.is_(None), items.c.deadline > cast(_NOW, Double))
)
# A list, computed once: a join is a hundred times slower on a server without statistics.
NOT_SEEN = items.c.id.not_in(
    select(votes.c.item).where(votes.c.person == PERSON, votes.c.purpose == VOTE, votes.c.state != EXPIRED)
)
_WITH_QUESTION = votes.join(items, items.c.id == votes.c.item)
_ABOUT = (votes, items.c.kind, items.c.question, items.c.queue)
UNANSWERED = (
    select(*_ABOUT)
    .select_from(_WITH_QUESTION)
    .where(votes.c.person == PERSON, any_of(votes.c.id), votes.c.state.in_((LEASED, EXPIRED)))
    .order_by(items.c.digest)
)
_IS_OVER = or_(votes.c.lease_until <= _NOW, votes.c.lease_until > cast(_NOW, Double) + LONGEST_LEASE + 1)
_ANY_EXPIRED = select(exists().where(_IS_LEASED, _IS_OVER).label("any_expired")).subquery()
_OWN_LEASES = (
    select(_ANY_EXPIRED, *_ABOUT)
    .select_from(_ANY_EXPIRED.outerjoin(_WITH_QUESTION, and_(votes.c.person == PERSON, votes.c.state == LEASED)))
    .order_by(items.c.digest)
)
_OCCUPIES_SLOT = and_(votes.c.purpose == VOTE, votes.c.state.in_((LEASED, HELD, GIVEN)))
# Of some questions the slots that are taken, and the person's own leases that have expired.
_EARLIER = select(*(votes.c[name] for name in ("id", "item", "purpose", "slot", "state"))).where(
    any_of(votes.c.item), or_(_OCCUPIES_SLOT, and_(votes.c.person == PERSON, votes.c.state == EXPIRED))
)
_LEASE_AGAIN = (
    update(votes)
    .where(votes.c.id == bindparam("of"))
    .values({name: bindparam(name) for name in ("slot", "state", "shown_at", "lease_until")})
)
_NEW_LEASE = ("person", "purpose", "slot", "state", "shown_at", "lease_until")
# From a SELECT, so that the statement is the same for one question and for many.
_INSERT = (
    insert(votes)
    .from_select(
        ["item", "seconds", "cost", *_NEW_LEASE],
        select(
            items.c.id, literal(0.0), literal(0), *(cast(bindparam(name), votes.c[name].type) for name in _NEW_LEASE)
        ).where(any_of(items.c.id)),
    )
    .returning(votes.c.id, votes.c.item, votes.c.purpose)
)
_FILL = update(items).where(any_of(items.c.id)).values(filled=items.c.filled + 1)
_TAKEN = select(votes.c.item, votes.c.slot).where(any_of(votes.c.item), _OCCUPIES_SLOT)


class Leases(Repository):
    @writes
    def next_page(self, connection: Connection, person: int, terms: LeaseTerms) -> list[LeasedQuestion]:
        """The questions that the person has leased, with the lease renewed, or else the next ones, if there are any."""
        now = self._clock()
        values = {"person": person, "now": now}
        own = connection.execute(_OWN_LEASES, values).all()
        if own[0].any_expired:
            expire_leases(connection, now)
            own = connection.execute(_OWN_LEASES, values).all()
        if own[0].id is not None:
            connection.execute(_RENEW, {"keys": [row.id for row in own], "until": now + terms.first_seconds})
            return [leased_question(row) for row in own]
        chosen = _choose(connection, person, terms, now)
        if not chosen:
            return []
        extra = extras(connection, person, chosen, (terms.checks, terms.repeats), random.random())
        leases = _lease(connection, person, chosen, terms, now, [(row.id, purpose) for row, purpose in extra])
        # Ordered by digest, so that checks and repetitions are anywhere among the others.
        everything = sorted([*((row, VOTE) for row in chosen), *extra], key=lambda pair: pair[0].digest)
        return [
            LeasedQuestion(leases[row.id, purpose], row.id, row.kind, row.question, purpose, None, row.queue)
            for row, purpose in everything
            if (row.id, purpose) in leases
        ]

    @writes
    def touch(self, connection: Connection, person: int, terms: LeaseTerms) -> None:
        """The person is at work on their page: from now on it has the whole time."""
        connection.execute(_TOUCH, {"of_person": person, "until": self._clock() + terms.lease_seconds})

    @writes
    def release(self, connection: Connection, person: int) -> None:
        """End the person's leases, so that others get the questions."""
        drop_leases(connection, person)

    @reads
    def held(self, connection: Connection) -> list[HeldPage]:
        """Who has which questions now, the oldest first."""
        columns = (people.c.name.label("person"), items.c.queue, items.c.kind)
        times = (func.min(votes.c.shown_at).label("since"), func.max(votes.c.lease_until).label("until"))
        query = (
            select(*columns, func.count().label("questions"), *times)
            .select_from(_WITH_QUESTION.join(people, people.c.id == votes.c.person))
            .where(_IS_LEASED, votes.c.lease_until > self._clock())
            .group_by(*columns)
            .order_by("since")
        )
        return [HeldPage(**row) for row in connection.execute(query).mappings()]

    @reads
    def unanswered(self, connection: Connection, person: int, leases: Collection[int]) -> list[LeasedQuestion]:
        """The person's own among these leases that have no answer yet, including expired ones."""
        rows = connection.execute(UNANSWERED, {"person": person, "keys": list(leases)})
        return [leased_question(row) for row in rows]


def leased_question(row: Row[Any]) -> LeasedQuestion:
    return LeasedQuestion(row.id, row.item, row.kind, row.question, row.purpose, row.answer, row.queue)


def expire_leases(connection: Connection, now: float) -> None:
    """End the leases that have expired, which frees their slots."""
    over = or_(votes.c.lease_until <= now, votes.c.lease_until > now + LONGEST_LEASE + 1)
    end_leases(connection, and_(votes.c.state == LEASED, over))


def drop_leases(connection: Connection, person: int) -> None:
    """End the person's leases."""
    end_leases(connection, and_(votes.c.person == person, votes.c.state == LEASED))


def end_leases(connection: Connection, which: ColumnElement[bool]) -> None:
    ended = connection.execute(
        update(votes).where(which).values(state=EXPIRED, slot=None).returning(votes.c.item, votes.c.purpose)
    ).all()
    # The same question may lose several slots.
    rows = [{"of": number} for number in sorted(row.item for row in ended if row.purpose == VOTE)]
    if rows:
        connection.execute(update(items).where(items.c.id == bindparam("of")).values(filled=items.c.filled - 1), rows)


@cache
def is_available(one_queue: bool) -> ColumnElement[bool]:
    """That a question may be asked of invited people, in one queue or in all."""
    return and_(HAS_FREE_SLOT, items.c.published == 0, *([items.c.queue == bindparam("queue")] if one_queue else []))


@cache
def _answerable(one_queue: bool, one_page: bool, most: int, skip_locked: bool = True) -> Select[Any]:
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


def _lease(
    connection: Connection,
    person: int,
    chosen: Sequence[Row[Any]],
    terms: LeaseTerms,
    now: float,
    extra: Sequence[tuple[int, str]] = (),
) -> dict[tuple[int, str], int]:
    """Lease a free slot of each question; an expired lease of the person is used again. Returns the leases by question
    and purpose."""
    everything = [*(row.id for row in chosen), *(item for item, _ in extra)]
    before = connection.execute(_EARLIER, {"keys": everything, "person": person}).all()
    taken = _by_item(row for row in before if row.state != EXPIRED)
    slots = {row.id: free_slot(taken.get(row.id, set()), row.votes) for row in chosen}
    wanted: dict[tuple[int, str], int | None] = {(item, VOTE): slot for item, slot in slots.items() if slot is not None}
    filled = [item for item, _ in wanted]
    wanted |= dict.fromkeys(extra)
    fresh = {"state": LEASED, "shown_at": now, "lease_until": now + terms.first_seconds}
    leases: dict[tuple[int, str], int] = {}
    for row in before:
        if row.state == EXPIRED and (at := (row.item, row.purpose)) in wanted:
            connection.execute(_LEASE_AGAIN, fresh | {"of": row.id, "slot": wanted.pop(at)})
            leases[at] = row.id
    inserts: dict[tuple[str, int | None], list[int]] = {}
    for (item, purpose), slot in wanted.items():
        inserts.setdefault((purpose, slot), []).append(item)
    for (purpose, slot), numbers in inserts.items():
        values = fresh | {"person": person, "purpose": purpose, "slot": slot, "keys": numbers}
        leases |= {(row.item, row.purpose): row.id for row in connection.execute(_INSERT, values)}
    if filled:
        connection.execute(_FILL, {"keys": filled})
    return leases


def taken_slots(connection: Connection, numbers: Sequence[int]) -> dict[int, set[int]]:
    return _by_item(connection.execute(_TAKEN, {"keys": list(numbers)}))


def _by_item(rows: Iterable[Row[Any]]) -> dict[int, set[int]]:
    slots: dict[int, set[int]] = {}
    for row in rows:
        slots.setdefault(row.item, set()).add(row.slot)
    return slots


def free_slot(taken: set[int], wanted: int) -> int | None:
    return next((slot for slot in range(wanted) if slot not in taken), None)


MAX_CANDIDATES = 24


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
