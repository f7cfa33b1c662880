"""What each version of a table has changed, in files that are written once: for readers that load only what is new.

`history/version=N/rows.parquet` holds the rows that version N has written, and those it has dropped; the latest row of
each id, if it is not gone, is the table's. `provenance/version=N/cells.parquet` says of each label that version N has
given where it comes from, by the digest of the example. Types and names are those that DuckDB, Spark and pandas agree
on: nullable booleans, and columns that differ in more than case."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery import UNKNOWN
from twothirds.reports.run import replace_file
from twothirds.reports.versions.table import LabelTable
from twothirds.reports.versions.table_file import GROUP_ROWS

if TYPE_CHECKING:
    import pyarrow as pa

ROWS, CELLS = ("history", "rows.parquet"), ("provenance", "cells.parquet")
GROWING = (ROWS[0], CELLS[0])  # folders whose files are never changed
COUNTS = b"twothirds"  # the key under which the metadata of ROWS says how many ids are gone, renamed or copies
OWN = ("id", "digest", "version", "gone")  # `version` is the name of the partition
SOURCES = ("asked", "predicted", "corrected")
CELL_ROWS = 8_192  # rows at a time: their digests fit a dictionary of Parquet
DIGITS = 3  # of probabilities


@dataclass(frozen=True, eq=False)
class Cells:
    """Labels that were given together: of these rows, of these columns, and how probable yes was, where known."""

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    chances: NDArray[np.float16] | None = None

    def where(self, kept: NDArray[np.bool_]) -> Cells:
        """Of these rows only."""
        return Cells(self.rows[kept], self.columns, None if self.chances is None else self.chances[kept])


@dataclass(frozen=True, eq=False)
class NewVersion:
    """What a version has changed. Without `rows` it has changed all of them. Rows that have `moved` to another id are
    gone from the old one; how many ids were `renamed` or are `copies` is for people who read the list of nights."""

    run: str | None
    rows: Sequence[int] | None
    cells: Sequence[Cells]
    gone: Sequence[tuple[str, str]] = ()  # id and digest
    predicted_by: str | None = None
    moved: Sequence[tuple[str, str]] = ()  # id and digest, as they were
    renamed: int = 0
    copies: int = 0


def write_history(folder: Path, table: LabelTable, new: NewVersion) -> None:
    """Provenance first: whoever finds a row finds where its labels come from."""
    version = f"version={table.table_schema.version}"
    writers: dict[tuple[str, str], Callable[..., None]] = {CELLS: _write_cells, ROWS: _write_rows}
    for (name, file_name), write in writers.items():
        path = folder / name / version / file_name
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, partial(write, table=table, new=new), binary=True)


def column_names(features: Sequence[str]) -> list[str]:
    """Of the history: no two are the same to a reader that does not apply case, nor one of its own."""
    taken, names = {name.casefold() for name in OWN}, []
    for feature in features:
        name, number = feature, 1
        while name.casefold() in taken:
            name = f"{feature} (feature)" if number == 1 else f"{feature} (feature {number})"
            number += 1
        taken.add(name.casefold())
        names.append(name)
    return names


def _write_rows(file: Any, table: LabelTable, new: NewVersion) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    own = [("id", pa.string()), ("digest", pa.string()), ("gone", pa.bool_())]
    counts = {"gone": len(new.gone), "renamed": new.renamed, "copies": new.copies}
    features = [(name, pa.bool_()) for name in column_names(table.table_schema.names)]
    schema = pa.schema([*own, *features], metadata={COUNTS: json.dumps(counts)})
    rows = np.arange(len(table)) if new.rows is None else np.unique(np.asarray(new.rows, np.intp))
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for start in range(0, len(rows), GROUP_ROWS):
            part = rows[start : start + GROUP_ROWS]
            arrays = [*_names(table, part), pa.array(np.zeros(len(part), np.bool_))]
            arrays += [pa.array(column == 1, mask=column == UNKNOWN) for column in table.labels[part].T]
            writer.write_batch(pa.record_batch(arrays, schema=schema), row_group_size=GROUP_ROWS)
        if gone := [*new.moved, *new.gone]:
            ids, digests = zip(*gone, strict=True)
            empty = [pa.nulls(len(ids), pa.bool_()) for _ in table.table_schema.columns]
            arrays = [pa.array(ids), pa.array(digests), pa.array([True] * len(ids)), *empty]
            writer.write_batch(pa.record_batch(arrays, schema=schema))


def _names(table: LabelTable, rows: NDArray[np.intp]) -> list[pa.Array]:
    import pyarrow as pa

    digests = [digest.tobytes().hex() for digest in table.digests[rows]]
    return [pa.array([table.ids[row] for row in rows.tolist()], pa.string()), pa.array(digests, pa.string())]


def _write_cells(file: Any, table: LabelTable, new: NewVersion) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    texts = ("id", "digest", "feature", "source", "by", "run")
    text = pa.dictionary(pa.int32(), pa.string())
    types = dict.fromkeys(texts, text) | {"label": pa.bool_(), "probability": pa.float32()}
    order = ("id", "digest", "feature", "label", "source", "by", "probability", "run")
    schema = pa.schema([(name, types[name]) for name in order])
    # Without Arrow's own schema every reader sees texts; that they are kept as dictionaries is the file's affair.
    with pq.ParquetWriter(file, schema, compression="zstd", store_schema=False) as writer:
        for cells in new.cells:
            for arrays in _batches(table, new, cells):
                writer.write_batch(pa.record_batch([arrays[name] for name in order], schema=schema))
        writer.write_batch(pa.record_batch([_corrected(table, new)[name] for name in order], schema=schema))


def _batches(table: LabelTable, new: NewVersion, cells: Cells) -> Iterator[dict[str, pa.Array]]:
    import pyarrow as pa

    names, oracle = [table.table_schema.names[column] for column in cells.columns.tolist()], table.table_schema.oracle
    asked_by = ":".join(str(oracle[key]) for key in ("kind", "model") if oracle.get(key))
    for start in range(0, len(cells.rows), CELL_ROWS):
        part = cells.rows[start : start + CELL_ROWS]
        labels, (since, chances) = table.labels[np.ix_(part, cells.columns)], table.predictions(part, cells.columns)
        if cells.chances is not None:
            chances = np.where(since > 0, chances, cells.chances[start : start + CELL_ROWS])
        else:
            chances = np.where(since > 0, chances, np.float16(np.nan))
        # A predicted label that the oracle did not replace was given by the version that predicted it.
        known = (labels != UNKNOWN) & ((since == 0) | (since == table.table_schema.version))
        for row, column, _ in table.corrections(set(part.tolist())):  # these are told apart
            known[part == row, cells.columns == column] = False
        at, of = (places.astype(np.int32) for places in np.nonzero(known))
        predicted, known_chances = (since > 0)[known], chances[known].astype(np.float32).round(DIGITS)
        ids, digests = _names(table, part)
        yield {
            "id": pa.DictionaryArray.from_arrays(at, ids),
            "digest": pa.DictionaryArray.from_arrays(at, digests),
            "feature": pa.DictionaryArray.from_arrays(of, pa.array(names, pa.string())),
            "label": pa.array(labels[known] == 1),
            "source": pa.DictionaryArray.from_arrays(predicted.astype(np.int32), pa.array(SOURCES)),
            "by": _chosen(predicted.astype(np.int32), [asked_by, new.predicted_by]),
            "probability": pa.array(known_chances, mask=np.isnan(known_chances)),
            "run": _chosen(np.zeros(len(at), np.int32), [new.run]),
        }


def _corrected(table: LabelTable, new: NewVersion) -> dict[str, pa.Array]:
    """The labels that people have given to the rows of a version."""
    import pyarrow as pa

    cells = table.corrections(None if new.rows is None else set(new.rows))
    ids, digests = _names(table, np.array([row for row, _, _ in cells], np.intp))
    texts = {
        "id": ids,
        "digest": digests,
        "feature": pa.array([cell.feature for _, _, cell in cells], pa.string()),
        "source": pa.array([SOURCES[2]] * len(cells), pa.string()),
        "by": pa.array([cell.by for _, _, cell in cells], pa.string()),
        "run": pa.array([new.run] * len(cells), pa.string()),
    }
    return {name: array.dictionary_encode() for name, array in texts.items()} | {
        "label": pa.array([cell.label == 1 for _, _, cell in cells], pa.bool_()),
        "probability": pa.nulls(len(cells), pa.float32()),
    }


def _chosen(places: NDArray[np.int32], texts: Sequence[str | None]) -> pa.DictionaryArray:
    """One of the texts for each; null where that is None."""
    import pyarrow as pa

    missing = np.isin(places, [place for place, text in enumerate(texts) if text is None])
    indices = pa.array(places, pa.int32(), mask=missing)
    return pa.DictionaryArray.from_arrays(indices, pa.array([text or "" for text in texts], pa.string()))
