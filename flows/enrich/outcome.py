"""What an enrichment leaves behind: the table with its history, or one that was refused; and the summary."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from flows.enrich.summary import EnrichSummary
from flows.enrich.update import Enrichment
from flows.enrich.values import ValueTable
from reports.enrichment import (
    SCHEMA,
    Cells,
    Contract,
    GrowingTable,
    Meaning,
    NewVersion,
    schema_of,
    write_history,
    write_refused,
    write_table,
)
from reports.run import RunError, replace_file


def complete_history(folder: Path, table: GrowingTable) -> int:
    """Write what the history lacks of a table whose last run was killed just before it was written; the version up to
    which it is complete then."""
    try:
        written = EnrichSummary.read(folder).history
    except RunError:
        written = 0
    version = table.meaning.version
    if written < version:
        last = np.flatnonzero(table.versions[: len(table)] == version)
        cells = Cells(last, np.arange(len(table.meaning.columns)))
        write_history(folder, table, NewVersion(run=None, rows=None, cells=[cells]))
    return version


@dataclass(frozen=True)
class NightOutcome:
    """Of a pass over the data set that began with a table of the meaning `before`."""

    folder: Path
    work: Enrichment
    before: Meaning
    contract: Contract
    run_id: str

    def write(self, summary: EnrichSummary, values: ValueTable) -> EnrichSummary:
        """The table where something has changed and the contract holds, and the summary last."""
        table, changes, before = self.work.table, self.work.changes, self.before
        new = self.work.predictor.certificates(table.meaning.version) if self.work.predictor else []
        table.meaning = replace(table.meaning, certificates=(*table.meaning.certificates, *new))
        moved = bool(changes.rows or changes.dropped)
        changed = moved or (changes.complete and not before.means_the_same_as(table.meaning))
        violations = self.contract.violations(table, changes.new_content)
        if violations:
            summary = summary.refused(before.version, len(self.work.before), violations)
        elif not changed:
            summary = summary.model_copy(update={"version": before.version})
        if violations and changed:
            write_refused(self.folder, table)
        elif changed:
            self._replace()
        if not violations:
            values.write(self.folder)
        summary = summary.model_copy(update={"history": summary.version})
        summary.write(self.folder)
        if self.work.predictor is not None and changes.complete and not violations:
            self.work.predictor.save()
        return summary

    def _replace(self) -> None:
        """The history after the table: it never tells of what the table has not."""
        table, changes = self.work.table, self.work.changes
        write_table(self.folder, table)
        schema = json.dumps(schema_of(table), indent=2, ensure_ascii=False)
        replace_file(self.folder / SCHEMA, lambda file: file.write(f"{schema}\n"))
        kept = table.meaning.keeps_labels_of(self.before)
        corrected = table.rows_corrected_since(self.before)
        rows = [*changes.rows, *corrected] if kept else None  # labels of another meaning are gone from all rows
        predicted_by = ", ".join(self.work.predictor.used) if self.work.predictor else None
        write_history(
            self.folder, table, NewVersion(self.run_id, rows, changes.cells, changes.dropped, predicted_by or None)
        )
