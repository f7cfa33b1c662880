"""The file of a table: replaced as a whole, with the version before kept beside it.

What the columns mean (features with definitions, who labelled, which version) is kept inside the Parquet file, so that
one replacement changes all of it at once."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from twothirds.reports.label_table import LabelTable
from twothirds.reports.run import RunError, replace_file
from twothirds.reports.versions.table import Column, CorrectedCell, TableSchema, VersionedTable

TABLE, PREVIOUS, REFUSED = "labels.parquet", "labels.previous.parquet", "labels.refused.parquet"
NOTE = b"twothirds"  # the key under which the file's metadata holds what the columns mean
GROUP_ROWS = 65_536


def read_table(folder: Path) -> VersionedTable:
    """The table in a folder, or an empty one."""
    path = folder / TABLE
    return read_file(path) if path.exists() else VersionedTable()


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


def read_file(path: Path) -> VersionedTable:
    """Row group by row group. Raises RunError for a file that enrich did not write."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            table_schema = _meaning((file.schema_arrow.metadata or {})[NOTE])
            batches = [pa.Table.from_batches([batch]) for batch in file.iter_batches(GROUP_ROWS)]
            batches = batches or [file.schema_arrow.empty_table()]
            labels = LabelTable.concat([LabelTable.from_arrow(batch) for batch in batches])
            versions = np.concatenate([batch["version"].to_numpy() for batch in batches])
        table = VersionedTable(table_schema, labels.ids)
        if [feature.name for feature in labels.features] != table_schema.names:
            raise ValueError("its columns are others than its schema names")
        digests = np.frombuffer(bytes.fromhex("".join(labels.digests)), np.uint8)
        table.digests, table.versions = digests.reshape(-1, 32).copy(), versions
        table.load(labels)
        return table
    except (OSError, KeyError, ValueError, TypeError, pa.ArrowException) as error:
        reason = " ".join(str(error).split())
        raise RunError(
            f"{path} is not a table that enrich wrote ({reason}): move it away, or restore {PREVIOUS}"
        ) from None


def write_table(folder: Path, table: VersionedTable) -> None:
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


def write_refused(folder: Path, table: VersionedTable) -> None:
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


def write_file(file: Any, table: VersionedTable) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    note, beside = json.dumps(asdict(table.table_schema), ensure_ascii=False).encode(), table.known_beside
    writer = None
    for start in range(0, max(len(table), 1), GROUP_ROWS):
        rows = np.arange(start, min(start + GROUP_ROWS, len(table)))
        group = table.table(rows).to_arrow(beside)
        group = group.add_column(2, "version", pa.array(table.versions[rows], pa.int32()))
        group = group.replace_schema_metadata({**group.schema.metadata, NOTE: note})
        writer = writer or pq.ParquetWriter(file, group.schema, compression="zstd")
        writer.write_table(group, row_group_size=GROUP_ROWS)
    if writer is not None:
        writer.close()


def _meaning(note: bytes) -> TableSchema:
    schema = json.loads(note)
    columns = tuple(Column(**column) for column in schema["columns"])
    certificates = tuple(schema.get("certificates", ()))
    corrections = tuple(CorrectedCell(**cell) for cell in schema.get("corrections", ()))
    return replace(TableSchema(**schema), columns=columns, certificates=certificates, corrections=corrections)
