"""Claims of labels of one example that are asked together: one row for all of them.

Only what usually happens is done here: they are claimed, sent and answered. A claim to which anything else happens,
such as an end of its lease, becomes a row in `charges` first (`take_out`), where every state is known."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import orjson
from sqlalchemy import Connection, Select, Text, bindparam, delete, insert, select, type_coerce, update

from store.packed.content import MOST
from store.packed.keys import (
    PACKS_OF,
    add,
    as_parameters,
    concat,
    digests_of,
    find_packed,
    move,
    new_packs,
    packable,
    remove,
    split,
)
from store.schema import CLAIMED, SENT, charges, json_text, json_value, packed_claims, runs, storable
from store.sql import any_of, json_array

LEAST = 4  # labels of one example that make a pack
LABEL = "label"
PACKED_FENCE = 1  # of all that is packed: what is asked for the second time is not
_NO_PACK = 0
_EXAMPLE = 16  # digits of a key that are those of its example


class PackedClaim(NamedTuple):
    id: int
    run: int
    scope: int
    oracle: str
    kind: str
    owner: str
    token: str
    lease_seconds: float
    lease_until: float
    claimed_at: float
    keys: list[str]
    reserved: list[int]
    in_doubt: list[int | None]  # None: not sent

    def part(self, places: Sequence[int]) -> PackedClaim:
        return self._replace(
            keys=[self.keys[place] for place in places],
            reserved=[self.reserved[place] for place in places],
            in_doubt=[self.in_doubt[place] for place in places],
        )


class NewClaim(NamedTuple):
    """A label that is to be claimed."""

    key: str
    oracle: str
    kind: str
    reserved: int
    is_sent: bool


_JSON = {name: type_coerce(packed_claims.c[name], Text) for name in ("reserved", "in_doubt")}  # read by _claim
_OTHERS = {"scope": runs.c.scope, **_JSON}
_COLUMNS = tuple(_OTHERS[name] if name in _OTHERS else packed_claims.c[name] for name in PackedClaim._fields)
_CLAIMS = select(*_COLUMNS).join(runs, runs.c.id == packed_claims.c.run).order_by(packed_claims.c.id)
_BY_NUMBER = _CLAIMS.where(any_of(packed_claims.c.id)).with_for_update(of=packed_claims)
_KEYS_BY_NUMBER = (
    select(packed_claims.c.id, packed_claims.c["keys"])
    .where(any_of(packed_claims.c.id))
    .order_by(packed_claims.c.id)
    .with_for_update()
)
_EXPIRED = _CLAIMS.where(packed_claims.c.lease_until <= bindparam("now"))
_OF_OWNERS = _CLAIMS.where(packed_claims.c.owner.in_(bindparam("owners", expanding=True)))
_OWNERS_IN_SCOPE = (
    select(packed_claims.c.owner)
    .distinct()
    .join(runs, runs.c.id == packed_claims.c.run)
    .where(runs.c.scope == bindparam("in_scope"))
)
_AHEAD = (
    select(packed_claims.c.id.label("of_pack"), packed_claims.c.lease_seconds)
    .where(packed_claims.c.lease_until > bindparam("now") + packed_claims.c.lease_seconds + 1)
    .with_for_update(skip_locked=True)
)
_SHORTEN = (
    update(packed_claims).where(packed_claims.c.id == bindparam("of_pack")).values(lease_until=bindparam("until"))
)
# Written out, because a request waits for it. FOR UPDATE of PostgreSQL is in the order of the numbers, as everywhere.
_OF_KEYS = (
    "SELECT packed_claims.id, run, scope, packed_claims.oracle, kind, owner, token, lease_seconds, lease_until, "
    "claimed_at, keys, reserved, in_doubt FROM packed_claims JOIN runs ON runs.id = run "
    "WHERE packed_claims.id {} ORDER BY packed_claims.id"
)
_BY_KEYS = {
    "sqlite": _OF_KEYS.format(f"IN ({PACKS_OF['sqlite']})"),
    # An array, which is looked up in the index: a join may read the room of all claims that have ended.
    "postgresql": _OF_KEYS.format(f"= ANY (ARRAY({PACKS_OF['postgresql']}))"),
}
_FOR_UPDATE = {"sqlite": "", "postgresql": " FOR UPDATE OF packed_claims"}
_MARK = {
    "sqlite": "UPDATE packed_claims SET in_doubt = ?, lease_until = ? WHERE id = ?",
    "postgresql": "UPDATE packed_claims SET in_doubt = given.in_doubt, lease_until = given.until "
    "FROM unnest(%s::text[], %s::float8[], %s::bigint[]) AS given (in_doubt, until, number) WHERE id = given.number",
}
_REWRITE = (
    update(packed_claims)
    .where(packed_claims.c.id == bindparam("of_pack"))
    .values(keys=bindparam("of_keys"), reserved=bindparam("new_reserved"), in_doubt=bindparam("doubt"))
)
_DELETE = delete(packed_claims).where(any_of(packed_claims.c.id))
_NO_CHARGE = dict.fromkeys(("cost", "requests", "input_tokens", "output_tokens", "seconds"), 0)


def group_labels(claims: Iterable[NewClaim]) -> list[list[NewClaim]]:
    """Those that can be packed, by pack. They come in the order of their keys."""
    labels = [claim for claim in claims if claim.kind == LABEL]
    keys = packable([claim.key for claim in labels])
    if len(keys) < len(labels):
        fit = set(keys)
        labels = [claim for claim in labels if claim.key in fit]
    found = []
    for _, group in groupby(labels, lambda claim: (claim.key[:_EXAMPLE], claim.oracle)):
        same = list(group)
        packs = (same[start : start + MOST] for start in range(0, len(same), MOST))
        found += [pack for pack in packs if len(pack) >= LEAST]
    return found


def claim_packs(connection: Connection, packs: Sequence[Sequence[NewClaim]], common: Mapping[str, Any]) -> set[str]:
    """Claim labels that nobody has claimed or answered; returns the keys of those that another process had first.
    `common` are the run, owner, token and times of the claims, by column."""
    numbers = new_packs(connection, len(packs)) if packs else []
    numbered = list(zip(numbers, packs, strict=True))
    rows = [(claim.key, number, place) for number, pack in numbered for place, claim in enumerate(pack)]
    lost = add(connection, rows)
    if connection.dialect.name == "postgresql" and rows:  # others may have claimed and released some since we looked
        returned = _with_charges(connection, [key for key, _, _ in rows if key not in lost])
        remove(connection, returned)
        lost |= returned
    written = []
    for number, pack in numbered:
        mine = [claim for claim in pack if claim.key not in lost]
        if len(mine) < len(pack):
            move(connection, [(claim.key, number, place) for place, claim in enumerate(mine)])
        if mine:
            amounts = {
                "reserved": [claim.reserved for claim in mine],
                "in_doubt": [claim.reserved if claim.is_sent else None for claim in mine],
            }
            keys = concat(claim.key for claim in mine)
            written.append({"id": number, "oracle": mine[0].oracle, "kind": mine[0].kind, "keys": keys, **amounts})
    if written:
        connection.execute(insert(packed_claims), [{**row, **common} for row in written])
    return lost


def claimed_packed(connection: Connection, keys: Sequence[str]) -> set[str]:
    """Those of the keys, which are about to get rows of their own, that another process has packed since we looked.

    On PostgreSQL the keys are inserted and removed again: whoever packs one just now is waited for, and whoever does so
    next waits for us and then finds our row."""
    fitting = packable(keys) if keys and connection.dialect.name == "postgresql" else ()
    lost = add(connection, [(key, _NO_PACK, 0) for key in fitting])
    remove(connection, [key for key in fitting if key not in lost])
    return lost


def _with_charges(connection: Connection, keys: Sequence[str]) -> set[str]:
    known = select(charges.c.key).where(charges.c.key.in_(json_array()))
    return set(connection.execute(known, {"keys": list(keys)}).scalars()) if keys else set()


def packed_claims_of(connection: Connection, numbers: Iterable[int]) -> dict[int, PackedClaim]:
    """Those of these packs that are still claims, locked."""
    wanted = sorted(set(numbers))
    rows = connection.execute(_BY_NUMBER, {"keys": wanted}) if wanted else ()
    return {claim.id: claim for claim in map(_claim, rows)}


def claims_of_keys(connection: Connection, keys: Iterable[str], *, lock: bool = True) -> list[PackedClaim]:
    """The packs with these keys that are still claims."""
    digests, dialect = digests_of(keys), connection.dialect.name
    statement = _BY_KEYS[dialect] + (_FOR_UPDATE[dialect] if lock else "")
    rows = connection.exec_driver_sql(statement, as_parameters(dialect, digests)) if digests else ()
    return [_claim(row) for row in rows]


def lock_unchanged(connection: Connection, claims: Collection[PackedClaim]) -> bool:
    """Lock these claims; whether each is still there, with the keys that it had."""
    rows = connection.execute(_KEYS_BY_NUMBER, {"keys": sorted(claim.id for claim in claims)}) if claims else ()
    return {number: bytes(keys) for number, keys in rows} == {claim.id: concat(claim.keys) for claim in claims}


def _claim(row: Any) -> PackedClaim:
    *fields, keys, reserved, in_doubt = row
    return PackedClaim._make((*fields, split(keys), _amounts(reserved), _amounts(in_doubt)))


def _amounts(text: str) -> list[Any]:
    try:
        amounts: list[Any] = orjson.loads(text)
    except ValueError:
        amounts = json_value(text)
    return amounts


def mark_packed(connection: Connection, owner: str, in_doubt: Mapping[str, int | None], now: float) -> set[str]:
    """Mark claims of the owner as sent, with what is in doubt from now on (None: all that is reserved), and renew the
    leases; returns the keys of those."""
    marked, rows, whose = set[str](), [], storable(owner)
    for claim in claims_of_keys(connection, in_doubt):
        if claim.owner != whose:
            continue
        amounts = list(claim.in_doubt)
        for place, key in enumerate(claim.keys):
            if key in in_doubt:
                doubt = in_doubt[key]
                amounts[place] = claim.reserved[place] if doubt is None else doubt
                marked.add(key)
        rows.append((json_text(amounts), now + claim.lease_seconds, claim.id))
    if rows:
        is_sqlite = connection.dialect.name == "sqlite"
        values: Any = rows if is_sqlite else tuple(list(column) for column in zip(*rows, strict=True))
        connection.exec_driver_sql(_MARK[connection.dialect.name], values)
    return marked


def take_out_keys(connection: Connection, keys: Collection[str], owner: str | None = None) -> None:
    """Make rows of those of the claims that are packed, and the owner's where one is given."""
    found = find_packed(connection, keys)
    wanted = set(keys)
    for claim in packed_claims_of(connection, {at.pack for at in found.values()}).values():
        if owner is None or claim.owner == owner:
            take_out(connection, claim, [place for place, key in enumerate(claim.keys) if key in wanted])


def take_out(connection: Connection, claim: PackedClaim, places: Sequence[int] | None = None) -> None:
    """Make rows of a packed claim, or of those at some places."""
    part = claim if places is None else claim.part(places)
    if not part.keys:
        return
    remove(connection, part.keys)
    common = {name: getattr(claim, name) for name in ("run", "oracle", "kind", "owner", "token", "claimed_at")}
    leases = {"lease_seconds": claim.lease_seconds, "lease_until": claim.lease_until}
    connection.execute(
        insert(charges),
        [
            {"key": key, "fence": PACKED_FENCE, "reserved": reserved, "in_doubt": doubt or 0}
            | {"state": CLAIMED if doubt is None else SENT, **common, **leases, **_NO_CHARGE}
            for key, reserved, doubt in zip(part.keys, part.reserved, part.in_doubt, strict=True)
        ],
    )
    leave(connection, claim, set(part.keys))


def leave(connection: Connection, claim: PackedClaim, ended: Collection[str]) -> None:
    """Reduce a claim to those that have not ended, whose keys then lead to their new places; none left: delete it."""
    left = [place for place, key in enumerate(claim.keys) if key not in ended]
    if not left:
        connection.execute(_DELETE, {"keys": [claim.id]})
        return
    rest = claim.part(left)
    move(connection, [(key, claim.id, place) for place, key in enumerate(rest.keys)])
    values = {"of_pack": claim.id, "of_keys": concat(rest.keys), "new_reserved": rest.reserved, "doubt": rest.in_doubt}
    connection.execute(_REWRITE, values)


def delete_claims(connection: Connection, numbers: Collection[int]) -> None:
    if numbers:
        connection.execute(_DELETE, {"keys": sorted(numbers)})


def shorten_packed(connection: Connection, now: float) -> None:
    """Let leases that are further ahead than a lease can be expire as if they began now."""
    ahead = connection.execute(_AHEAD, {"now": now}).all()
    if ahead:
        connection.execute(_SHORTEN, [{"of_pack": row.of_pack, "until": now + row.lease_seconds} for row in ahead])


def take_out_ended(
    connection: Connection,
    scope: int,
    owners: Sequence[str],
    now: float,
    lock_free: Callable[[Connection, Iterable[int]], set[int]],
) -> None:
    """Make rows of claims whose lease has expired or whose owner has died, as far as their scopes and they themselves
    can be locked without waiting; the lock on `scope` is held."""
    searches: list[tuple[Select[Any], dict[str, Any]]] = [(_EXPIRED, {"now": now})]
    if owners:
        searches.append((_OF_OWNERS, {"owners": list(owners)}))
    for search, values in searches:
        seen = {row.scope for row in connection.execute(search, values)}
        if not seen:
            continue
        locked = {scope, *lock_free(connection, seen - {scope})}
        for row in connection.execute(search.with_for_update(of=packed_claims, skip_locked=True), values).all():
            if row.scope in locked:
                take_out(connection, _claim(row))


def take_out_all(connection: Connection) -> None:
    for row in connection.execute(_CLAIMS).all():
        take_out(connection, _claim(row))


def packed_owners(connection: Connection, scope: int) -> set[str]:
    return set(connection.execute(_OWNERS_IN_SCOPE, {"in_scope": scope}).scalars())


def all_packed_claims(connection: Connection) -> list[PackedClaim]:
    """Of all runs, for a check."""
    return [_claim(row) for row in connection.execute(_CLAIMS)]
