"""Cells that a spreadsheet would run as a formula are written with an apostrophe before them, and read back without."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from typing import IO, TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pandas as pd

STARTS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def defuse(cell: Any) -> Any:
    """Numbers stay as they are. A text that has an apostrophe already gets one more, so that `restore` is exact."""
    return f"'{cell}" if isinstance(cell, str) and cell.lstrip("'").startswith(STARTS_A_FORMULA) else cell


def restore(cell: Any) -> Any:
    defused = isinstance(cell, str) and cell.startswith("'") and cell.lstrip("'").startswith(STARTS_A_FORMULA)
    return cell[1:] if defused else cell


def defused(table: pd.DataFrame) -> pd.DataFrame:
    """The table with its texts and column names defused."""
    return _texts(table, defuse)


def write_csv(file: IO[str], table: pd.DataFrame) -> None:
    """Without what a spreadsheet would run, and with lone carriage returns quoted."""
    made = defused(table)
    texts = made.select_dtypes(exclude="number")
    made.to_csv(file, index=False, quoting=quoting_of([*made.columns, *texts.to_numpy().flat]))


def quoting_of(cells: Iterable[Any]) -> Literal[0, 1]:
    """For Python's writers: everything is quoted where a cell holds a carriage return, of which one row became two."""
    return csv.QUOTE_ALL if any("\r" in str(cell) for cell in cells) else csv.QUOTE_MINIMAL


def restored(table: pd.DataFrame) -> pd.DataFrame:
    return _texts(table, restore)


def _texts(table: pd.DataFrame, change: Callable[[Any], Any]) -> pd.DataFrame:
    import pandas as pd

    made = table.copy()
    for place, kind in enumerate(table.dtypes):
        if not pd.api.types.is_numeric_dtype(kind):
            made.isetitem(place, table.iloc[:, place].map(change).array)
    made.columns = pd.Index([change(name) for name in table.columns])
    return made
