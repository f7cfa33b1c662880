"""What a discovery is aimed at: a column of the data set to predict, with examples held out to test what was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery import UNKNOWN, Labels
from twothirds.discovery.strategies import target_outputs
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.flows.errors import UsageError
from twothirds.reports.analysis import FEWEST_HELD_OUT, HeldOutScore, Target, held_out_rows, read_column, score_held_out
from twothirds.sources import Dataset, read_metadata


@dataclass(frozen=True, eq=False)
class DiscoveryTarget:
    """Of every example of the data set its value (a class by its position, or a number) and whether it is held out."""

    column: str
    classes: tuple[str, ...]  # none for numbers
    values: NDArray[np.intp] | NDArray[np.float64]
    known: NDArray[np.bool_]
    held_out: NDArray[np.bool_]

    def outputs(self, rows: Sequence[int]) -> NDArray[np.float64]:
        """What the strategy may know of the examples it compares: nothing of those held out."""
        chosen = np.array(rows, np.intp)
        hidden = ~self.known[chosen] | self.held_out[chosen]
        values = np.where(hidden, -1 if self.classes else np.nan, self.values[chosen])
        return target_outputs(values, len(self.classes))

    def score(self, labels: Sequence[Labels], found_after: Sequence[int], queries: int, seed: int) -> HeldOutScore:
        """`labels` of each feature for every example; examples of which no label is known take no part."""
        matrix = np.array(labels, np.float64).reshape(-1, len(self.values)).T
        matrix[matrix == UNKNOWN] = np.nan
        rows = np.flatnonzero(self.known & ~(np.isnan(matrix).all(axis=1) & (matrix.shape[1] > 0)))
        return score_held_out(
            matrix[rows],
            found_after,
            queries,
            Target(self.values[rows], self.classes),
            self.held_out[rows],
            seed,
        )


def read_target(settings: DiscoverSettings, dataset: Dataset) -> DiscoveryTarget | None:
    """The target of the settings, if there is one. Raises UsageError or RunError where it cannot be used."""
    if settings.target is None and settings.between is None:
        if settings.hold_out_by is not None:
            raise UsageError(f"--hold-out-by {settings.hold_out_by!r} needs a target: give --target or --between")
        return None
    if settings.target is not None and settings.between is not None:
        raise UsageError(f"--target {settings.target!r} and --between {settings.between!r} are two targets: give one")
    ids = [example.id for example in dataset.examples]
    name, wanted = settings.target or "", list[str]()
    if settings.between is not None:
        name, *wanted = _between(settings.between)
    column = read_column(dataset, name, ids)
    if wanted and (column.is_number or set(wanted) - set(map(str, column.values))):
        there = ", ".join(sorted({repr(str(value)) for value in column.values})[:12])
        raise UsageError(f"--between {settings.between!r} names a value that column {name!r} lacks: it has {there}")
    known = np.zeros(len(ids), np.bool_)
    values: NDArray[np.float64] | NDArray[np.intp]
    if column.is_number:
        classes: tuple[str, ...] = ()
        values = np.full(len(ids), np.nan)
        values[column.rows] = column.values
        known[column.rows] = True
    else:
        classes = tuple(wanted or sorted({str(value) for value in column.values}))
        places = {name: place for place, name in enumerate(classes)}
        values = np.full(len(ids), -1, np.intp)
        values[column.rows] = [places.get(str(value), -1) for value in column.values]
        known = values >= 0
    held_out = held_out_rows(ids, settings.seed, _split_by(settings, dataset, ids))
    target = DiscoveryTarget(name, classes, values, known, held_out)
    _check_split(target)
    return target


def _between(text: str) -> list[str]:
    name, _, values = text.partition("=")
    pair = [value.strip() for value in values.split(",")]
    if not name or len(pair) != 2 or not all(pair) or pair[0] == pair[1]:
        raise UsageError(f"--between {text!r} is not COLUMN=VALUE,VALUE: as in --between kind=cat,dog")
    return [name, *pair]


def _split_by(
    settings: DiscoverSettings, dataset: Dataset, ids: list[str]
) -> NDArray[np.str_] | NDArray[np.float64] | None:
    import pandas as pd

    if settings.hold_out_by is None:
        return None
    table = read_metadata(dataset)
    if settings.hold_out_by not in table.columns:
        there = ", ".join(map(repr, table.columns)) or "no further columns"
        raise UsageError(f"--hold-out-by: the data set has no column {settings.hold_out_by!r} (it has {there})")
    series = table[settings.hold_out_by].reindex(ids)
    filled = series.notna() & (series.astype(str).str.strip() != "")
    numbers = pd.to_numeric(series, errors="coerce")
    if numbers[filled].isna().any():
        numbers = pd.to_datetime(series.where(filled), errors="coerce", utc=True, format="ISO8601")
        numbers = numbers.astype("int64").where(numbers.notna()).astype("float64")
    if filled.any() and not numbers[filled].isna().any():
        return np.asarray(numbers, np.float64)
    return np.array([str(value) if there else name for name, value, there in zip(ids, series, filled, strict=True)])


def _check_split(target: DiscoveryTarget) -> None:
    """Both sides need examples, and of classes each of them."""
    for side, use, fewest in ((~target.held_out, "to learn from", 2), (target.held_out, "held out", FEWEST_HELD_OUT)):
        values = target.values[side & target.known]
        counts = [int((values == place).sum()) for place in range(len(target.classes))]
        lacking = [name for name, count in zip(target.classes, counts, strict=True) if not count]
        if len(values) < fewest or lacking:
            missing = f"none of {lacking[0]!r}" if lacking else f"{len(values)}"
            raise UsageError(
                f"target {target.column!r}: of the examples {use} there are {missing}: use a data set with more "
                "examples that have a value, or another --hold-out-by"
            )
