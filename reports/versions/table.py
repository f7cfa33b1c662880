"""A table of labels that grows: rows by id, what its columns mean, which labels were predicted or corrected."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery import UNKNOWN, Labels
from twothirds.reports.column_names import column_names
from twothirds.reports.label_table import OWN_COLUMNS, LabelledFeature, LabelTable, Source

Chances = NDArray[np.float16]  # of yes where a label is predicted, else NaN

Kind = TypeVar("Kind", bound=np.generic)


@dataclass(frozen=True)
class Column:
    """One feature of the table. Rows labelled in version `since` or later were asked for it."""

    name: str
    definition: str
    since: int


@dataclass(frozen=True)
class CorrectedCell:
    """A person's label of a content, which nothing overwrites; None takes back an earlier one."""

    feature: str
    digest: str
    label: int | None
    by: str
    at: str


@dataclass(frozen=True)
class TableSchema:
    """What a table is about."""

    version: int = 0
    columns: tuple[Column, ...] = ()
    oracle: dict[str, Any] = field(default_factory=dict)
    votes: int = 1
    certificates: tuple[dict[str, Any], ...] = ()  # of predicted labels, by feature and version
    corrections: tuple[CorrectedCell, ...] = ()

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    @property
    def column_names(self) -> list[str]:
        """In files."""
        return column_names([(column.name, column.definition) for column in self.columns], OWN_COLUMNS)

    def means_the_same_as(self, other: TableSchema) -> bool:
        return replace(self, version=other.version, certificates=other.certificates) == other

    def keeps_labels_of(self, before: TableSchema) -> bool:
        """Whether all columns of an earlier schema are here and mean the same."""
        same_voter = (self.oracle, self.votes) == (before.oracle, before.votes) or not before.columns
        definitions = {column.name: column.definition for column in self.columns}
        return same_voter and all(definitions.get(column.name) == column.definition for column in before.columns)

    def column(self, name: str) -> Column | None:
        return next((column for column in self.columns if column.name == name), None)


@dataclass(frozen=True, eq=False)
class KnownRow:
    labels: Labels
    version: int
    chances: Chances | None


class VersionedTable:
    """Labels while a table grows: rows are only added or overwritten. Labels are numbers of one byte, digests of 32:
    texts are never held. `table` shows rows as every other program reads them."""

    def __init__(self, table_schema: TableSchema | None = None, ids: Sequence[str] = ()) -> None:
        self.table_schema = table_schema or TableSchema()
        self.ids: list[str] = list(ids)
        self._row_of = {name: row for row, name in enumerate(self.ids)}
        self.digests = np.zeros((len(self.ids), 32), np.uint8)
        self.versions = np.zeros(len(self.ids), np.int32)
        self.labels = np.full((len(self.ids), len(self.table_schema.columns)), UNKNOWN, np.int8)
        self._used = len(self.ids)
        self._by_digest: tuple[NDArray[np.uint64], NDArray[np.intp]] | None = None
        self._chances: Chances | None = None  # made when a label is predicted
        self._replaced: dict[str, KnownRow] = {}  # contents that were overwritten
        self._corrections = _by_digest(self.table_schema)

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

    def known_content(self, digest: str) -> KnownRow | None:
        """The labels of a content that the version that was read has under any name, and in which version they were
        given: also where two files have swapped their names, and one of the rows is overwritten already."""
        row = self.row_with(digest)
        if row is None:
            return self._replaced.get(digest)
        return self._copied(row)

    def _copied(self, row: int) -> KnownRow:
        chances = None if self._chances is None else self._chances[row].copy()
        return KnownRow(self.labels[row].copy(), int(self.versions[row]), chances)

    def restore(self, row: int, known: KnownRow) -> None:
        """The labels of the same content under another name, and where they come from."""
        self.labels[row] = known.labels
        if known.chances is not None:
            self._made_chances()[row] = known.chances
        self._apply_corrections(row)

    def correct(self, cells: Iterable[CorrectedCell]) -> None:
        """Take over corrections, the latest of a label last; where one is taken back the label is unknown."""
        final = {(cell.feature, cell.digest): cell for cell in cells}
        kept = {(correction.feature, correction.digest): correction for correction in self.table_schema.corrections}
        taken_back = [cell for key, cell in kept.items() if key in final and final[key].label is None]
        kept = {key: cell for key, cell in (kept | final).items() if cell.label is not None}
        undone = _by_digest(replace(self.table_schema, corrections=tuple(taken_back)))
        for row in self._rows_with(undone):
            self.labels[row, list(undone[self.digest(row)])] = UNKNOWN
        self.table_schema = replace(self.table_schema, corrections=tuple(kept.values()))
        self._use_corrections()

    def corrected_columns(self, digest: str) -> Collection[int]:
        """The columns that people have corrected for a content: they are not asked."""
        return self._corrections.get(digest, {}).keys()

    @property
    def corrected_count(self) -> int:
        return sum(len(self._corrections[self.digest(row)]) for row in self._rows_with(self._corrections))

    @property
    def corrected_rows(self) -> list[int]:
        return self._rows_with(self._corrections)

    def table(self, rows: Sequence[int] | NDArray[np.intp] | None = None) -> LabelTable:
        """All rows, or these, with what is known of each label."""
        chosen = np.arange(len(self)) if rows is None else np.asarray(rows, np.intp)
        value = self.labels[chosen].T
        chances = None if self._chances is None else self._chances[chosen].T
        source = np.where(value == UNKNOWN, Source.NONE, Source.ASKED).astype(np.uint8)
        if chances is not None:
            source[~np.isnan(chances)] = Source.PREDICTED
        who, raters = np.broadcast_to(np.uint16(0), value.shape), [""]
        digests = [digest.tobytes().hex() for digest in self.digests[chosen]]
        if self._corrections:
            who = np.zeros(value.shape, np.uint16)
            for place, digest in enumerate(digests):
                for column, cell in self._corrections.get(digest, {}).items():
                    raters += [] if cell.by in raters else [cell.by]
                    source[column, place], who[column, place] = Source.CORRECTED, raters.index(cell.by)
        return LabelTable.of(
            [self.ids[row] for row in chosen.tolist()],
            digests,
            [LabelledFeature(column.name, column.definition) for column in self.table_schema.columns],
            value,
            source=source,
            probability=chances,
            who=who,
            raters=raters,
        )

    @property
    def known_beside(self) -> set[tuple[int, str]]:
        """What files hold of labels beside their values: see `LabelTable.to_arrow`."""
        predicted, corrected = (
            set[int](),
            {at for row in self.corrected_rows for at in self._corrections[self.digest(row)]},
        )
        if self._chances is not None:
            predicted = set(np.flatnonzero((~np.isnan(self._chances[: self._used])).any(axis=0)).tolist())
        return {
            *((column, "source") for column in predicted | corrected),
            *((column, "probability") for column in predicted),
            *((column, "by") for column in corrected),
        }

    def load(self, table: LabelTable) -> None:
        """Take over the labels of all rows, as a file has them; corrections are the schema's."""
        self.labels = np.ascontiguousarray(table.value.T)
        predicted = table.source.T == Source.PREDICTED
        if predicted.any():
            self._chances = np.where(predicted, table.probability.T, np.nan).astype(np.float16)

    def rows_corrected_since(self, before: TableSchema) -> list[int]:
        """Rows of contents whose corrections are others than in an earlier table_schema."""
        return self._rows_with({cell.digest for cell in {*before.corrections} ^ {*self.table_schema.corrections}})

    def _use_corrections(self) -> None:
        self._corrections = _by_digest(self.table_schema)
        for row in self._rows_with(self._corrections):
            self._apply_corrections(row)

    def _apply_corrections(self, row: int) -> None:
        if self._corrections:
            for column, cell in self._corrections.get(self.digest(row), {}).items():
                self.labels[row, column] = UNKNOWN if cell.label is None else cell.label
                if self._chances is not None:
                    self._chances[row, column] = np.nan

    def _rows_with(self, digests: Collection[str]) -> list[int]:
        if not digests:
            return []
        prefixes = np.ascontiguousarray(self.digests[: self._used, :8]).view(np.uint64).ravel()
        wanted = np.array([np.frombuffer(bytes.fromhex(digest)[:8], np.uint64)[0] for digest in digests])
        near = np.flatnonzero(np.isin(prefixes, wanted)).tolist()
        return [row for row in near if self.digest(row) in digests]

    def is_predicted(self, row: int) -> NDArray[np.bool_]:
        """Of the columns of a row."""
        if self._chances is None:
            return np.zeros(self.labels.shape[1], np.bool_)
        return np.asarray(~np.isnan(self._chances[row]))

    def set_asked(self, row: int, columns: NDArray[np.intp], labels: Labels) -> None:
        """Labels of the oracle, which replace predicted ones; where it gave none a predicted one stays. What a person
        has corrected stays in any case."""
        columns, labels = self._uncorrected(row, columns, labels)
        if self._chances is not None:
            taken = (labels != UNKNOWN) | ~self.is_predicted(row)[columns]
            columns, labels = columns[taken], labels[taken]
            self._chances[row, columns] = np.nan
        self.labels[row, columns] = labels

    def set_predicted(self, row: int, columns: NDArray[np.intp], labels: Labels, chances: NDArray[np.float64]) -> None:
        """Predicted labels, only where neither the oracle nor a person has given one."""
        chances = self._uncorrected(row, columns, chances)[1]
        columns, labels = self._uncorrected(row, columns, labels)
        if ((self.labels[row, columns] != UNKNOWN) & ~self.is_predicted(row)[columns]).any():
            raise ValueError("a predicted label must not replace the oracle's")
        self.labels[row, columns] = labels
        self._made_chances()[row, columns] = chances

    def _uncorrected(
        self, row: int, columns: NDArray[np.intp], values: NDArray[Kind]
    ) -> tuple[NDArray[np.intp], NDArray[Kind]]:
        if not self._corrections:
            return columns, values
        free = ~np.isin(columns, list(self.corrected_columns(self.digest(row))))
        return columns[free], values[free]

    def _made_chances(self) -> Chances:
        if self._chances is None:
            self._chances = np.full(self.labels.shape, np.nan, np.float16)
        return self._chances

    @property
    def predicted_count(self) -> int:
        return 0 if self._chances is None else int((~np.isnan(self._chances[: self._used])).sum())

    def drop(self, gone: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Without these rows; where each row is from now on."""
        keep = ~gone
        self.ids = [name for name, kept in zip(self.ids, keep.tolist(), strict=True) if kept]
        self._row_of = {name: row for row, name in enumerate(self.ids)}
        used, self._used, self._by_digest = self._used, len(self.ids), None
        self.digests, self.versions = self.digests[:used][keep], self.versions[:used][keep]
        self.labels = self.labels[:used][keep]
        if self._chances is not None:
            self._chances = self._chances[:used][keep]
        return np.cumsum(keep) - 1

    def column_labels(self, name: str) -> Labels:
        column: Labels = self.labels[: self._used, self.table_schema.names.index(name)]
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
            self._replaced[self.digest(row)] = self._copied(row)
            self.labels[row] = UNKNOWN
            if self._chances is not None:
                self._chances[row] = np.nan
        self.digests[row] = np.frombuffer(bytes.fromhex(digest), np.uint8)
        self.versions[row] = version
        self._apply_corrections(row)
        return row

    def define(self, table_schema: TableSchema) -> None:
        """Take over another schema. Columns that mean the same in both keep their labels, and corrections by people are
        kept whoever is asked."""
        labels = np.full((len(self.labels), len(table_schema.columns)), UNKNOWN, np.int8)
        chances = None if self._chances is None else np.full(labels.shape, np.nan, np.float16)
        same_voter = (table_schema.oracle, table_schema.votes) == (self.table_schema.oracle, self.table_schema.votes)
        for place, column in enumerate(table_schema.columns):
            old = self.table_schema.column(column.name)
            if same_voter and old is not None and old.definition == column.definition:
                before = self.table_schema.names.index(column.name)
                labels[:, place] = self.labels[:, before]
                if chances is not None and self._chances is not None:
                    chances[:, place] = self._chances[:, before]
        self.labels, self.table_schema, self._chances = labels, table_schema, chances
        self._use_corrections()

    def _grow(self) -> None:
        if self._used < len(self.versions):
            return
        more = max(1024, self._used // 4)
        self.digests = np.concatenate([self.digests, np.zeros((more, 32), np.uint8)])
        self.versions = np.concatenate([self.versions, np.zeros(more, np.int32)])
        self.labels = np.concatenate([self.labels, np.full((more, self.labels.shape[1]), UNKNOWN, np.int8)])
        if self._chances is not None:
            empty = np.full((more, self.labels.shape[1]), np.nan, np.float16)
            self._chances = np.concatenate([self._chances, empty])


def _by_digest(table_schema: TableSchema) -> dict[str, dict[int, CorrectedCell]]:
    """The corrections of the columns that a table has, by content and column."""
    places = {name: place for place, name in enumerate(table_schema.names)}
    found: dict[str, dict[int, CorrectedCell]] = {}
    for cell in table_schema.corrections:
        if cell.feature in places:
            found.setdefault(cell.digest, {})[places[cell.feature]] = cell
    return found
