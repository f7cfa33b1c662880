"""The columns of a data set, and attributes with values, as facets: values that are counted, or numbers in a range."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from twothirds.reports.run import Attribute
from twothirds.sources import without_secrets

if TYPE_CHECKING:
    import pandas as pd

MANY_NUMBERS = 12  # different numbers from which a column is a quantity
EMPTY = -1
BINS = 12
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_DIGITS = re.compile(r"0*(\d+)")


@dataclass(frozen=True, eq=False)
class BrowsedColumn:
    """Of each example its value (a place in `values`, which are in their order, or EMPTY), or its number (NaN)."""

    name: str
    values: tuple[str, ...] = ()
    codes: NDArray[np.int32] | None = None
    numbers: NDArray[np.float64] | None = None

    @property
    def keys(self) -> NDArray[Any]:
        """What it is sorted by: NaN or EMPTY where there is nothing."""
        return self.numbers if self.numbers is not None else np.asarray(self.codes)

    @property
    def empty(self) -> NDArray[np.bool_]:
        found = np.isnan(self.numbers) if self.numbers is not None else np.asarray(self.codes) == EMPTY
        return np.asarray(found, np.bool_)

    @property
    def span(self) -> tuple[float, float]:
        """The smallest and the largest number."""
        known = np.asarray(self.numbers)[~self.empty]
        return float(known.min()), float(known.max())

    def text(self, row: int) -> str:
        """Empty where there is nothing."""
        if self.numbers is not None:
            return number_text(float(self.numbers[row]))
        code = int(np.asarray(self.codes)[row])
        return "" if code == EMPTY else self.values[code]

    def among(self, rows: NDArray[np.intp]) -> BrowsedColumn:
        """Of some examples alone, without the values that none of them has."""
        if self.numbers is not None:
            return replace(self, numbers=self.numbers[rows])
        codes = np.asarray(self.codes)[rows]
        kept = np.unique(codes[codes != EMPTY])
        places = np.full(len(self.values) + 1, EMPTY, np.int32)  # the last one is EMPTY's
        places[kept] = np.arange(len(kept))
        return replace(self, values=tuple(self.values[place] for place in kept), codes=places[codes])


def browsed_columns(
    table: pd.DataFrame | None, attributes: Sequence[Attribute], ids: Sequence[str]
) -> list[BrowsedColumn]:
    """Attributes first. A column without any value is left out; one with the name of an attribute is renamed."""
    made = [_of_attribute(attribute) for attribute in attributes]
    taken = {column.name for column in made}
    if table is not None:
        rows = table.reindex(list(ids))
        for place, label in enumerate(rows.columns):
            name = str(label)
            while name in taken:
                name += " (column)"
            taken.add(name)
            column = _of_cells(name, [cell_text(cell) for cell in rows.iloc[:, place].tolist()])
            if not column.empty.all():
                made.append(column)
    return made


def _of_attribute(attribute: Attribute) -> BrowsedColumn:
    return BrowsedColumn(attribute.name, tuple(attribute.categories), attribute.codes.astype(np.int32))


def _of_cells(name: str, texts: list[str]) -> BrowsedColumn:
    given = set(texts) - {""}
    if len(given) >= MANY_NUMBERS and all(map(_is_number, given)):
        numbers = {text: float(text) for text in given} | {"": math.nan}
        return BrowsedColumn(name, numbers=np.array([numbers[text] for text in texts], np.float64))
    values = sorted(given, key=natural_order)
    places = {value: place for place, value in enumerate(values)} | {"": EMPTY}
    return BrowsedColumn(name, tuple(values), np.array([places[text] for text in texts], np.int32))


def cell_text(cell: Any) -> str:
    """A cell as it is shown: what the addresses in it hold of secrets is not."""
    if isinstance(cell, str):
        return without_secrets(cell) if "://" in cell else cell if cell.strip() else ""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return ""
    if isinstance(cell, float | np.floating):
        return number_text(float(cell))
    if isinstance(cell, bytes | bytearray | memoryview):
        return f"{len(cell):,} bytes"
    if isinstance(cell, dict | list | tuple):
        return without_secrets(json.dumps(cell, ensure_ascii=False, default=str))
    return cell_text(str(cell))


def number_text(number: float) -> str:
    """As short as it can be written; empty for NaN."""
    if math.isnan(number):
        return ""
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else f"{number:.12g}"


def _is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text.strip()) is not None and math.isfinite(float(text))


def natural_order(text: str) -> tuple[str, str]:
    """A sort key: capitals do not matter, and numbers count by their value."""
    return _DIGITS.sub(lambda digits: f"{len(digits[1]):04}{digits[1]}", text.casefold()), text
