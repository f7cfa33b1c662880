"""What a request holds, as bytes: its questions and answers by position, null where there is no answer."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Sequence
from typing import Any

import orjson

from twothirds.store.errors import DamagedStore
from twothirds.store.schema import LOOK

Entry = Sequence[Any]  # a question and its answer
KEY_BYTES = 16
KEY_LENGTH = 2 * KEY_BYTES  # hexadecimal digits


def encode(entries: Sequence[Entry | None]) -> bytes:
    try:
        text = orjson.dumps(entries)
    except TypeError:  # such as lone surrogates
        text = json.dumps(entries, separators=(",", ":")).encode()
    return zlib.compress(text, 6)


def decode(content: bytes) -> list[Any]:
    try:
        text = zlib.decompress(content)
    except zlib.error:
        raise DamagedStore(f"the store holds answers that cannot be unpacked: {LOOK}") from None
    try:
        entries: list[Any] = orjson.loads(text)
    except ValueError:
        entries = _decoded_exactly(text)
    return entries


def _decoded_exactly(text: bytes) -> list[Any]:
    try:
        entries: list[Any] = json.loads(text)
    except ValueError:
        raise DamagedStore(f"the store holds {text[:40]!r} where JSON was written: {LOOK}") from None
    return entries


def checksum(content: bytes) -> bytes:
    """It detects accidents and manual edits, not forgery."""
    return hashlib.blake2b(content, digest_size=16).digest()


def joined_keys(keys: Sequence[str]) -> bytes:
    return bytes.fromhex("".join(keys))


def split_keys(joined: bytes) -> list[str]:
    digits = joined.hex()
    return [digits[at : at + KEY_LENGTH] for at in range(0, len(digits), KEY_LENGTH)]


def text_key(text: str) -> str:
    """The key of something that is no question of an oracle, such as a task that was published elsewhere."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:KEY_LENGTH]
