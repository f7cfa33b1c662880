"""Texts as people save them: UTF-8 with or without a byte order mark, UTF-16, or Windows-1252."""

from __future__ import annotations

import codecs
import gzip
import io
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import IO

from twothirds.sources.files.location import file_name, open_binary

SCANNED_BYTES = 16 * 2**20  # at the start of a file, in which the first letter beyond ASCII is looked for
JUDGED_BYTES = 2**20  # from there on, by which the encoding is judged
UTF_8, UTF_16, WINDOWS = "utf-8-sig", "utf-16", "cp1252"
UNDEFINED = b"\x81\x8d\x8f\x90\x9d"  # bytes that Windows-1252 has no letter for


@contextmanager
def open_decompressed(location: str) -> Iterator[IO[bytes]]:
    """The file as a stream, decompressed where it ends in .gz."""
    with open_binary(location) as stream:
        if file_name(location).lower().endswith(".gz"):
            with gzip.GzipFile(fileobj=stream) as plain:
                yield plain  # type: ignore[misc]
        else:
            yield stream


@contextmanager
def open_text(location: str, encoding: str, *, newline: str) -> Iterator[io.TextIOWrapper]:
    """What cannot be decoded becomes lone surrogates: the row that holds them is set aside, and no other."""
    wrap = partial(io.TextIOWrapper, encoding=encoding, errors="surrogateescape", newline=newline)
    with open_decompressed(location) as stream, wrap(stream) as text:
        yield text


def encoding_of(location: str) -> str:
    """Judged by the start of the file, which is read for it."""
    with open_decompressed(location) as stream:
        start = stream.read(JUDGED_BYTES)
        if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return UTF_16
        scanned = len(start)
        while start.isascii() and scanned < SCANNED_BYTES and (more := stream.read(JUDGED_BYTES)):
            start = start[-4:] + more
            scanned += len(more)
    return _judged(start)


def decoded(content: bytes) -> tuple[str, str]:
    """A whole text and its encoding. Raises UnicodeDecodeError."""
    if content[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return content.decode(UTF_16), UTF_16
    encoding = _judged(content)
    return content.decode(encoding), encoding


def _judged(content: bytes) -> str:
    """Windows-1252 where more letters beyond ASCII are no UTF-8 than are: a damaged row is no other encoding."""
    if content.isascii():
        return UTF_8
    text = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode(content)
    odd = [letter for letter in text if letter > "\x7f"]
    undecodable = sum("\ud800" <= letter <= "\udfff" for letter in odd)
    foreign = any(byte in content for byte in UNDEFINED) or b"\0" in content
    return WINDOWS if 2 * undecodable > len(odd) and not foreign else UTF_8


def is_damaged(text: str) -> bool:
    """Whether some of it could not be decoded."""
    return not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text)


def remark_on(location: str, encoding: str) -> str:
    """What people should know about the encoding; nothing where it is the usual one."""
    if encoding != WINDOWS:
        return ""
    return f"{file_name(location)} is not UTF-8: read as Windows-1252; save it as UTF-8 if letters look wrong"
