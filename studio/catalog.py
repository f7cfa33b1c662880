"""The runs, tables and comparisons that the studio shows: found below its folders, read when they have changed, and
known by a short name."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from twothirds.discovery import FeatureTree
from twothirds.reports import Run
from twothirds.reports.analysis import map_places
from twothirds.reports.compare import COMPARISON_JSON, ListedComparison, read_listed
from twothirds.reports.page import card_example, dataset_of, outlined, related
from twothirds.reports.run import (
    LIVE,
    RUN_JSON,
    FoundFeature,
    LiveRun,
    RunError,
    RunSummary,
    replace_file,
    without_paths,
)
from twothirds.reports.versions import SUMMARY, ListedTable
from twothirds.sources import Dataset, Example, name_of
from twothirds.studio.config import VectorsOf
from twothirds.studio.web import ExampleTile

DEPTH = 3  # folders below a root in which runs are looked for
NAME_DIGITS = 12
OPEN_RUNS = 8
WATCHED = (RUN_JSON, "curation.jsonl", "corrections.jsonl", "labels.parquet")
ARCHIVED = "archived.json"
STOPPED = dict.fromkeys(("queries", "nothing-unresolved", "target-g", "nones", "repeats"), "done")


class _Finished(Protocol):
    @property
    def finished_at(self) -> str: ...


Summary = TypeVar("Summary", bound=_Finished)


@dataclass(frozen=True)
class ListEntry(Generic[Summary]):
    """One line of a list."""

    key: str
    folder: Path
    summary: Summary

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def when(self) -> str:
        return self.summary.finished_at[:16].replace("T", " ")

    @property
    def words(self) -> str:
        """What is searched."""
        return self.name

    def matches(self, words: str) -> bool:
        searched = self.words.casefold()
        return all(word in searched for word in words.casefold().split())


class Summaries(Generic[Summary]):
    """Of the folders that hold such a file, each read when that has changed."""

    def __init__(self, folders: Callable[[str], Iterable[Path]], holding: str, read: Callable[[Path], Summary]) -> None:
        self._folders, self._holding, self._read = folders, holding, read
        self._known: dict[Path, tuple[int, Summary]] = {}

    def latest_first(self) -> list[tuple[Path, Summary]]:
        """Those that cannot be read are left out."""
        found = []
        for folder in self._folders(self._holding):
            with suppress(RunError, OSError):
                found.append((folder, self._of(folder)))
        return sorted(found, key=lambda item: item[1].finished_at, reverse=True)

    def _of(self, folder: Path) -> Summary:
        written = (folder / self._holding).stat().st_mtime_ns
        known = self._known.get(folder)
        if known is None or known[0] != written:
            known = self._known[folder] = written, self._read(folder)
        return known[1]


@dataclass(frozen=True)
class RunEntry(ListEntry[RunSummary]):
    archived: bool

    @property
    def oracle(self) -> str:
        oracle = self.summary.oracle
        return without_paths(f"{oracle.kind}:{oracle.model}" if oracle.model else oracle.kind)

    @property
    def usd(self) -> float:
        return float(self.summary.total_usd)

    @property
    def state(self) -> str:
        return STOPPED.get(self.summary.stopped_because, self.summary.stopped_because)

    @property
    def words(self) -> str:
        return f"{self.name} {self.summary.dataset.name} {self.oracle} {self.state}"


class OpenRun:
    """A run with its examples, as its files are now. `before` is the same run as it was before an edit: what that has
    left alone, the data set and what was discovered, is not read again."""

    def __init__(self, key: str, folder: Path, before: OpenRun | None = None) -> None:
        self.key, self.folder, self.signature = key, folder, signature_of(folder)
        self._unedited: OpenRun | None = None
        self._map: NDArray[np.float64] | None = None
        if before is not None and before.as_discovered == self.as_discovered:
            self._unedited = before._unedited or before
        self.run: Run = Run(folder, self._unedited.run if self._unedited else None)

    @property
    def as_discovered(self) -> tuple[tuple[int, int], ...]:
        """Of the files that an edit leaves alone."""
        return self.signature[0], self.signature[-1]

    @cached_property
    def dataset(self) -> Dataset | None:
        return self._unedited.dataset if self._unedited else dataset_of(self.run.summary.settings, None)[0]

    @cached_property
    def examples(self) -> list[Example | None]:
        """In the order of the run's ids; None where the data set does not have it now."""
        by_id = {example.id: example for example in self.dataset.examples} if self.dataset else {}
        return [by_id.get(name) for name in self.run.findings.ids]

    @cached_property
    def rows(self) -> dict[str, int]:
        return {name: row for row, name in enumerate(self.run.findings.ids)}

    @cached_property
    def marks(self) -> list[tuple[bool, bool]]:
        return self.run.findings.marks

    @cached_property
    def outlines(self) -> list[dict[str, Any]]:
        """Of each feature what a list of them shows."""
        findings, rows = self.run.findings, self.rows
        return [outlined(findings, number, marks, rows, self.show) for number, marks in enumerate(self.marks)]

    def show(self, row: int, found: FoundFeature, contradicted: bool = False) -> ExampleTile:
        return card_example(self.run.findings, self.examples, self.places, row, found, contradicted, self.media)

    @property
    def media(self) -> str:
        return f"/runs/{self.key}/media/"

    @cached_property
    def places(self) -> dict[int, int]:
        return {row: row for row, example in enumerate(self.examples) if example is not None}

    @property
    def to_check(self) -> int:
        """How many labels are doubtful or contradict their own question."""
        return sum(outline["doubtful_labels"] for outline in self.outlines)

    @cached_property
    def correlations(self) -> NDArray[np.float64]:
        findings = self.run.findings
        return related(findings.matrix[:, findings.labelled])

    @cached_property
    def tree(self) -> FeatureTree:
        return self.run.findings.tree()

    def map_places(self, vectors_of: VectorsOf) -> NDArray[np.float64]:
        """The same after every edit, so that nobody loses sight of an example."""
        first = self._unedited or self
        if first._map is None:
            digests = [example.digest if example else "" for example in first.examples]
            first._map = map_places(first.run.findings.matrix, vectors_of(digests))
        return first._map

    @property
    def texts(self) -> list[str | None]:
        return [example.text if example else None for example in self.examples]

    @property
    def pictured(self) -> bool:
        return any(example is not None and example.image is not None for example in self.examples)

    @property
    def watched(self) -> bool:
        """Whether it says how it was started, so that it can go on."""
        return (self.folder / LIVE).is_file()

    @property
    def changes(self) -> int:
        """How many changes of features a page shows: what an edit is checked against."""
        return len(self.run.log)


@dataclass(frozen=True)
class UnfinishedRun:
    """A discovery that goes on or was interrupted, with how far it is."""

    key: str
    begun: dict[str, Any]
    state: str
    queries: int
    usd: float
    budget: float | None
    answer: str  # the latest one

    @classmethod
    def of(cls, key: str, live: LiveRun) -> UnfinishedRun:
        events, begun = live.events(), live.begun
        states = (event for event in reversed(events) if event["kind"] == "Progressed" and event["figures"])
        answers = (event for event in reversed(events) if event["kind"] == "AnswerReceived" and event["features"])
        last: dict[str, Any] = next(states, {})
        answer: dict[str, Any] = next(answers, {"features": []})
        people = str(begun.get("oracle", "")).startswith("human") and live.state == "running"
        return cls(
            key=key,
            begun=begun,
            state="waiting for people" if people else live.state,
            queries=int(last.get("done", 0)),
            usd=float(last.get("usd", 0.0)),
            budget=float(budget) if (budget := live.budget()) else None,
            answer=", ".join(str(feature[0]) for feature in answer["features"]),
        )


class RunCatalog:
    def __init__(self, roots: Sequence[Path]) -> None:
        self._roots = [root.resolve() for root in roots]
        self._summaries = Summaries(self.folders, RUN_JSON, RunSummary.read)
        self._open: LRUCache[str, OpenRun] = LRUCache(OPEN_RUNS)
        self._known: dict[str, Path] = {}
        self._lock = threading.Lock()

    def entries(self) -> list[RunEntry]:
        """All runs that can be read, the latest first."""
        found = self._summaries.latest_first()
        return [RunEntry(key_of(folder), folder, summary, (folder / ARCHIVED).exists()) for folder, summary in found]

    def unfinished(self, finished: Collection[str]) -> list[UnfinishedRun]:
        """Discoveries that go on, or whose run is not among the finished ones."""
        found = []
        for folder in self.folders(LIVE):
            with suppress(OSError, ValueError, KeyError):
                live = LiveRun(folder / LIVE)
                begun = live.begun
                if (begun["run_id"] not in finished or live.goes_on) and live.state != "ended":
                    found.append(UnfinishedRun.of(key_of(folder), live))
        return found

    def folder(self, key: str, *holding: str) -> Path | None:
        """The folder of a run, finished or not, that an address names; one that holds such a file."""
        wanted = holding or (RUN_JSON, LIVE)
        known = self._known.get(key)
        if known is not None and any((known / name).is_file() for name in wanted):
            return known
        folders = (folder for name in wanted for folder in self.folders(name))
        found = next((folder for folder in folders if key_of(folder) == key), None)
        if found is not None:
            self._known[key] = found
        return found

    def open(self, key: str) -> OpenRun | None:
        """None where no run below the roots has that name. Raises RunError where it cannot be read."""
        folder = self.folder(key, RUN_JSON)
        if folder is None:
            return None
        with self._lock:
            known = self._open.get(key)
            if known is None or known.signature != signature_of(folder):
                self._open[key] = known = OpenRun(key, folder, known)
        return known

    def archive(self, key: str, by: str, *, back: bool = False) -> None:
        run = self.open(key)
        if run is None:
            return
        if back:
            (run.folder / ARCHIVED).unlink(missing_ok=True)
            return
        mark = json.dumps({"by": by, "at": datetime.now(UTC).isoformat(timespec="seconds")}) + "\n"
        replace_file(run.folder / ARCHIVED, lambda file: file.write(mark))

    def folders(self, holding: str = RUN_JSON) -> Iterator[Path]:
        """Below the roots, those that hold such a file."""
        for root in self._roots:
            yield from _runs_below(root, DEPTH, holding)


class TableEntry(ListEntry[ListedTable]):
    @property
    def dataset(self) -> str:
        return name_of(str(self.summary.settings.get("dataset", "")))

    @property
    def oracle(self) -> str:
        oracle = self.summary.oracle
        return without_paths(":".join(str(oracle[part]) for part in ("kind", "model") if oracle.get(part)))

    @property
    def state(self) -> str:
        why = self.summary.stopped_because
        return "not as expected" if self.summary.violations else STOPPED.get(why, why)

    @property
    def words(self) -> str:
        return f"{self.name} {self.dataset} {self.oracle} {self.state}"


class ComparisonEntry(ListEntry[ListedComparison]):
    @property
    def words(self) -> str:
        return f"{self.name} {self.summary.dataset} {' '.join(self.summary.oracles)}"


class TableCatalog:
    """What lies beside runs in the folders that the studio serves: tables of enrichment, comparisons of oracles."""

    def __init__(self, run_catalog: RunCatalog) -> None:
        self._tables = Summaries(run_catalog.folders, SUMMARY, ListedTable.read)
        self._comparisons = Summaries(run_catalog.folders, COMPARISON_JSON, read_listed)

    def tables(self) -> list[TableEntry]:
        return [TableEntry(key_of(folder), folder, summary) for folder, summary in self._tables.latest_first()]

    def comparisons(self) -> list[ComparisonEntry]:
        return [
            ComparisonEntry(key_of(folder), folder, summary) for folder, summary in self._comparisons.latest_first()
        ]

    def address_of(self, name: str) -> str | None:
        """Of the latest table or comparison in a folder of that name, as links from elsewhere name it."""
        tables = (f"/tables/{table.key}" for table in self.tables() if table.name == name)
        comparisons = (f"/comparisons/{comparison.key}" for comparison in self.comparisons() if comparison.name == name)
        return next(tables, next(comparisons, None))


def _runs_below(folder: Path, depth: int, holding: str) -> Iterator[Path]:
    """Folders with such a file; controls that lie inside a run are part of it."""
    if (folder / holding).is_file():
        yield folder
        return
    if (folder / COMPARISON_JSON).is_file():  # its discoveries are part of it
        return
    if depth:
        with suppress(OSError):
            for entry in sorted(os.scandir(folder), key=lambda found: found.name):
                if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
                    yield from _runs_below(Path(entry.path), depth - 1, holding)


def key_of(folder: Path) -> str:
    """Of a folder, for addresses: nothing that an address says is taken for a path."""
    return hashlib.sha256(str(folder).encode("utf-8", "surrogateescape")).hexdigest()[:NAME_DIGITS]


def signature_of(folder: Path) -> tuple[tuple[int, int], ...]:
    """Differs as soon as one of the files does."""
    return tuple(_stat(folder / name) for name in WATCHED)


def _stat(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
        return found.st_mtime_ns, found.st_size
    except OSError:
        return 0, 0


SORTS: dict[str, Callable[[RunEntry], Any]] = {
    "when": lambda run: run.summary.finished_at,
    "name": lambda run: run.name.casefold(),
    "dataset": lambda run: run.summary.dataset.name.casefold(),
    "oracle": lambda run: run.oracle.casefold(),
    "features": lambda run: run.summary.interesting_distinct,
    "cost": lambda run: run.usd,
    "state": lambda run: run.state,
}
DOWN_FIRST = {"when", "features", "cost"}


def listed(entries: Sequence[RunEntry], words: str, sort: str, *, archived: bool) -> list[RunEntry]:
    wanted = [entry for entry in entries if entry.archived == archived and entry.matches(words)]
    sort = sort if sort in SORTS else "when"
    return sorted(wanted, key=SORTS[sort], reverse=sort in DOWN_FIRST)
