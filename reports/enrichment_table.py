"""A table of labels that grows: rows by id, replaced as a whole, with the version before kept beside it.

What the columns mean (features with definitions, who labelled, which version) is kept inside the Parquet file, so that
one replacement changes all of it at once."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discovery import UNKNOWN, Labels
from reports.run import RunError, replace_file

if TYPE_CHECKING:
    import pyarrow as pa

TABLE, PREVIOUS = "labels.parquet", "labels.previous.parquet"
NOTE = b"twothirds"  # the key under which the file's metadata holds what the columns mean
OWN_COLUMNS = ("id", "digest", "version")
GROUP_ROWS = 65_536


@dataclass(frozen=True)
class Column:
    """One feature of the table. Rows labelled in version `since` or later were asked for it."""

    name: str
    definition: str
    since: int


@dataclass(frozen=True)
class Meaning:
    """What a table is about."""

    version: int = 0
    columns: tuple[Column, ...] = ()
    oracle: dict[str, Any] = field(default_factory=dict)
    votes: int = 1

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    def means_the_same_as(self, other: Meaning) -> bool:
        return replace(self, version=other.version) == other

    def column(self, name: str) -> Column | None:
        return next((column for column in self.columns if column.name == name), None)


class GrowingTable:
    """Rows are only added or overwritten. Labels are numbers of one byte, digests of 32: texts are never held."""

    def __init__(self, meaning: Meaning | None = None, ids: Sequence[str] = ()) -> None:
        self.meaning = meaning or Meaning()
        self.ids: list[str] = list(ids)
        self._row_of = {name: row for row, name in enumerate(self.ids)}
        self.digests = np.zeros((len(self.ids), 32), np.uint8)
        self.versions = np.zeros(len(self.ids), np.int32)
        self.labels = np.full((len(self.ids), len(self.meaning.columns)), UNKNOWN, np.int8)
        self._used = len(self.ids)
        self._by_digest: tuple[NDArray[np.uint64], NDArray[np.intp]] | None = None
        self._replaced: dict[str, tuple[Labels, int]] = {}  # contents that were overwritten, with labels and version

    def __len__(self) -> int:
        return self._used

    def row(self, name: str) -> int | None:
        return self._row_of.get(name)

    def digest(self, row: int) -> str:
        return bytes(self.digests[row]).hex()

    def row_with(self, digest: str) -> int | None:
        """A row of the version that was read whose content is this: under another name it is not new."""
        if self._by_digest is None:
            prefixes = np.ascontiguousarray(self.digests[: self._used, :8]).view(np.uint64).ravel()
            order = np.argsort(prefixes, kind="stable")
            self._by_digest = prefixes[order], order
        prefixes, order = self._by_digest
        wanted = bytes.fromhex(digest)
        place = int(np.searchsorted(prefixes, np.frombuffer(wanted[:8], np.uint64)[0]))
        while place < len(order) and self.digests[order[place], :8].tobytes() == wanted[:8]:
            if self.digests[order[place]].tobytes() == wanted:
                return int(order[place])
            place += 1
        return None

    def known_content(self, digest: str) -> tuple[Labels, int] | None:
        """The labels of a content that the version that was read has under any name, and in which version they were
        given: also where two files have swapped their names, and one of the rows is overwritten already."""
        row = self.row_with(digest)
        if row is None:
            return self._replaced.get(digest)
        return self.labels[row].copy(), int(self.versions[row])

    def column_labels(self, name: str) -> Labels:
        column: Labels = self.labels[: self._used, self.meaning.names.index(name)]
        return column

    def put(self, name: str, digest: str, version: int) -> int:
        """The row of this id, overwritten or new; its labels are unknown where its content is new."""
        row = self._row_of.get(name)
        if row is None:
            row = self._used
            self._grow()
            self.ids.append(name)
            self._row_of[name] = row
            self._used += 1
            self.labels[row] = UNKNOWN
        elif self.digest(row) != digest:
            self._replaced[self.digest(row)] = self.labels[row].copy(), int(self.versions[row])
            self.labels[row] = UNKNOWN
        self.digests[row] = np.frombuffer(bytes.fromhex(digest), np.uint8)
        self.versions[row] = version
        return row

    def define(self, meaning: Meaning) -> None:
        """Take over another meaning; columns that mean the same in both keep their labels."""
        labels = np.full((len(self.labels), len(meaning.columns)), UNKNOWN, np.int8)
        same_voter = (meaning.oracle, meaning.votes) == (self.meaning.oracle, self.meaning.votes)
        for place, column in enumerate(meaning.columns):
            old = self.meaning.column(column.name)
            if same_voter and old is not None and old.definition == column.definition:
                labels[:, place] = self.labels[:, self.meaning.names.index(column.name)]
        self.labels, self.meaning = labels, meaning

    def _grow(self) -> None:
        if self._used < len(self.versions):
            return
        more = max(1024, self._used // 4)
        self.digests = np.concatenate([self.digests, np.zeros((more, 32), np.uint8)])
        self.versions = np.concatenate([self.versions, np.zeros(more, np.int32)])
        self.labels = np.concatenate([self.labels, np.full((more, self.labels.shape[1]), UNKNOWN, np.int8)])


def read_table(folder: Path) -> GrowingTable:
    """The table in a folder, or an empty one."""
    path = folder / TABLE
    return read_file(path) if path.exists() else GrowingTable()


def table_version(folder: Path) -> int:
    """The version of the table in a folder; 0 where there is none, or none that can be read."""
    import pyarrow.parquet as pq

    try:
        return _meaning((pq.read_schema(folder / TABLE).metadata or {})[NOTE]).version
    except (OSError, KeyError, ValueError, TypeError):
        return 0


def read_file(path: Path) -> GrowingTable:
    """Row group by row group. Raises RunError for a file that enrich did not write."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            meaning = _meaning((file.schema_arrow.metadata or {})[NOTE])
            table = GrowingTable(meaning)
            parts = [_part(batch, meaning) for batch in file.iter_batches(GROUP_ROWS)]
    except (OSError, KeyError, ValueError, TypeError, pa.ArrowException) as error:
        reason = " ".join(str(error).split())
        raise RunError(
            f"{path} is not a table that enrich wrote ({reason}): move it away, or restore {PREVIOUS}"
        ) from None
    ids = [name for part in parts for name in part[0]]
    table = GrowingTable(meaning, ids)
    if parts:
        table.digests = np.concatenate([part[1] for part in parts])
        table.versions = np.concatenate([part[2] for part in parts])
        table.labels = np.concatenate([part[3] for part in parts])
    return table


def write_table(folder: Path, table: GrowingTable) -> None:
    """Replace the table at once; the one before stays as labels.previous.parquet."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / TABLE
    if path.exists():
        keep_previous(path, folder / PREVIOUS)
    replace_file(path, lambda file: write_file(file, table), binary=True)


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


def write_file(file: Any, table: GrowingTable, rows: Sequence[int] | None = None) -> None:
    import pyarrow.parquet as pq

    chosen = np.arange(len(table)) if rows is None else np.asarray(rows, np.intp)
    schema = _schema(table.meaning)
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for batch in _batches(table, chosen, schema):
            writer.write_batch(batch, row_group_size=GROUP_ROWS)


def _batches(table: GrowingTable, rows: NDArray[np.intp], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
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
        yield pa.record_batch(arrays, schema=schema)


def _schema(meaning: Meaning) -> pa.Schema:
    import pyarrow as pa

    own = [pa.field("id", pa.string()), pa.field("digest", pa.string()), pa.field("version", pa.int32())]
    features = [pa.field(column_name(name), pa.int8()) for name in meaning.names]
    return pa.schema([*own, *features], metadata={NOTE: json.dumps(asdict(meaning), ensure_ascii=False).encode()})


def column_name(feature: str) -> str:
    return f"{feature} (feature)" if feature in OWN_COLUMNS else feature


def _meaning(note: bytes) -> Meaning:
    said = json.loads(note)
    columns = tuple(Column(**column) for column in said["columns"])
    return replace(Meaning(**said), columns=columns)


def _part(batch: pa.RecordBatch, meaning: Meaning) -> tuple[list[str], NDArray[np.uint8], NDArray[np.int32], Labels]:
    import pyarrow as pa

    digests = np.frombuffer(bytes.fromhex("".join(batch.column("digest").to_pylist())), np.uint8).reshape(-1, 32)
    labels = np.empty((batch.num_rows, len(meaning.columns)), np.int8)
    for place, name in enumerate(meaning.names):
        column = batch.column(column_name(name)).fill_null(pa.scalar(UNKNOWN, pa.int8()))
        labels[:, place] = column.to_numpy(zero_copy_only=False)
    return batch.column("id").to_pylist(), digests, batch.column("version").to_numpy(), labels
