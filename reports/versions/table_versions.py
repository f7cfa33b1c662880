"""What the files of a table tell of it: its columns now, and what each version has changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from twothirds.reports.analysis import Drift, Share, drift_of
from twothirds.reports.label_table import OWN_COLUMNS, SOURCES, Source
from twothirds.reports.run import JsonPart, RunError
from twothirds.reports.versions.history import CELLS, COUNTS, ROWS
from twothirds.reports.versions.table import Column
from twothirds.reports.versions.table_file import TABLE, read_table_schema

SUMMARY = "enrich.json"


class ListedTable(JsonPart):
    """What a list says of a table: the part of enrich.json that all versions of it have."""

    settings: dict[str, Any]
    oracle: dict[str, Any]
    version: int
    rows: int
    features: list[str]
    drift: list[dict[str, Any]]
    cost_usd: float
    unknown_usd: float = 0.0
    predicted_labels: int = 0
    corrected_labels: int = 0
    stopped_because: str
    message: str = ""
    finished_at: str
    warnings: list[str] = Field(default_factory=list)
    violations: list[str] = Field(default_factory=list)

    @classmethod
    def read(cls, folder: Path) -> ListedTable:
        """Raises RunError."""
        try:
            return cls.model_validate_json((folder / SUMMARY).read_bytes())
        except (OSError, ValueError, ValidationError):
            raise RunError(f"{folder / SUMMARY} cannot be read: enrich again, which replaces it") from None

    def drift_of(self, feature: str) -> dict[str, Any] | None:
        """As the last night has measured it."""
        return next((drift for drift in self.drift if drift.get("feature") == feature), None)


@dataclass(frozen=True)
class ColumnFigures:
    """The labels of one feature in the table as it is now."""

    column: Column
    share: Share
    rows: int
    predicted: int
    corrected: int

    @property
    def asked(self) -> int:
        return self.share.examples - self.predicted - self.corrected

    @property
    def missing(self) -> int:
        return self.rows - self.share.examples


@dataclass(frozen=True)
class TableVersion:
    """What one version has written. `drift` is its rows against those that the nights before wrote."""

    version: int
    written_at: float
    rows: int
    gone: int
    run: str | None
    renamed: int = 0
    copies: int = 0
    labels: dict[str, int] = field(default_factory=dict)  # by where they come from
    shares: dict[str, Share] = field(default_factory=dict)
    drift: tuple[Drift, ...] = ()

    @property
    def moved(self) -> list[Drift]:
        return [drift for drift in self.drift if drift.moved]


def column_figures(folder: Path) -> list[ColumnFigures]:
    """Of the table in a folder; raises RunError."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    table_schema = read_table_schema(folder)
    try:
        with pq.ParquetFile(folder / TABLE) as file:
            names, there = table_schema.column_names, set(file.schema_arrow.names)
            wanted = [name + end for name in names for end in ("", " (source)")]
            table = file.read([name for name in wanted if name in there])
            rows = file.metadata.num_rows
    except (OSError, pa.ArrowException) as error:
        raise RunError(f"{folder / TABLE} cannot be read ({' '.join(str(error).split())})") from None

    found = []
    for column, name in zip(table_schema.columns, names, strict=True):
        share = Share(int(pc.sum(table[name]).as_py() or 0), rows - table[name].null_count)
        sources = _counts(table[f"{name} (source)"]) if f"{name} (source)" in there else {}
        predicted, corrected = (sources.get(SOURCES[source], 0) for source in (Source.PREDICTED, Source.CORRECTED))
        found.append(ColumnFigures(column, share, rows, predicted=predicted, corrected=corrected))
    return found


def _counts(texts: Any) -> dict[str, int]:
    return {count["values"]: count["counts"] for count in texts.value_counts().to_pylist()}


def nights_of(folder: Path, known: dict[Path, TableVersion] | None = None) -> list[TableVersion]:
    """All versions of which there is a history, the first one first; one that cannot be read is left out. Files are
    written once: what `known` holds is not read again."""
    known = {} if known is None else known
    nights: list[TableVersion] = []
    before: dict[str, Share] = {}
    for version, path in _versions(folder):
        if path not in known:
            known[path] = _night(folder, version, path)
        night = known[path]
        names = [
            name for name in night.shares if before.get(name, Share(0, 0)).examples and night.shares[name].examples
        ]
        drift = drift_of(names, [before[name] for name in names], [night.shares[name] for name in names])
        nights.append(replace(night, drift=tuple(drift)))
        for name, share in night.shares.items():
            before[name] = before.get(name, Share(0, 0)) + share
    return nights


def _versions(folder: Path) -> Iterator[tuple[int, Path]]:
    found = []
    for path in (folder / ROWS[0]).glob(f"version=*/{ROWS[1]}"):
        number = path.parent.name.partition("=")[2]
        if number.isdecimal() and len(number) < 10:
            found.append((int(number), path))
    yield from sorted(found)


def _night(folder: Path, version: int, path: Path) -> TableVersion:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    written = path.stat().st_mtime
    try:
        with pq.ParquetFile(path) as file:
            names = [name for name in file.schema_arrow.names if name not in OWN_COLUMNS]
            table = file.read(["gone", *names])
            counts = json.loads(file.schema_arrow.metadata[COUNTS])
        labels, run = _sources(folder / CELLS[0] / path.parent.name / CELLS[1])
    except (OSError, KeyError, TypeError, ValueError, pa.ArrowException):
        return TableVersion(version, written, rows=0, gone=0, run=None)
    rows = table.num_rows - int(pc.sum(table["gone"]).as_py() or 0)
    shares = {
        name: Share(int(pc.sum(table[name]).as_py() or 0), table.num_rows - table[name].null_count) for name in names
    }
    return TableVersion(version, written, rows=rows, run=run, labels=labels, shares=shares, **counts)


def _sources(path: Path) -> tuple[dict[str, int], str | None]:
    """How many labels a version has given by where they come from, and in which run."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, read_dictionary=["source", "run"]) as file:
        cells = file.read(["source", "run"])
    counted = _counts(cells["source"])
    runs = [run for run in cells["run"].unique().to_pylist() if run is not None]
    return {name: counted.get(name, 0) for name in SOURCES.values()}, runs[0] if runs else None
