"""What lies beside runs in the folders that the studio serves: tables of enrichment, and comparisons of oracles."""

from __future__ import annotations

from reports.compare import COMPARISON_JSON, ListedComparison, read_listed
from reports.enrichment import SUMMARY, ListedTable
from reports.run import without_paths
from sources import name_of
from studio.runs.entries import ListEntry, Summaries
from studio.runs.shelf import STOPPED, Shelf, key_of


class TableEntry(ListEntry[ListedTable]):
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


class ComparisonEntry(ListEntry[ListedComparison]):
    @property
    def words(self) -> str:
        return f"{self.name} {self.summary.dataset} {' '.join(self.summary.oracles)}"


class Others:
    def __init__(self, shelf: Shelf) -> None:
        self._tables = Summaries(shelf.folders, SUMMARY, ListedTable.read)
        self._comparisons = Summaries(shelf.folders, COMPARISON_JSON, read_listed)

    def tables(self) -> list[TableEntry]:
        return [TableEntry(key_of(folder), folder, one) for folder, one in self._tables.latest_first()]

    def comparisons(self) -> list[ComparisonEntry]:
        return [ComparisonEntry(key_of(folder), folder, one) for folder, one in self._comparisons.latest_first()]

    def address_of(self, name: str) -> str | None:
        """Of the latest table or comparison in a folder of that name, as links from elsewhere name it."""
        tables = (f"/tables/{table.key}" for table in self.tables() if table.name == name)
        comparisons = (f"/comparisons/{comparison.key}" for comparison in self.comparisons() if comparison.name == name)
        return next(tables, next(comparisons, None))
