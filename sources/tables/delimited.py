"""CSV and its relatives: cells separated by commas, semicolons, tabs or bars, as the first line shows."""

from __future__ import annotations

import csv
import itertools
import re
from collections import Counter
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from io import TextIOWrapper

from twothirds.sources.errors import DatasetError
from twothirds.sources.files.location import file_name
from twothirds.sources.printable import quoted
from twothirds.sources.tables.encoding import open_text

MAX_CELL_CHARACTERS = 2**28  # also of a line: a hostile archive must not fill the memory
SEPARATORS = (",", ";", "\t", "|")  # the first of those that are equally frequent counts
_QUOTED = re.compile(r'"[^"]*"?')
_SEPARATOR_LINE = re.compile(r"sep=(.)\r?\n?", re.IGNORECASE)  # by which Excel says it


@dataclass(frozen=True, slots=True)
class CsvForm:
    """How a table is written: its encoding, what separates its cells, and whether its first line only says so."""

    encoding: str
    separator: str
    says_separator: bool = False


def form_of(location: str, encoding: str) -> CsvForm:
    with open_text(location, encoding, newline="") as text:
        first = text.readline(2**16)
    if stated := _SEPARATOR_LINE.fullmatch(first):
        return CsvForm(encoding, stated[1], says_separator=True)
    if file_name(location).lower().removesuffix(".gz").endswith(".tsv"):
        return CsvForm(encoding, "\t")
    plain = _QUOTED.sub("", first)
    return CsvForm(encoding, max(SEPARATORS, key=plain.count))


def csv_header(location: str, form: CsvForm) -> tuple[str, ...]:
    rows = csv_rows(location, form)
    header = tuple(name.strip() for name in next(rows, ()))
    rows.close()
    if not header:
        raise DatasetError(f"{quoted(location)} is empty: its first line must name the columns")
    twice = next((name for name, times in Counter(header).items() if times > 1), None)
    if twice is not None:
        raise DatasetError(f"{quoted(location)} has the column {twice!r} twice: rename one")
    return header


def csv_rows(location: str, form: CsvForm) -> Generator[list[str], None, None]:
    csv.field_size_limit(MAX_CELL_CHARACTERS)  # long texts are fine; the default ends at 128 kB
    with open_text(location, form.encoding, newline="") as text:
        lines = lines_of(text, location)
        if form.says_separator:
            next(lines)
        # Strict, because a quote that is never closed would otherwise swallow the rest of the table silently.
        reader = csv.reader(lines, delimiter=form.separator, strict=True)
        try:
            yield from (row for row in reader if row)
        except csv.Error as error:
            where = f"line {reader.line_num} of {quoted(location)}"
            raise DatasetError(f"{where} is not CSV ({error}): write a quote inside a quoted cell twice") from None


def lines_of(text: TextIOWrapper, location: str) -> Iterator[str]:
    for number in itertools.count(1):
        line = text.readline(MAX_CELL_CHARACTERS + 1)
        if len(line) > MAX_CELL_CHARACTERS:
            longest = f"{MAX_CELL_CHARACTERS:,} characters"
            raise DatasetError(f"line {number} of {quoted(location)} has more than {longest}: write shorter ones")
        if not line:
            return
        yield line
