"""Labels that a person puts right: one by one, or all of a table that people have filled in; and what tables that
`enrich` keeps take over of them."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from twothirds.flows.errors import UsageError
from twothirds.flows.events import SILENT, Events
from twothirds.flows.runs.curate import CurationResult
from twothirds.flows.settings import account_name
from twothirds.reports import Run
from twothirds.reports.curation import (
    LABELS,
    Correction,
    LabelEdit,
    checked_by_people,
    record_corrections,
    unused_corrections,
)
from twothirds.reports.page import dataset_of
from twothirds.reports.run import restore
from twothirds.reports.versions import CorrectedCell
from twothirds.studio.web import plural

COLUMNS = ("id", "feature", "corrected")
SPELLED = {"1": 1, "true": 1, "y": 1, "0": 0, "false": 0, "n": 0, **LABELS}
MOST_CHARACTERS = 200  # of the name of a person


def correct_labels(
    run: Run,
    action: str,
    *words: str,
    by: str | None = None,
    dataset: str | None = None,
    events: Events = SILENT,
) -> CurationResult:
    """list; set EXAMPLE FEATURE yes|no|clear; import CSV, which takes over its column `corrected`, all or nothing."""
    if action == "list" and not words:
        return _listed(run)
    if action == "set" and len(words) == 3:
        example, feature, label = words
        if label.casefold() not in SPELLED:
            raise UsageError(f"{label!r} is no label: give yes, no, or clear to take a correction back")
        return _recorded(run, [LabelEdit(example, feature, SPELLED[label.casefold()])], by, dataset, events)
    if action == "import" and len(words) == 1:
        edits, left = read_edits(Path(words[0]))
        if not edits:
            raise UsageError(f"{words[0]} has nothing in its column 'corrected': write yes, no or clear there")
        return _recorded(run, edits, by, dataset, events, left)
    raise UsageError(
        f"labels cannot do {' '.join((action, *words))!r}: give list, set EXAMPLE FEATURE LABEL or import CSV"
    )


def _listed(run: Run) -> CurationResult:
    """Those in force, then those that concern nothing that the run has now."""
    findings = run.findings
    rows: list[dict[str, Any]] = [
        {str(key): None if value != value else value for key, value in row.items()}
        for row in findings.corrected_table().astype(object).to_dict("records")
    ]
    lines = [
        f"{row['corrected_at']} {row['id']} {row['feature']}: {_word(row['label'])}"
        + (f", was {_word(row['before'])}" if row["label"] != row["before"] else ", as it was")
        + f", by {row['corrected_by']}"
        for row in rows
    ]
    unused = unused_corrections(findings, run.corrections)
    if unused:
        names = ", ".join(sorted({correction.feature for correction in unused}))
        lines.append(f"{plural(len(unused), 'correction')} of what the run does not have now are kept: {names}")
    lines += checked_by_people(findings.found).sentences()
    return CurationResult(rows, lines or ["no label was corrected"])


def read_edits(table: Path) -> tuple[list[LabelEdit], int]:
    """What a table says, and how many of its lines say nothing. Raises UsageError that names the line."""
    edits, left = [], 0
    try:
        with table.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            if missing := [name for name in COLUMNS if name not in (rows.fieldnames or ())]:
                raise UsageError(f"{table} has no column {missing[0]!r}: give what `export --to doubtful` writes")
            for row in rows:
                label = str(row["corrected"] or "").strip().casefold().removesuffix(".0")
                if not label:
                    left += 1
                elif label not in SPELLED:
                    where = f"line {rows.line_num} of {table}"
                    raise UsageError(f"{where} says {row['corrected']!r} in 'corrected': write yes, no or clear")
                else:
                    edits.append(LabelEdit(restore(row["id"]), restore(row["feature"]), SPELLED[label]))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or "it is not a CSV table in UTF-8"
        raise UsageError(f"{table} cannot be read ({reason}): give what `export --to doubtful` writes") from None
    return edits, left


def corrected_cells(features: str) -> list[CorrectedCell]:
    """What a table takes over of the corrections of a run whose features it has; nothing of other features."""
    if not os.path.isdir(features):
        return []
    run = Run(Path(features))
    log = [correction for correction in run.corrections if correction.digest]
    found = [
        (feature.name, correction, *correction.effect_on(feature))
        for correction in log
        for feature in run.findings.found
    ]
    return [
        CorrectedCell(name, correction.digest, label, correction.by, correction.at)
        for name, correction, concerns, label in found
        if concerns
    ]


def _recorded(
    run: Run, edits: Sequence[LabelEdit], by: str | None, dataset: str | None, events: Events, left: int = 0
) -> CurationResult:
    who = " ".join((by or account_name()).split())[:MOST_CHARACTERS]
    if not who:
        raise UsageError("whose corrections these are is not known: give a name with --by")
    wanted = {edit.example for edit in edits}
    with events.waiting("reading the data set"):
        read, problem = dataset_of(run.summary.settings, dataset)
    digests = {example.id: example.digest for example in read.examples if example.id in wanted} if read else {}
    made = record_corrections(run, run.findings, edits, who, digests)
    data = {
        "by": who,
        "corrected": [_described(correction) for correction in made],
        "repeated": len(edits) - len(made),
        "empty": left,
    }
    lines = [f"{plural(len(made), 'correction')} by {who}"]
    if len(edits) > len(made):
        lines.append(f"{plural(len(edits) - len(made), 'label')} were as that already")
    if left:
        lines.append(f"{plural(left, 'line')} without a correction")
    if problem and made:
        lines.append("tables that enrich keeps will not use them, because the data set cannot be read: give --dataset")
    if made:
        lines.append(
            "done: `report`, `export` and `enrich` use them; `labels RUN set EXAMPLE FEATURE clear` takes one back"
        )
    return CurationResult(data, lines)


def _described(made: Correction) -> dict[str, Any]:
    return {"example": made.example, "feature": made.feature, "label": made.label, "at": made.at}


def _word(label: int | None) -> str:
    return "unknown" if label is None else "yes" if label else "no"
