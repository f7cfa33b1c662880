"""Answers to labels that are claimed as a pack: kept as a pack, and what they cost added up."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import Connection

from store.packed.answers import NewPack, form_numbers, form_of, store_packs, unpack
from store.packed.claims import (
    PACKED_FENCE,
    PackedClaim,
    claims_of_keys,
    delete_claims,
    leave,
    lock_unchanged,
    packed_claims_of,
    take_out,
)
from store.packed.content import AnswerRecord, encode
from store.packed.keys import find_packed, move, new_packs
from store.schema import storable


class Booking(NamedTuple):
    """What a pack changes in the books: as many paid calls as it has answers, and a reservation less."""

    run: int
    scope: int
    oracle: str
    kind: str
    answers: int
    reserved: int
    cost: int
    requests: int
    input_tokens: int
    output_tokens: int


@dataclass(slots=True)
class Settled:
    bookings: list[Booking] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)  # are answered already


class _PreparedPack(NamedTuple):
    """Answers to some of the labels of a claim that fit one pack, and what the pack holds."""

    claim: PackedClaim
    identity: int
    records: list[AnswerRecord]  # in the order of the claim
    content: bytes

    @property
    def is_whole(self) -> bool:
        return len(self.records) == len(self.claim.keys)


@dataclass(frozen=True, slots=True)
class PreparedPacks:
    """Answers that are to be kept, packed as their claims were when nothing was locked yet."""

    records: Sequence[AnswerRecord]
    identity_of: Callable[[AnswerRecord], int]
    forms: Mapping[str, int]
    claims: Mapping[int, PackedClaim]
    packs: list[_PreparedPack]
    others: list[AnswerRecord]  # which no pack can hold


def prepare_packs(
    connection: Connection, records: Sequence[AnswerRecord], identity_of: Callable[[AnswerRecord], int]
) -> PreparedPacks:
    """Done before the books are locked, for others wait for those: packing takes most of the time."""
    claims = {claim.id: claim for claim in claims_of_keys(connection, [record.key for record in records], lock=False)}
    claimed = {key for claim in claims.values() for key in claim.keys}
    forms = form_numbers(
        connection, [form_of(record.question) for record in records if record.key in claimed and _fits(record)]
    )
    return _prepared(records, identity_of, forms, claims)


def _prepared(
    records: Sequence[AnswerRecord],
    identity_of: Callable[[AnswerRecord], int],
    forms: Mapping[str, int],
    claims: Mapping[int, PackedClaim],
) -> PreparedPacks:
    claim_of = {key: number for number, claim in claims.items() for key in claim.keys}
    others, groups = list[AnswerRecord](), defaultdict[tuple[Any, ...], list[AnswerRecord]](list)
    for record in records:
        number = claim_of.get(record.key)
        if number is not None and record.fence == PACKED_FENCE and _fits(record):
            groups[number, identity_of(record), record.kind, tuple(record.answer)].append(record)
        else:
            others.append(record)
    packs = []
    for (number, identity, *_), group in groups.items():
        ordered = _ordered(group, claims[number])
        of_questions = [forms[form_of(record.question)] for record in ordered]
        content = encode(ordered, [record.question["example"] for record in ordered], of_questions)
        packs.append(_PreparedPack(claims[number], identity, ordered, content))
    return PreparedPacks(records, identity_of, forms, claims, packs, others)


def settle_packed(connection: Connection, prepared: PreparedPacks, now: float) -> tuple[Settled, list[AnswerRecord]]:
    """Keep those of the answers that can be packed; returns the others, whose claims have rows of their own by now."""
    if not lock_unchanged(connection, prepared.claims.values()):
        claims = packed_claims_of(connection, prepared.claims)
        prepared = _prepared(prepared.records, prepared.identity_of, prepared.forms, claims)
    settled, rest = Settled(), list[AnswerRecord]()
    claimed = {key for claim in prepared.claims.values() for key in claim.keys} if prepared.others else set()
    answered = find_packed(connection, [record.key for record in prepared.others if record.key not in claimed])
    for record in prepared.others:
        if record.key in answered and record.fence == PACKED_FENCE:
            settled.repeated.append(record.key)
        else:
            rest.append(record)
    _make_rows(
        connection, prepared.claims, [record.key for record in rest if record.key in claimed or record.key in answered]
    )
    if prepared.packs:
        packs = prepared.packs
        if rest or not all(pack.is_whole for pack in packs):  # what is left of a claim is written as it is by now
            left = packed_claims_of(connection, prepared.claims)
            packs = [pack._replace(claim=left[pack.claim.id]) for pack in packs]
        _store(connection, packs, now)
        settled.bookings = [_booking(pack) for pack in packs]
    return settled, rest


def _ordered(records: list[AnswerRecord], claim: PackedClaim) -> list[AnswerRecord]:
    """As their keys are in the claim: by key, as they come, unless the claim was put together otherwise."""
    if [record.key for record in records] == claim.keys:
        return records
    at = {key: place for place, key in enumerate(claim.keys)}
    return sorted(records, key=lambda record: at[record.key])


def _fits(record: AnswerRecord) -> bool:
    """Whether it tells no more than a pack can hold."""
    return record.in_doubt == 0 and record.replaces is None and isinstance(record.question.get("example"), str)


def _make_rows(connection: Connection, claimed: Collection[int], keys: Collection[str]) -> None:
    wanted = set(keys)
    for claim in packed_claims_of(connection, claimed).values() if wanted else ():
        places = [place for place, key in enumerate(claim.keys) if key in wanted]
        take_out(connection, claim, places)
        wanted -= {claim.keys[place] for place in places}
    if wanted:
        unpack(connection, wanted)


def _store(connection: Connection, packs: Sequence[_PreparedPack], now: float) -> None:
    """A pack of a whole claim takes its number, so that its keys lead to it already."""
    broken = sum(not pack.is_whole for pack in packs)
    fresh = iter(new_packs(connection, broken) if broken else ())
    new, moved, ended = [], list[tuple[str, int, int]](), defaultdict[int, set[str]](set)
    for pack in packs:
        records, number = pack.records, pack.claim.id if pack.is_whole else next(fresh)
        cost = sum(record.cost for record in records)
        new.append(
            NewPack(
                id=number,
                run=pack.claim.run,
                identity=pack.identity,
                kind=storable(records[0].kind),
                size=len(records),
                cost=cost,
                content=pack.content,
            )
        )
        if not pack.is_whole:
            moved += [(record.key, number, place) for place, record in enumerate(records)]
            ended[pack.claim.id].update(record.key for record in records)
    store_packs(connection, new, now)
    if moved:
        move(connection, moved)
    delete_claims(connection, [pack.claim.id for pack in packs if pack.is_whole])
    for claim in {pack.claim.id: pack.claim for pack in packs if pack.claim.id in ended}.values():
        leave(connection, claim, ended[claim.id])


def _booking(pack: _PreparedPack) -> Booking:
    records, claim = pack.records, pack.claim
    reserved = sum(claim.reserved)
    if len(records) < len(claim.keys):
        answered = {record.key for record in records}
        reserved = sum(price for key, price in zip(claim.keys, claim.reserved, strict=True) if key in answered)
    return Booking(
        run=claim.run,
        scope=claim.scope,
        oracle=storable(records[0].oracle),
        kind=storable(records[0].kind),
        answers=len(records),
        reserved=reserved,
        cost=sum(record.cost for record in records),
        requests=sum(record.requests for record in records),
        input_tokens=sum(record.input_tokens for record in records),
        output_tokens=sum(record.output_tokens for record in records),
    )
