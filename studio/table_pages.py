"""One table of enrichment: what its columns hold and where their labels come from, and every night of it."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cachetools import LRUCache
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from reports.drawing import share_bar
from reports.enrichment import SUMMARY, ColumnFigures, ListedTable, TableVersion, column_figures, nights_of
from reports.run import RUN_JSON, RunError
from sources import name_of
from store import Cost
from studio.catalog import key_of
from studio.pages import Key, Studio, StudioPages, for_staff
from studio.review import Visitor

MICRO = 1_000_000
OPEN_TABLES = 8
MOST_NIGHTS = 120  # shown, the latest ones
ENRICH, CONTRACT = "enrich", "contract"


@dataclass(frozen=True)
class ShownVersion:
    """A version of the table, or a run that has left it as it was."""

    at: float
    night: TableVersion | None
    state: str
    usd: float | None  # None where the store does not know the run
    unknown_usd: float = 0.0

    @property
    def when(self) -> str:
        return datetime.fromtimestamp(self.at, UTC).strftime("%Y-%m-%d %H:%M")


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
        costs, states = self._config.costs(), self._config.states()
        nights = shown_nights(versions, runs_of_table(folder, states), costs)
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


def runs_of_table(folder: Path, states: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The enrichments in the store that have written here, or tried to."""
    found = []
    for state in states:
        settings = state.get("settings") or {}
        if state.get("flow") == ENRICH and isinstance(settings, dict):
            out = settings.get("out") or f"enriched/{name_of(str(settings.get('dataset', '')))}"
            if "://" not in str(out) and Path(str(out)).resolve() == folder:
                found.append(state)
    return found


def shown_nights(
    versions: Sequence[TableVersion], states: Sequence[Mapping[str, Any]], costs: Sequence[Cost]
) -> list[ShownVersion]:
    """The latest first. Runs that left no version are nights too: nothing was new, or the table was refused."""
    paid: dict[str, list[float]] = {}
    for line in costs:
        sums = paid.setdefault(line.run_id, [0.0, 0.0])
        sums[0] += line.paid / MICRO
        sums[1] += line.unknown / MICRO
    by_run = {str(state["run_id"]): state for state in states}
    nights = []
    for night in versions:
        state = by_run.pop(night.run or "", None)
        usd, unknown = paid.get(night.run or "", [0.0, 0.0])
        known = state is not None or night.run in paid
        word = str(state["status"]) if state else "done"
        nights.append(ShownVersion(night.written_at, night, word, usd if known else None, unknown))
    for run_id, state in by_run.items():
        usd, unknown = paid.get(run_id, [0.0, 0.0])
        word = "not as expected" if state["status"] == CONTRACT else str(state["status"])
        nights.append(ShownVersion(float(state.get("ended_at") or state["started_at"]), None, word, usd, unknown))
    return sorted(nights, key=lambda night: night.at, reverse=True)
