"""What each version of a table has changed, in files that are written once: for readers that load only what is new.

`history/version=N/rows.parquet` holds the rows that version N has written, and those it has dropped; the latest row of
each id, if it is not gone, is the table's. `provenance/version=N/cells.parquet` says of each label that version N has
given where it comes from, by the digest of the example. Types and names are those that DuckDB, Spark and pandas agree
on: nullable booleans, and columns that differ in more than case."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery import UNKNOWN
from twothirds.reports.label_table import LabelTable, Source
from twothirds.reports.run import replace_file
from twothirds.reports.versions.table import VersionedTable
from twothirds.reports.versions.table_file import GROUP_ROWS

ROWS, CELLS = ("history", "rows.parquet"), ("provenance", "cells.parquet")
GROWING = (ROWS[0], CELLS[0])  # folders whose files are never changed
COUNTS = b"twothirds"  # the key under which the metadata of ROWS says how many ids are gone, renamed or copies
CELL_ROWS = 8_192  # rows at a time: their digests fit a dictionary of Parquet
CELL_COLUMNS = ["id", "digest", "feature", "label", "source", "by", "probability", "run"]
DIGITS = 3  # of probabilities


@dataclass(frozen=True, eq=False)
class NewVersion:
    """What a version has changed. Without `rows` it has changed all of them. What people have corrected of these
    rows is told beside the labels. Rows that have `moved` to another id are gone from the old one; how many ids were
    `renamed` or are `copies` is for people who read the list of nights."""

    run: str | None
    rows: Sequence[int] | None
    labels: Sequence[LabelTable]  # that it has given
    gone: Sequence[tuple[str, str]] = ()  # id and digest
    predicted_by: str | None = None
    moved: Sequence[tuple[str, str]] = ()  # id and digest, as they were
    renamed: int = 0
    copies: int = 0


def write_history(folder: Path, table: VersionedTable, new: NewVersion) -> None:
    """Provenance first: whoever finds a row finds where its labels come from."""
    version = f"version={table.table_schema.version}"
    writers: dict[tuple[str, str], Callable[..., None]] = {CELLS: _write_cells, ROWS: _write_rows}
    for (name, file_name), write in writers.items():
        path = folder / name / version / file_name
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, partial(write, table=table, new=new), binary=True)


def _write_rows(file: Any, table: VersionedTable, new: NewVersion) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    own = [("id", pa.string()), ("digest", pa.string()), ("gone", pa.bool_())]
    counts = {"gone": len(new.gone), "renamed": new.renamed, "copies": new.copies}
    features = [(name, pa.bool_()) for name in table.table_schema.column_names]
    schema = pa.schema([*own, *features], metadata={COUNTS: json.dumps(counts)})
    rows = np.arange(len(table)) if new.rows is None else np.unique(np.asarray(new.rows, np.intp))
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for start in range(0, len(rows), GROUP_ROWS):
            part = table.table(rows[start : start + GROUP_ROWS])
            arrays = [pa.array(part.ids, pa.string()), pa.array(part.digests, pa.string())]
            arrays += [pa.array(np.zeros(len(part), np.bool_))]
            arrays += [pa.array(column == 1, mask=column == UNKNOWN) for column in part.value]
            writer.write_batch(pa.record_batch(arrays, schema=schema), row_group_size=GROUP_ROWS)
        if gone := [*new.moved, *new.gone]:
            ids, digests = zip(*gone, strict=True)
            empty = [pa.nulls(len(ids), pa.bool_()) for _ in table.table_schema.columns]
            arrays = [pa.array(ids), pa.array(digests), pa.array([True] * len(ids)), *empty]
            writer.write_batch(pa.record_batch(arrays, schema=schema))


def _write_cells(file: Any, table: VersionedTable, new: NewVersion) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    oracle, written = table.table_schema.oracle, None if new.rows is None else set(new.rows)
    asked_by = ":".join(str(oracle[key]) for key in ("kind", "model") if oracle.get(key))
    text = pa.dictionary(pa.int32(), pa.string())
    types = dict.fromkeys(("id", "digest", "feature", "source", "by", "run"), text)
    types |= {"label": pa.bool_(), "probability": pa.float32()}
    schema = pa.schema([(name, types[name]) for name in CELL_COLUMNS])

    column_of = dict(zip(table.table_schema.names, table.table_schema.column_names, strict=True))

    def write(labels: LabelTable, chosen: NDArray[np.bool_]) -> None:
        tidy = labels.tidy(chosen, [column_of[feature.name] for feature in labels.features])
        run = pa.array([new.run], pa.string()).take(pa.array(np.zeros(len(tidy), np.int32)))
        tidy = tidy.append_column("run", run).select(CELL_COLUMNS)
        writer.write_table(tidy.cast(schema))

    # Without Arrow's own schema every reader sees texts; that they are kept as dictionaries is the file's affair.
    with pq.ParquetWriter(file, schema, compression="zstd", store_schema=False) as writer:
        for labels in new.labels:
            predicted = labels.source == Source.PREDICTED
            given = replace(
                labels,
                who=predicted.astype(np.uint16),
                raters=[asked_by, new.predicted_by or ""],
                probability=labels.probability.round(DIGITS),
            )
            for start in range(0, len(given), CELL_ROWS):
                part = given.take(np.arange(start, min(start + CELL_ROWS, len(given))))
                write(part, (part.source == Source.ASKED) | (part.source == Source.PREDICTED))
        corrected = table.table([row for row in table.corrected_rows if written is None or row in written])
        write(corrected, corrected.source == Source.CORRECTED)
