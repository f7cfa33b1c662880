"""What a request holds, as bytes: its questions and answers by position, null where there is no answer.

It is deflated JSON. The compressor begins with a text that looks like a usual request, so that what all requests have
in common takes no space: a request of one label needs half of the bytes, one of twenty labels an eighth less."""

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


USUAL = (
    b'","voter":0},{"verdict":"none","feature":{"name":"","definition":""},"shown":[0,1],"more":[],"quote":"","reason":""'
    b'}],[{"kind":"two-of-three","examples":["","",""],"known":[["",""],["",""]]},{"verdict":"unreadable"},{"verdict":'
    b'"refused"},{"verdict":"feature"},{"verdict":"yes","by":"human"}],[{"kind":"label","feature":["",""],"example":"",'
    b'"voter":0},{"verdict":"no","by":"openai:","feature":null,"shown":[],"probability":0.9,"usage":[0,140,5,0,0],"cost":'
    b'0,"seconds":0.,"raw":"{\\"verdict\\": true}","note":""}],[{"kind":"label","feature":["'
)
RAW_DEFLATE = -zlib.MAX_WBITS  # without header and checksum: a row has a checksum of its own


def encode(entries: Sequence[Entry | None]) -> bytes:
    try:
        text = orjson.dumps(entries)
    except TypeError:  # such as lone surrogates
        text = json.dumps(entries, separators=(",", ":")).encode()
    return compress(text)


def compress(text: bytes) -> bytes:
    compressor = zlib.compressobj(6, wbits=RAW_DEFLATE, zdict=USUAL)
    return compressor.compress(text) + compressor.flush()


def decode(content: bytes) -> list[Any]:
    decompressor = zlib.decompressobj(RAW_DEFLATE, USUAL)
    try:
        text = decompressor.decompress(content)
        if not decompressor.eof or decompressor.unused_data:
            raise zlib.error
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
