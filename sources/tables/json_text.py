"""JSON: an object per line, or one list of objects, read as a stream."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import TextIOWrapper
from typing import Any

from sources.errors import DatasetError
from sources.printable import quoted
from sources.tables.delimited import MAX_CELL_CHARACTERS, lines_of
from sources.tables.encoding import is_damaged, open_text

CHUNK = 2**16  # characters of a list that are read at a time
BETWEEN = " \t\r\n"
_DECODER = json.JSONDecoder()

Value = tuple[Any, str | None]  # the value, or why there is none


def json_values(location: str, encoding: str, *, lines: bool) -> Iterator[Value]:
    with open_text(location, encoding, newline="\n") as text:
        if lines:
            yield from (_value_of(line) for line in lines_of(text, location) if line.strip())
        else:
            yield from _values_of_list(text, location)


def _value_of(line: str) -> Value:
    if is_damaged(line):
        return None, "is not UTF-8"
    try:
        return json.loads(line), None
    except (ValueError, RecursionError):
        return None, "is not JSON"


def _values_of_list(text: TextIOWrapper, location: str) -> Iterator[Value]:
    """The members of one list, or objects one after the other. Only the member that is being read is in memory."""
    buffer, count, is_list, ended = "", 0, False, False
    while not ended:
        # Twice as much each time, so that a long entry does not take quadratic time.
        more = text.read(max(CHUNK, 2 * len(buffer)))
        buffer, ended = (buffer + more).lstrip(BETWEEN), not more
        if count == 0 and not is_list and buffer[:1] == "[":
            is_list, buffer = True, buffer[1:]
        at = 0
        for value, end in _whole_values(buffer, count > 0, ended):
            yield (None, "is not UTF-8") if is_damaged(buffer[at:end]) else (value, None)
            count, at = count + 1, end
        buffer = buffer[at:].lstrip(BETWEEN)
        if is_list and buffer[:1] == "]":
            return
        if len(buffer) > MAX_CELL_CHARACTERS:
            raise DatasetError(f"entry {count + 1} of {quoted(location)} is too long: write shorter ones")
    if buffer or is_list:
        where = f"entry {count + 1} of {quoted(location)}"
        raise DatasetError(f"{where} is not JSON: write a list of objects, or one object per line")


def _whole_values(buffer: str, continued: bool, ended: bool) -> Iterator[tuple[Any, int]]:
    """Values that the buffer holds to their end, each with the place behind it."""
    at = 0
    while True:
        while at < len(buffer) and (buffer[at] in BETWEEN or (buffer[at] == "," and continued)):
            at += 1
        try:
            value, at = _DECODER.raw_decode(buffer, at)
        except (ValueError, RecursionError):  # the rest is not read yet, or it is no JSON
            return
        if at == len(buffer) and not ended:  # a number may go on in what is not read yet
            return
        continued = True
        yield value, at
