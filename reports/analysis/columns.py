"""The further columns of a data set, as targets to predict and as groups to compare."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from twothirds.reports.run import RunError
from twothirds.sources import Dataset, read_metadata

if TYPE_CHECKING:
    import pandas as pd

MANY_VALUES = 12  # different numbers from which a column is a quantity
MOST_CLASSES = 20
FEWEST_ROWS = 5  # of a class that takes part
MOST_LISTED = 8


@dataclass(frozen=True, eq=False)
class MetadataColumn:
    """Values of a column for the run's examples. `rows` are those that take part."""

    name: str
    rows: NDArray[np.intp]
    values: NDArray[Any]  # of these rows: numbers, or names of classes
    is_number: bool
    left_out: list[str]  # what does not take part, and why
    pooled: str = ""  # which rare classes are one


def read_column(dataset: Dataset | None, name: str, ids: list[str]) -> MetadataColumn:
    """Raises RunError where the column is missing or cannot be analysed."""
    if dataset is None:
        raise RunError(f"column {name!r} cannot be read without the data set: say where it is with --dataset")
    table = read_metadata(dataset)
    if name not in table.columns:
        there = ", ".join(map(repr, table.columns)) or "no further columns"
        raise RunError(
            f"the data set has no column {name!r} (it has {there}): name one of these, or add it to its table"
        )
    series = table[name].reindex(ids)
    numbers = _as_numbers(series)
    if numbers is not None and len(np.unique(numbers[~np.isnan(numbers)])) >= MANY_VALUES:
        rows = np.flatnonzero(~np.isnan(numbers))
        return MetadataColumn(name, rows, numbers[rows], True, _missing(len(ids) - len(rows)))
    return _classes(name, series)


def in_halves(column: MetadataColumn) -> MetadataColumn:
    """A quantity as two groups of about the same size."""
    middle = float(np.median(column.values))
    names = np.where(column.values <= middle, f"up to {middle:g}", f"above {middle:g}")
    return MetadataColumn(column.name, column.rows, names, False, column.left_out)


def _classes(name: str, series: pd.Series[Any]) -> MetadataColumn:
    """The most frequent values are classes of their own; the others are one together, if that has enough examples."""
    texts = np.array(["" if _is_missing(value) else _text(value) for value in series], dtype=object)
    found, counts = np.unique(texts[texts != ""].astype(str), return_counts=True)
    ranked = [str(found[place]) for place in np.argsort(-counts, kind="stable")]
    of = dict(zip(found.tolist(), counts.tolist(), strict=True))
    frequent = [value for value in ranked if of[value] >= FEWEST_ROWS]
    kept = frequent if len(frequent) <= MOST_CLASSES else frequent[: MOST_CLASSES - 1]
    others = [value for value in ranked if value not in set(kept)]
    left_out, pooled = _missing(int((texts == "").sum())), ""
    if others and sum(of[value] for value in others) >= FEWEST_ROWS and kept:
        pool = _free_name(f"other ({len(others)} values)", kept)
        texts[np.isin(texts, others)] = pool
        pooled = f"{len(others):,} rarer values as {pool!r}: {_listed(others, of)}"
        kept = [*kept, pool]
    elif others:
        left_out.append(f"values with fewer than {FEWEST_ROWS} examples: {_listed(others, of)}")
    if len(kept) < 2:
        raise RunError(
            f"column {name!r} has {len(kept)} values that {FEWEST_ROWS} examples or more share, and two are needed: "
            "name another column"
        )
    rows = np.flatnonzero(np.isin(texts, kept))
    return MetadataColumn(name, rows, texts[rows].astype(str), False, left_out, pooled)


def _listed(values: list[str], of: dict[str, int]) -> str:
    return ", ".join(f"{value!r} ({of[value]})" for value in values[:MOST_LISTED]) + " …" * (len(values) > MOST_LISTED)


def _free_name(name: str, taken: list[str]) -> str:
    while name in taken:
        name += "*"
    return name


def _as_numbers(series: pd.Series[Any]) -> NDArray[np.float64] | None:
    import pandas as pd

    if pd.api.types.is_bool_dtype(series):
        return None
    numbers = pd.to_numeric(series.replace("", None), errors="coerce").to_numpy(np.float64)
    given = np.array([not _is_missing(value) for value in series])
    return None if np.isnan(numbers[given]).any() else numbers


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _is_missing(value: Any) -> bool:
    import pandas as pd

    return bool(pd.isna(value)) or (isinstance(value, str) and not value.strip())


def _missing(count: int) -> list[str]:
    return [f"{count:,} examples without a value"] if count else []
