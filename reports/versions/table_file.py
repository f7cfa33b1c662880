"""The file of a table: replaced as a whole, with the version before kept beside it.

What the columns mean (features with definitions, who labelled, which version) is kept inside the Parquet file, so that
one replacement changes all of it at once."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery import UNKNOWN, Labels
from twothirds.reports.run import RunError, replace_file
from twothirds.reports.versions.table import PREDICTED, Column, CorrectedCell, LabelTable, TableSchema

if TYPE_CHECKING:
    import pyarrow as pa

TABLE, PREVIOUS, REFUSED = "labels.parquet", "labels.previous.parquet", "labels.refused.parquet"
NOTE = b"twothirds"  # the key under which the file's metadata holds what the columns mean
OWN_COLUMNS = ("id", "digest", "version")
GROUP_ROWS = 65_536
# of the columns that say which labels of a feature were predicted, and by whom labels were corrected
CHANCE, VERSION, CORRECTOR = " (probability)", " (predicted in)", " (corrected by)"


def read_table(folder: Path) -> LabelTable:
    """The table in a folder, or an empty one."""
    path = folder / TABLE
    return read_file(path) if path.exists() else LabelTable()


def table_version(folder: Path) -> int:
    """The version of the table in a folder; 0 where there is none, or none that can be read."""
    try:
        return read_table_schema(folder).version
    except RunError:
        return 0


def read_table_schema(folder: Path) -> TableSchema:
    """What the columns of the table in a folder mean, without its rows. Raises RunError."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return _meaning((pq.read_schema(folder / TABLE).metadata or {})[NOTE])
    except (OSError, KeyError, ValueError, TypeError, pa.ArrowException):
        raise RunError(f"{folder / TABLE} is not a table that enrich wrote: enrich again") from None


def read_file(path: Path) -> LabelTable:
    """Row group by row group. Raises RunError for a file that enrich did not write."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            table_schema = _meaning((file.schema_arrow.metadata or {})[NOTE])
            groups = [_part(batch, table_schema) for batch in file.iter_batches(GROUP_ROWS)]
    except (OSError, KeyError, ValueError, TypeError, pa.ArrowException) as error:
        reason = " ".join(str(error).split())
        raise RunError(
            f"{path} is not a table that enrich wrote ({reason}): move it away, or restore {PREVIOUS}"
        ) from None
    ids = [name for group in groups for name in group[0]]
    table = LabelTable(table_schema, ids)
    if groups:
        table.digests = np.concatenate([group[1] for group in groups])
        table.versions = np.concatenate([group[2] for group in groups])
        table.labels = np.concatenate([group[3] for group in groups])
        if any(group[4] is not None for group in groups):
            marks = [np.zeros(group[3].shape, PREDICTED) if group[4] is None else group[4] for group in groups]
            table.use_marks(np.concatenate(marks))
    return table


def write_table(folder: Path, table: LabelTable) -> None:
    """Replace the table at once; the one before stays as labels.previous.parquet."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / TABLE
    if path.exists():
        keep_previous(path, folder / PREVIOUS)
    replace_file(path, lambda file: write_file(file, table), binary=True)


def previous_rows(folder: Path) -> list[tuple[str, str]]:
    """The ids and digests of the table before the one that is there; none where that cannot be read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        rows = pq.read_table(folder / PREVIOUS, columns=["id", "digest"])
    except (OSError, pa.ArrowException):
        return []
    return list(zip(*(rows.column(name).to_pylist() for name in ("id", "digest")), strict=True))


def write_refused(folder: Path, table: LabelTable) -> None:
    """A table that must not replace the one that is there, for people to look at."""
    replace_file(folder / REFUSED, lambda file: write_file(file, table), binary=True)


def keep_previous(path: Path, previous: Path) -> None:
    """A second name for the same file, so that there is always a table."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{previous.name}.")
    os.close(handle)
    os.unlink(name)
    try:
        os.link(path, name)
    except OSError:  # a file system without hard links
        Path(name).write_bytes(path.read_bytes())
    os.replace(name, previous)


def write_file(file: Any, table: LabelTable, rows: Sequence[int] | None = None) -> None:
    import pyarrow.parquet as pq

    chosen = np.arange(len(table)) if rows is None else np.asarray(rows, np.intp)
    marked = [column for column in range(len(table.table_schema.columns)) if table.marks(column) is not None]
    corrected = {column: by for column in range(len(table.table_schema.columns)) if (by := table.correctors(column))}
    schema = _schema(table.table_schema, marked, list(corrected))
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for batch in _batches(table, chosen, schema, marked, list(corrected.values())):
            writer.write_batch(batch, row_group_size=GROUP_ROWS)


def _batches(
    table: LabelTable,
    rows: NDArray[np.intp],
    schema: pa.Schema,
    marked: Sequence[int],
    correctors: Sequence[Mapping[int, str]],
) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    for start in range(0, len(rows), GROUP_ROWS):
        part = rows[start : start + GROUP_ROWS]
        labels = table.labels[part]
        arrays = [
            pa.array([table.ids[row] for row in part.tolist()], pa.string()),
            pa.array([digest.tobytes().hex() for digest in table.digests[part]], pa.string()),
            pa.array(table.versions[part], pa.int32()),
            *(pa.array(column, pa.int8(), mask=column == UNKNOWN) for column in labels.T),
        ]
        for column in marked:
            marks = table.marks(column)
            if marks is not None:
                asked = marks["version"][part] == 0
                arrays.append(pa.array(marks["chance"][part].astype(np.float32), pa.float32(), mask=asked))
                arrays.append(pa.array(marks["version"][part], pa.int32(), mask=asked))
        arrays += [pa.array([by.get(row) for row in part.tolist()], pa.string()) for by in correctors]
        yield pa.record_batch(arrays, schema=schema)


def _schema(table_schema: TableSchema, marked: Sequence[int], corrected: Sequence[int]) -> pa.Schema:
    import pyarrow as pa

    own = [pa.field("id", pa.string()), pa.field("digest", pa.string()), pa.field("version", pa.int32())]
    features = [pa.field(column_name(name), pa.int8()) for name in table_schema.names]
    for column in marked:
        name = column_name(table_schema.names[column])
        features += [pa.field(name + CHANCE, pa.float32()), pa.field(name + VERSION, pa.int32())]
    features += [pa.field(column_name(table_schema.names[column]) + CORRECTOR, pa.string()) for column in corrected]
    return pa.schema([*own, *features], metadata={NOTE: json.dumps(asdict(table_schema), ensure_ascii=False).encode()})


def column_name(feature: str) -> str:
    return f"{feature} (feature)" if feature in OWN_COLUMNS else feature


def _meaning(note: bytes) -> TableSchema:
    schema = json.loads(note)
    columns = tuple(Column(**column) for column in schema["columns"])
    certificates = tuple(schema.get("certificates", ()))
    corrections = tuple(CorrectedCell(**cell) for cell in schema.get("corrections", ()))
    return replace(TableSchema(**schema), columns=columns, certificates=certificates, corrections=corrections)


_Part = tuple[list[str], NDArray[np.uint8], NDArray[np.int32], Labels, "NDArray[np.void] | None"]


def _part(batch: pa.RecordBatch, table_schema: TableSchema) -> _Part:
    import pyarrow as pa

    digests = np.frombuffer(bytes.fromhex("".join(batch.column("digest").to_pylist())), np.uint8).reshape(-1, 32)
    labels = np.empty((batch.num_rows, len(table_schema.columns)), np.int8)
    for place, name in enumerate(table_schema.names):
        column = batch.column(column_name(name)).fill_null(pa.scalar(UNKNOWN, pa.int8()))
        labels[:, place] = column.to_numpy(zero_copy_only=False)
    return (
        batch.column("id").to_pylist(),
        digests,
        batch.column("version").to_numpy(),
        labels,
        _marks(batch, table_schema),
    )


def _marks(batch: pa.RecordBatch, table_schema: TableSchema) -> NDArray[np.void] | None:
    names = [column_name(name) for name in table_schema.names]
    marked = [place for place, name in enumerate(names) if name + VERSION in batch.schema.names]
    if not marked:
        return None
    marks = np.zeros((batch.num_rows, len(names)), PREDICTED)
    for place in marked:
        marks["version"][:, place] = batch.column(names[place] + VERSION).fill_null(0).to_numpy(zero_copy_only=False)
        marks["chance"][:, place] = batch.column(names[place] + CHANCE).fill_null(0.0).to_numpy(zero_copy_only=False)
    return marks
