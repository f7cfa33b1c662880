"""Reads the whole store for a check: every answer as it is stored, orphaned claims, the file and the sums of the books.

Pages are read in transactions of their own, so a check of a large store takes little memory and blocks no run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, Text, and_, bindparam, case, exists, func, or_, select, type_coerce, union

from store.errors import DamagedStore
from store.ledger.books import COUNTED, used
from store.ledger.expiry import is_dead
from store.packed.answers import ABOUT, JOINED, Pack, forms_of, question_of
from store.packed.claims import all_packed_claims
from store.packed.content import COUNTS, Content, checksum, decode, places
from store.schema import (
    COMPUTED,
    LIVE,
    PAID,
    PROBE,
    UNKNOWN,
    answer_checksum,
    answers,
    charges,
    cost_totals,
    identities,
    json_text,
    packed_keys,
    packed_uses,
    packs,
    runs,
    scopes,
    settlements,
    uses,
)
from store.transactions import Repository, reads


@dataclass(frozen=True, slots=True)
class Orphans:
    """Live claims whose process has died or whose lease has expired, and what they reserve."""

    claims: int
    micro: int


_BY_HAND = (
    select(func.coalesce(func.sum(settlements.c.cost), 0))
    .where(settlements.c.key == charges.c.key, settlements.c.fence == charges.c.fence)
    .scalar_subquery()
)
_BOOKED = exists().where(
    and_(charges.c.key == answers.c.key, charges.c.state == PAID, charges.c.cost == answers.c.cost + _BY_HAND)
)
_PAGE = (
    select(
        answers.c.id,
        answers.c.key,
        answers.c.kind,
        identities.c.oracle,
        identities.c.digest.label("identity_digest"),
        type_coerce(identities.c.identity, Text).label("identity"),
        type_coerce(answers.c.question, Text).label("question"),
        type_coerce(answers.c.answer, Text).label("answer"),
        answers.c.cost,
        answers.c.checksum,
        _BOOKED.label("booked"),
    )
    .join(identities, identities.c.id == answers.c.identity)
    .order_by(answers.c.id)
)


_IS_PAID, _IS_UNKNOWN = charges.c.state == PAID, charges.c.state == UNKNOWN
_SUMS = {
    "paid_calls": case((_IS_PAID, 1), else_=0),
    "unknown_calls": case((and_(or_(_IS_PAID, _IS_UNKNOWN), charges.c.in_doubt > 0), 1), else_=0),
    **{
        name: case((or_(_IS_PAID, _IS_UNKNOWN), charges.c[of]), else_=0)
        for name, of in (
            ("requests", "requests"),
            ("input_tokens", "input_tokens"),
            ("output_tokens", "output_tokens"),
            ("paid", "cost"),
            ("unknown", "in_doubt"),
        )
    },
    "reserved": case((charges.c.state.in_(LIVE), charges.c.reserved), else_=0),
}
_BOOKED_SUMS = tuple(name for name in COUNTED if name != "cached_worth")
_CHARGED = select(
    charges.c.run, charges.c.oracle, charges.c.kind, *(func.sum(of).label(name) for name, of in _SUMS.items())
).group_by(charges.c.run, charges.c.oracle, charges.c.kind)

_OF_SCOPE = union(
    select(runs.c.scope, answers.c.id)
    .select_from(charges)
    .join(answers, answers.c.key == charges.c.key)
    .join(runs, runs.c.id == charges.c.run)
    .where(_IS_PAID, charges.c.kind != PROBE),
    select(runs.c.scope, uses.c.answer).join(runs, runs.c.id == uses.c.run),
).subquery()
_STORED = select(_OF_SCOPE.c.scope, func.count()).group_by(_OF_SCOPE.c.scope)


class Check(Repository):
    def answers(self) -> Iterator[list[StoredAnswer]]:
        """All answers as they are stored, in pages."""
        after = 0
        while found := self._page(after):
            yield found
            after = found[-1].id
        last = "00"
        while last:
            page, last = self._packed_page(last)
            yield page

    @reads
    def _packed_page(self, connection: Connection, after: str) -> tuple[list[StoredAnswer], str]:
        """The packed answers whose keys follow, and the last key that was looked at; none at the end."""
        rows = connection.execute(_KEYS.where(packed_keys.c.key > bytes.fromhex(after))).all()
        numbers = sorted({row.pack for row in rows})
        found = {stored.pack.id: stored for stored in _stored(connection, packs.c.id.in_(numbers))} if numbers else {}
        forms = forms_of(connection, [stored.content for stored in found.values() if stored.content is not None])
        unpacked = [_unpacked(found[row.pack], row.key.hex(), row.place, forms) for row in rows if row.pack in found]
        return unpacked, rows[-1].key.hex() if rows else ""

    @reads
    def _page(self, connection: Connection, after: int) -> list[StoredAnswer]:
        return [
            StoredAnswer(**row) for row in connection.execute(_PAGE.where(answers.c.id > after).limit(1000)).mappings()
        ]

    @reads
    def orphans(self, connection: Connection) -> Orphans:
        """The claims that the next run will end."""
        live = select(charges.c.owner, charges.c.lease_until, charges.c.reserved).where(charges.c.state.in_(LIVE))
        rows, now = connection.execute(live).all(), self._clock()
        dead = {owner for owner in {row.owner for row in rows} if is_dead(owner)}
        left = [row.reserved for row in rows if row.owner in dead or row.lease_until <= now]
        for claim in all_packed_claims(connection):
            if claim.lease_until <= now or is_dead(claim.owner):
                left += claim.reserved
        return Orphans(len(left), sum(left))

    @reads
    def problems(self, connection: Connection) -> list[str]:
        """One line per thing that is wrong with the file or the books; empty when all is well."""
        return [*_file_problems(connection), *_book_problems(connection), *_answer_problems(connection)]


def _file_problems(connection: Connection) -> list[str]:
    if connection.dialect.name != "sqlite":
        return []
    lines = connection.exec_driver_sql("PRAGMA integrity_check(20)").scalars().all()
    broken = [f"file: {line}" for line in lines if line != "ok"]
    dangling = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
    return broken + [f"table {row[0]} refers to a row of {row[2]} that is not there" for row in dangling[:20]]


def _book_problems(connection: Connection) -> list[str]:
    """What is booked must be what the charges and uses add up to. `cached_worth` is not in the books: an answer that a
    run has used may have been replaced since."""
    totals: dict[tuple[Any, ...], dict[str, int]] = {
        (row.run, row.oracle, row.kind): {name: int(getattr(row, name)) for name in _SUMS}
        for row in connection.execute(_CHARGED)
    }
    for row in connection.execute(used()):
        totals.setdefault((row.run, row.oracle, row.kind), {})["cached_calls"] = row.cached_calls
    packed = add_up_packs(connection)
    for line, sums in packed.totals.items():
        for name, more in sums.items():
            totals.setdefault(line, {})[name] = totals.get(line, {}).get(name, 0) + more
    booked_totals = select(cost_totals).where(cost_totals.c.kind != COMPUTED)
    booked = {tuple(row[:3]): row for row in connection.execute(booked_totals)}
    names = {row.id: row for row in connection.execute(select(runs.c.id, runs.c.run_id, runs.c.scope))}
    found = [*packed.problems, *_balance_problems(connection, names, totals, packed.stored)]
    for at in sorted({*totals, *booked}, key=str):
        for name in _BOOKED_SUMS:
            is_booked, adds_up = getattr(booked.get(at), name, 0), totals.get(at, {}).get(name, 0)
            if is_booked != adds_up:
                run = names[at[0]].run_id if at[0] in names else at[0]
                found.append(f"run {run}, {at[1]}, {at[2]}: {name} is booked as {is_booked}, but {adds_up} adds up")
    return found


def _balance_problems(
    connection: Connection,
    names: Mapping[int, Row[Any]],
    totals: Mapping[tuple[Any, ...], Mapping[str, int]],
    packed_answers: Mapping[int, int],
) -> list[str]:
    """Spent must be what was paid plus what is in doubt, and reserved what is in flight."""
    charged, claimed = Counter[int](), Counter[int]()
    for (run, *_line), sums in totals.items():
        if run in names:  # else the file refers to a row that is not there, which is reported
            charged[names[run].scope] += sums.get("paid", 0) + sums.get("unknown", 0)
            claimed[names[run].scope] += sums.get("reserved", 0)
    found, stored = [], Counter(dict(connection.execute(_STORED).tuples().all())) + Counter(packed_answers)
    for row in connection.execute(select(scopes).order_by(scopes.c.id)):
        if row.spent != charged[row.id]:
            found.append(f"scope {row.scope}: {row.spent} micro-dollars spent, but {charged[row.id]} charged")
        if row.reserved != claimed[row.id]:
            found.append(f"scope {row.scope}: {row.reserved} micro-dollars reserved, but {claimed[row.id]} claimed")
        if row.kept != stored[row.id]:
            found.append(f"scope {row.scope}: {row.kept} answers booked, but {stored[row.id]} paid or used")
    return found


def _answer_problems(connection: Connection) -> list[str]:
    paid = and_(charges.c.key == answers.c.key, charges.c.state == PAID)
    unpaid = select(answers.c.key).outerjoin(charges, paid).where(charges.c.key.is_(None)).order_by(answers.c.id)
    not_stored = (
        select(charges.c.key)
        .outerjoin(answers, answers.c.key == charges.c.key)
        .where(charges.c.state == PAID, answers.c.key.is_(None))
        .order_by(charges.c.key)
    )
    return [
        *(f"answer {key}: no charge was booked for it" for key in connection.execute(unpaid.limit(20)).scalars()),
        *(f"charge {key}: its answer is not kept" for key in connection.execute(not_stored.limit(20)).scalars()),
    ]


PAGE = 1_000
_COUNTED = tuple(name for name in COUNTS if name != "seconds")
_PACKS = (
    select(*ABOUT, packs.c.content, packs.c.checksum, identities.c.digest, type_coerce(identities.c.identity, Text))
    .select_from(JOINED)
    .order_by(packs.c.id)
    .limit(PAGE // 10)
)
_KEYS = select(packed_keys.c.key, packed_keys.c.pack, packed_keys.c.place).order_by(packed_keys.c.key).limit(PAGE)
_USES = (
    select(packed_uses.c.run, packed_uses.c.pack, packed_uses.c.places, runs.c.scope)
    .join(runs, runs.c.id == packed_uses.c.run)
    .where(packed_uses.c.pack >= bindparam("first"), packed_uses.c.pack <= bindparam("last"))
)


class StoredPack(NamedTuple):
    """A pack as it is stored; no content where it cannot be read."""

    pack: Pack
    content: Content | None
    is_unaltered: bool
    is_booked: bool  # whether its answers have cost what it says
    identity_digest: str
    identity: str


class StoredAnswer(NamedTuple):
    """An answer as it is stored, unparsed. The id of one that is packed is 0; its checksum is wrong where the pack was
    altered."""

    id: int
    key: str
    kind: str
    oracle: str
    identity_digest: str
    identity: str
    question: str
    answer: str
    cost: int
    checksum: str
    booked: bool  # a charge of this very cost was paid for it

    @property
    def is_unaltered(self) -> bool:
        return self.checksum == answer_checksum(self.question, self.answer, self.cost)


def _unpacked(stored: StoredPack, key: str, place: int, forms: Mapping[int, Mapping[str, Any]]) -> StoredAnswer:
    unreadable = StoredAnswer(
        id=0,
        key=key,
        kind=stored.pack.kind,
        oracle=stored.pack.oracle,
        identity_digest=stored.identity_digest,
        identity=stored.identity,
        question="",
        answer="",
        cost=0,
        checksum="",
        booked=False,
    )
    if stored.content is None or not (stored.pack.left >> place) & 1 or place >= stored.content.size:
        return unreadable
    packed = stored.content.at(place)
    question, answer = json_text(question_of(packed, forms)), json_text(dict(packed.answer))
    return unreadable._replace(
        question=question,
        answer=answer,
        cost=packed.cost,
        checksum=answer_checksum(question, answer, packed.cost) if stored.is_unaltered else "",
        booked=stored.is_booked,
    )


def _stored(connection: Connection, *chosen: Any) -> Iterator[StoredPack]:
    """In pages, so that a large store takes little memory."""
    after = 0
    while rows := connection.execute(_PACKS.where(packs.c.id > after, *chosen)).all():
        after = rows[-1].id
        for *columns, content, summed, digest, identity in rows:
            pack = Pack._make(columns)
            try:
                read = decode(content)
            except DamagedStore:
                read = None
            is_booked = read is not None and _cost(pack, read) == pack.cost
            yield StoredPack(pack, read, checksum(content) == summed, is_booked, digest, identity)


def _cost(pack: Pack, content: Content) -> int | None:
    """Of the answers that are left in it; None if they are not as many as it says."""
    if content.size != pack.size:
        return None
    costs: list[int] = content.column("cost")
    return sum(costs[place] for place in places(pack.left))


@dataclass(slots=True)
class Sums:
    """What all packs add up to, by run, oracle and kind, and by scope."""

    totals: dict[tuple[int, str, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    stored: Counter[int] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


def add_up_packs(connection: Connection) -> Sums:
    sums, expected = Sums(), 0
    for claim in all_packed_claims(connection):
        sums.totals[claim.run, claim.oracle, claim.kind]["reserved"] += sum(claim.reserved)
        expected += len(claim.keys)
    for stored, users in _with_uses(connection):
        pack, here = stored.pack, list(places(stored.pack.left))
        expected += len(here)
        if not stored.is_booked:
            sums.problems.append(f"pack {pack.id}: its answers do not cost what is booked for them")
        line = sums.totals[pack.run, pack.oracle, pack.kind]
        line["paid_calls"] += len(here)
        line["paid"] += pack.cost
        for name in _COUNTED[1:]:
            column = stored.content.column(name) if stored.content and stored.content.size == pack.size else ()
            line[name] += sum(column[place] for place in here) if column else 0
        _add_uses(sums, pack, users)
    rows = connection.execute(select(func.count()).select_from(packed_keys)).scalar_one()
    if rows != expected:
        sums.problems.append(f"{expected} labels are packed, but {rows} keys lead to them")
    return sums


def _with_uses(connection: Connection) -> Iterator[tuple[StoredPack, list[tuple[int, int, int]]]]:
    """All packs, and of each the run, places and scope of its uses."""
    packs_left = _stored(connection)
    while page := list(islice(packs_left, PAGE // 10)):
        users = defaultdict(list)
        between = {"first": page[0].pack.id, "last": page[-1].pack.id}
        for run, pack, in_use, scope in connection.execute(_USES, between).tuples():
            users[pack].append((run, in_use, scope))
        for stored in page:
            yield stored, users[stored.pack.id]


def _add_uses(sums: Sums, pack: Pack, users: Iterable[tuple[int, int, int]]) -> None:
    in_scope: dict[int, int] = defaultdict(int, {pack.scope: pack.left})
    for run, in_use, scope in users:
        in_scope[scope] |= in_use & pack.left
        if run != pack.run:
            sums.totals[run, pack.oracle, pack.kind]["cached_calls"] += (in_use & pack.left).bit_count()
    for scope, answered in in_scope.items():
        sums.stored[scope] += answered.bit_count()
