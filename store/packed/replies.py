"""Raw replies in packs: found by their age, and removed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, select, update

from store.packed.answers import contents_of
from store.packed.content import checksum, decode, recode
from store.packed.keys import find_packed
from store.schema import packed_keys, packs
from store.sql import any_of

PAGE = 1_000
RAW = "raw"
_PAGE = (
    select(packed_keys.c.key, packed_keys.c.pack, packed_keys.c.place, packs.c.answered_at)
    .join(packs, packs.c.id == packed_keys.c.pack)
    .where(packed_keys.c.key > bindparam("after"), packs.c.answered_at < bindparam("before"))
    .order_by(packed_keys.c.key)
    .limit(PAGE)
)
_LOCKED = select(packs.c.id, packs.c.content).where(any_of(packs.c.id)).order_by(packs.c.id).with_for_update()
_REWRITE = (
    update(packs)
    .where(packs.c.id == bindparam("of_pack"))
    .values(content=bindparam("new_content"), checksum=bindparam("new_checksum"))
)


class PackedReply(NamedTuple):
    """The raw text of an answer in a pack."""

    pack: int
    key: str
    answered_at: float
    raw: str


def packed_replies(connection: Connection, before: float, after: str) -> tuple[list[PackedReply], str]:
    """Raw replies that are older, of answers whose keys follow, and the last key that was read; none at the end."""
    rows = connection.execute(_PAGE, {"before": before, "after": bytes.fromhex(after)}).all()
    contents = contents_of(connection, (row.pack for row in rows))
    found = ((row, contents[row.pack].member(RAW, row.place)) for row in rows if row.pack in contents)
    replies = [PackedReply(row.pack, row.key.hex(), row.answered_at, raw) for row, raw in found if raw]
    return replies, rows[-1].key.hex() if rows else ""


def remove_packed_replies(connection: Connection, keys: Iterable[str]) -> None:
    """Without their raw text the answers are as before; the checksums of the packs are made anew."""
    places = defaultdict(set)
    for at in find_packed(connection, keys).values():
        places[at.pack].add(at.place)
    rows = connection.execute(_LOCKED, {"keys": sorted(places)}).tuples().all() if places else ()
    new = []
    for number, content in rows:
        shorter = recode(decode(content), RAW, places[number], "")
        new.append({"of_pack": number, "new_content": shorter, "new_checksum": checksum(shorter)})
    if new:
        connection.execute(_REWRITE, new)
