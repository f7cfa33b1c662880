"""What lies beside runs in the folders that the studio serves: tables of enrichment, and comparisons of oracles."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from reports.compare import COMPARISON_JSON, ListedComparison, read_listed
from reports.enrichment import SUMMARY, ListedTable
from reports.run import RunError, without_paths
from sources import name_of
from studio.runs.shelf import STOPPED, Shelf, key_of


class _Finished(Protocol):
    @property
    def finished_at(self) -> str: ...


Summary = TypeVar("Summary", bound=_Finished)


@dataclass(frozen=True)
class OtherEntry(Generic[Summary]):
    key: str
    folder: Path
    summary: Summary

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def when(self) -> str:
        return self.summary.finished_at[:16].replace("T", " ")


class TableEntry(OtherEntry[ListedTable]):
    @property
    def dataset(self) -> str:
        return name_of(str(self.summary.settings.get("dataset", "")))

    @property
    def oracle(self) -> str:
        said = self.summary.oracle
        return without_paths(":".join(str(said[part]) for part in ("kind", "model") if said.get(part)))

    @property
    def state(self) -> str:
        why = self.summary.stopped_because
        return "not as expected" if self.summary.violations else STOPPED.get(why, why)

    @property
    def words(self) -> str:
        return f"{self.name} {self.dataset} {self.oracle} {self.state}"


class ComparisonEntry(OtherEntry[ListedComparison]):
    @property
    def words(self) -> str:
        return f"{self.name} {self.summary.dataset} {' '.join(self.summary.oracles)}"


Entry = TypeVar("Entry", TableEntry, ComparisonEntry)


class _Listed(Generic[Summary]):
    """Folders that hold such a file, each read when it has changed."""

    def __init__(self, shelf: Shelf, holding: str, read: Callable[[Path], Summary]) -> None:
        self._shelf, self._holding, self._read = shelf, holding, read
        self._known: dict[Path, tuple[int, Summary]] = {}

    def all(self) -> list[tuple[str, Path, Summary]]:
        """The latest first; those that cannot be read are left out."""
        found = []
        for folder in self._shelf.folders(self._holding):
            with suppress(RunError, OSError):
                found.append((key_of(folder), folder, self._summary(folder)))
        return sorted(found, key=lambda one: one[2].finished_at, reverse=True)

    def _summary(self, folder: Path) -> Summary:
        written = (folder / self._holding).stat().st_mtime_ns
        known = self._known.get(folder)
        if known is None or known[0] != written:
            known = self._known[folder] = written, self._read(folder)
        return known[1]


class Others:
    def __init__(self, shelf: Shelf) -> None:
        self._tables = _Listed(shelf, SUMMARY, ListedTable.read)
        self._comparisons = _Listed(shelf, COMPARISON_JSON, read_listed)

    def tables(self) -> list[TableEntry]:
        return [TableEntry(*one) for one in self._tables.all()]

    def comparisons(self) -> list[ComparisonEntry]:
        return [ComparisonEntry(*one) for one in self._comparisons.all()]

    def address_of(self, name: str) -> str | None:
        """Of the latest table or comparison in a folder of that name, as links from elsewhere name it."""
        tables = (f"/tables/{one.key}" for one in self.tables() if one.name == name)
        comparisons = (f"/comparisons/{one.key}" for one in self.comparisons() if one.name == name)
        return next(tables, next(comparisons, None))


def matching(entries: list[Entry], words: str) -> list[Entry]:
    wanted = words.casefold().split()
    return [one for one in entries if all(word in one.words.casefold() for word in wanted)]
