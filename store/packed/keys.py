"""Where the answer of a question is: its key, of 32 bytes, leads to a pack and a place in it.

Written for each database in its own words, because of bytes in lists, and because most of the time goes here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import Connection

_BYTES = 32
_FIND = {
    "sqlite": "SELECT key, pack, place FROM packed_keys WHERE key IN (SELECT substr(?, value, 32) FROM json_each(?))",
    "postgresql": "SELECT key, pack, place FROM packed_keys WHERE key = ANY (%s::bytea[])",
}
_ADD = {
    "sqlite": "INSERT OR IGNORE INTO packed_keys (key, pack, place) VALUES (?, ?, ?)",
    "postgresql": "INSERT INTO packed_keys (key, pack, place) "
    "SELECT * FROM unnest(%s::bytea[], %s::bigint[], %s::smallint[]) ON CONFLICT DO NOTHING",
}
_MOVE = {
    "sqlite": "UPDATE packed_keys SET pack = ?2, place = ?3 WHERE key = ?1",
    "postgresql": "UPDATE packed_keys SET pack = given.pack, place = given.place "
    "FROM unnest(%s::bytea[], %s::bigint[], %s::smallint[]) AS given (key, pack, place) "
    "WHERE packed_keys.key = given.key",
}
_REMOVE = {
    "sqlite": "DELETE FROM packed_keys WHERE key = ?",
    "postgresql": "DELETE FROM packed_keys WHERE key = ANY (%s::bytea[])",
}
PACKS_OF = {  # in a statement that begins with its own words: the packs of keys
    "sqlite": "SELECT pack FROM packed_keys WHERE key IN (SELECT substr(?, value, 32) FROM json_each(?))",
    "postgresql": "SELECT DISTINCT pack FROM packed_keys WHERE key = ANY (%s::bytea[])",
}
_NEXT = {
    "sqlite": "SELECT max(coalesce((SELECT max(id) FROM packed_claims), 0), coalesce((SELECT max(id) FROM packs), 0))",
    "postgresql": "SELECT nextval(pg_get_serial_sequence('packs', 'id')) FROM generate_series(1, %s)",
}


class PackPlace(NamedTuple):
    """Where a key leads. The place counts from 0."""

    pack: int
    place: int


def packable(keys: Sequence[str]) -> Sequence[str]:
    """Those of the keys that can be packed: mostly all, which is found out at once."""
    if set(map(len, keys)) == {2 * _BYTES} and _is_hexadecimal("".join(keys)):
        return keys
    return [key for key in keys if len(key) == 2 * _BYTES and _is_hexadecimal(key)]


def _is_hexadecimal(text: str) -> bool:
    """In small letters, as bytes are written."""
    try:
        return bytes.fromhex(text).hex() == text
    except ValueError:
        return False


def find_packed(connection: Connection, keys: Iterable[str]) -> dict[str, PackPlace]:
    """The keys that are packed, and where."""
    digests = digests_of(keys)
    if not digests:
        return {}
    name = connection.dialect.name
    rows = connection.exec_driver_sql(_FIND[name], as_parameters(name, digests))
    return {key.hex(): PackPlace(pack, place) for key, pack, place in rows}


def as_parameters(dialect: str, digests: list[bytes]) -> tuple[Any, ...]:
    """Keys as a statement of that database takes them."""
    return (b"".join(digests), _starts(len(digests))) if dialect == "sqlite" else (_as_array(digests),)


def digests_of(keys: Iterable[str]) -> list[bytes]:
    """Those of the keys that can be packed, as bytes."""
    return _split(concat(packable(list(keys))))


def add(connection: Connection, rows: Sequence[tuple[str, int, int]]) -> set[str]:
    """Insert key, pack and place; returns the keys that another process had inserted first."""
    if _execute(connection, _ADD, rows) == len(rows):
        return set()
    found = find_packed(connection, [key for key, _, _ in rows])
    return {key for key, pack, place in rows if found.get(key) != PackPlace(pack, place)}


def move(connection: Connection, rows: Sequence[tuple[str, int, int]]) -> None:
    _execute(connection, _MOVE, rows)


def remove(connection: Connection, keys: Iterable[str]) -> None:
    digests = _split(concat(keys))
    if digests:
        is_sqlite = connection.dialect.name == "sqlite"
        values: Any = [(digest,) for digest in digests] if is_sqlite else (_as_array(digests),)
        connection.exec_driver_sql(_REMOVE[connection.dialect.name], values)


def new_packs(connection: Connection, count: int) -> list[int]:
    """Numbers for packs. On SQLite they are free until the transaction ends, because nobody else writes."""
    if connection.dialect.name == "sqlite":
        last = connection.exec_driver_sql(_NEXT["sqlite"]).scalar_one()
        return list(range(last + 1, last + 1 + count))
    return list(connection.exec_driver_sql(_NEXT["postgresql"], (count,)).scalars())


def concat(keys: Iterable[str]) -> bytes:
    return bytes.fromhex("".join(keys))


def split(keys: bytes) -> list[str]:
    digits = keys.hex()
    return [digits[start : start + 2 * _BYTES] for start in range(0, len(digits), 2 * _BYTES)]


def _split(keys: bytes) -> list[bytes]:
    return [keys[start : start + _BYTES] for start in range(0, len(keys), _BYTES)]


def _execute(connection: Connection, statement: dict[str, str], rows: Sequence[tuple[str, int, int]]) -> int:
    """With a key in hexadecimal, a pack and a place in each row."""
    if not rows:
        return 0
    keys, packs, places = zip(*rows, strict=True)
    digests = _split(concat(keys))
    values: Any = list(zip(digests, packs, places, strict=True))
    if connection.dialect.name == "postgresql":
        values = (_as_array(digests), *(f"{{{','.join(map(str, column))}}}" for column in (packs, places)))
    counting = {"preserve_rowcount": True}
    return connection.exec_driver_sql(statement[connection.dialect.name], values, execution_options=counting).rowcount


def _as_array(digests: Sequence[bytes]) -> str:
    """As PostgreSQL writes an array: its driver takes several times as long, element by element."""
    return "{" + ",".join([f'"\\\\x{digest.hex()}"' for digest in digests]) + "}"


@lru_cache(maxsize=64)
def _starts(count: int) -> str:
    return f"[{','.join(str(1 + _BYTES * number) for number in range(count))}]"
