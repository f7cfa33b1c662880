"""One table of enrichment: what its columns hold and where their labels come from, and every night of it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cachetools import LRUCache
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from twothirds.reports.run import RUN_JSON, RunError
from twothirds.reports.versions import SUMMARY, ColumnFigures, ListedTable, TableVersion, column_figures, nights_of
from twothirds.store import Night
from twothirds.studio.catalog import key_of
from twothirds.studio.pages import Key, Studio, StudioPages, for_staff
from twothirds.studio.review import Visitor
from twothirds.studio.web import share_bar

MICRO = 1_000_000
OPEN_TABLES = 8
MOST_NIGHTS = 120  # shown, the latest ones
ENRICH = "enrich"


@dataclass(frozen=True)
class ShownNight:
    """A version of the table, or a run that has left it as it was. `run` is None where the store does not know it."""

    at: float
    version: TableVersion | None
    run: Night | None

    @property
    def when(self) -> str:
        return datetime.fromtimestamp(self.at, UTC).strftime("%Y-%m-%d %H:%M")

    @property
    def usd(self) -> float | None:
        return None if self.run is None else self.run.paid / MICRO


class TablePages(StudioPages):
    def __init__(self, studio: Studio) -> None:
        super().__init__(studio)
        self._columns: LRUCache[Path, tuple[tuple[int, int], list[ColumnFigures]]] = LRUCache(OPEN_TABLES)
        self._nights: dict[Path, TableVersion] = {}
        self._lock = threading.Lock()

    @for_staff("GET /tables/{key}")
    def table(self, visitor: Visitor, key: Key) -> Response:
        folder = self._run_catalog.folder(key, SUMMARY)
        entry = next((table for table in self._others.tables() if table.key == key), None) if folder else None
        if folder is None or entry is None:
            raise HTTPException(404)
        try:
            columns = self._figures(folder)
        except RunError:  # a first night that was refused, or waits, has left no table
            columns = []
        with self._lock:
            versions = nights_of(folder, self._nights)
        nights = shown_nights(folder.resolve(), versions, self._config.nights())
        return self.render(
            "table.html",
            visitor,
            entry=entry,
            columns=columns,
            bars=[
                share_bar(column.share.positives, column.share.examples - column.share.positives, column.missing)
                for column in columns
            ],
            nights=nights[:MOST_NIGHTS],
            total_nights=len(nights),
            usd=sum(night.usd or 0.0 for night in nights) or entry.summary.cost_usd,
            source=self._source(entry.summary),
        )

    def _figures(self, folder: Path) -> list[ColumnFigures]:
        found = (folder / "labels.parquet").stat() if (folder / "labels.parquet").exists() else None
        signature = (found.st_mtime_ns, found.st_size) if found else (0, 0)
        known = self._columns.get(folder)
        if known is None or known[0] != signature:
            known = self._columns[folder] = signature, column_figures(folder)
        return known[1]

    def _source(self, summary: ListedTable) -> tuple[str, str]:
        """Of the run whose features these are: its name, and its key if it is served here."""
        given = str(summary.settings.get("features", ""))
        if not given or not (Path(given) / RUN_JSON).is_file():
            return "", ""
        key = key_of(Path(given).resolve())
        return Path(given).name, key if self._run_catalog.folder(key, RUN_JSON) is not None else ""


def shown_nights(folder: Path, versions: Sequence[TableVersion], runs: Sequence[Night]) -> list[ShownNight]:
    """The latest first. Runs that left no version are nights too: nothing was new, or the table was refused."""
    by_run = {run.run_id: run for run in runs if run.flow == ENRICH and run.job == str(folder)}
    nights = [ShownNight(version.written_at, version, by_run.pop(version.run or "", None)) for version in versions]
    nights += [ShownNight(run.ended_at or run.started_at, None, run) for run in by_run.values()]
    return sorted(nights, key=lambda night: night.at, reverse=True)
