"""Answers to labels that are claimed as a pack: kept as a pack, and what they cost added up."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection, insert

from store.packed.answers import form_numbers, form_of, unpack
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
from store.packed.content import AnswerRecord, checksum, encode
from store.packed.keys import find_packed, move, new_packs
from store.schema import packs as stored_packs
from store.schema import storable


class PreparedPack(NamedTuple):
    """Answers to some of the labels of a claim that fit one pack, and what the pack holds."""

    claim: PackedClaim
    identity: int
    records: list[AnswerRecord]  # in the order of the claim
    content: bytes

    @property
    def is_whole(self) -> bool:
        return len(self.records) == len(self.claim.keys)

    @property
    def reserved(self) -> int:
        """For these of the labels of the claim."""
        if self.is_whole:
            return sum(self.claim.reserved)
        answered = {record.key for record in self.records}
        prices = zip(self.claim.keys, self.claim.reserved, strict=True)
        return sum(price for key, price in prices if key in answered)


@dataclass(frozen=True, slots=True)
class PreparedPacks:
    """Answers that are to be kept, packed as their claims were when nothing was locked yet."""

    records: Sequence[AnswerRecord]
    identity_of: Callable[[AnswerRecord], int]
    forms: Mapping[str, int]
    claims: Mapping[int, PackedClaim]
    packs: list[PreparedPack]
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
        packs.append(PreparedPack(claims[number], identity, ordered, content))
    return PreparedPacks(records, identity_of, forms, claims, packs, others)


def settle_packed(
    connection: Connection, prepared: PreparedPacks, now: float
) -> tuple[list[PreparedPack], list[str], list[AnswerRecord]]:
    """Keep those of the answers that can be packed; returns their packs, which are to be booked, the keys of those that
    are answered already, and the other answers, whose claims have rows of their own by now."""
    if not lock_unchanged(connection, prepared.claims.values()):
        claims = packed_claims_of(connection, prepared.claims)
        prepared = _prepared(prepared.records, prepared.identity_of, prepared.forms, claims)
    repeated, rest = list[str](), list[AnswerRecord]()
    claimed = {key for claim in prepared.claims.values() for key in claim.keys} if prepared.others else set()
    answered = find_packed(connection, [record.key for record in prepared.others if record.key not in claimed])
    for record in prepared.others:
        if record.key in answered and record.fence == PACKED_FENCE:
            repeated.append(record.key)
        else:
            rest.append(record)
    _make_rows(
        connection, prepared.claims, [record.key for record in rest if record.key in claimed or record.key in answered]
    )
    packs = prepared.packs
    if packs and (rest or not all(pack.is_whole for pack in packs)):  # what is left of a claim is written as it is now
        left = packed_claims_of(connection, prepared.claims)
        packs = [pack._replace(claim=left[pack.claim.id]) for pack in packs]
    if packs:
        _store(connection, packs, now)
    return packs, repeated, rest


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


def _store(connection: Connection, packs: Sequence[PreparedPack], now: float) -> None:
    """A pack of a whole claim takes its number, so that its keys lead to it already."""
    broken = sum(not pack.is_whole for pack in packs)
    fresh = iter(new_packs(connection, broken) if broken else ())
    new, moved, ended = [], list[tuple[str, int, int]](), defaultdict[int, set[str]](set)
    for pack in packs:
        records, number = pack.records, pack.claim.id if pack.is_whole else next(fresh)
        row = {"id": number, "run": pack.claim.run, "identity": pack.identity, "kind": storable(records[0].kind)}
        row |= {"size": len(records), "cost": sum(record.cost for record in records), "gone": 0, "answered_at": now}
        new.append(row | {"content": pack.content, "checksum": checksum(pack.content)})
        if not pack.is_whole:
            moved += [(record.key, number, place) for place, record in enumerate(records)]
            ended[pack.claim.id].update(record.key for record in records)
    connection.execute(insert(stored_packs), new)
    if moved:
        move(connection, moved)
    delete_claims(connection, [pack.claim.id for pack in packs if pack.is_whole])
    for claim in {pack.claim.id: pack.claim for pack in packs if pack.claim.id in ended}.values():
        leave(connection, claim, ended[claim.id])
