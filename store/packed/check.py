"""Reads all packs for a check: what their answers say, and what they add up to."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from sqlalchemy import Connection, Text, bindparam, func, select, type_coerce

from store.errors import DamagedStore
from store.packed.answers import ABOUT, JOINED, Pack, forms_of, question_of
from store.packed.claims import all_packed_claims
from store.packed.content import COUNTS, Content, checksum, decode, places
from store.schema import answer_checksum, identities, json_text, packed_keys, packed_uses, packs, runs

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


def packed_page(connection: Connection, after: str) -> tuple[list[StoredAnswer], str]:
    """The packed answers whose keys follow, and the last key that was looked at; none at the end."""
    rows = connection.execute(_KEYS.where(packed_keys.c.key > bytes.fromhex(after))).all()
    numbers = sorted({row.pack for row in rows})
    found = {stored.pack.id: stored for stored in _stored(connection, packs.c.id.in_(numbers))} if numbers else {}
    forms = forms_of(connection, [stored.content for stored in found.values() if stored.content is not None])
    answers = [_unpacked(found[row.pack], row.key.hex(), row.place, forms) for row in rows if row.pack in found]
    return answers, rows[-1].key.hex() if rows else ""


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
    for stored, uses in _with_uses(connection):
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
        _add_uses(sums, pack, uses)
    rows = connection.execute(select(func.count()).select_from(packed_keys)).scalar_one()
    if rows != expected:
        sums.problems.append(f"{expected} labels are packed, but {rows} keys lead to them")
    return sums


def _with_uses(connection: Connection) -> Iterator[tuple[StoredPack, list[tuple[int, int, int]]]]:
    """All packs, and of each the run, places and scope of its uses."""
    packs_left = _stored(connection)
    while page := list(islice(packs_left, PAGE // 10)):
        uses = defaultdict(list)
        between = {"first": page[0].pack.id, "last": page[-1].pack.id}
        for run, pack, used, scope in connection.execute(_USES, between).tuples():
            uses[pack].append((run, used, scope))
        for stored in page:
            yield stored, uses[stored.pack.id]


def _add_uses(sums: Sums, pack: Pack, uses: Iterable[tuple[int, int, int]]) -> None:
    in_scope: dict[int, int] = defaultdict(int, {pack.scope: pack.left})
    for run, used, scope in uses:
        in_scope[scope] |= used & pack.left
        if run != pack.run:
            sums.totals[run, pack.oracle, pack.kind]["cached_calls"] += (used & pack.left).bit_count()
    for scope, in_use in in_scope.items():
        sums.stored[scope] += in_use.bit_count()
