"""All answers of a review as CSV, line by line."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from reports.cells import defuse

COLUMNS = (
    *("id", "question", "queue", "kind", "feature", "definition", "examples", "purpose", "state", "by", "role"),
    *("verdict", "name", "name_definition", "chosen", "reason", "seconds", "cost_usd", "answered_at"),
)


def csv_lines(records: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The header and one line per answer, also of those that were late, skipped or withdrawn."""
    yield _line(COLUMNS)
    for row in records:
        yield _line(_cells(row))


def _cells(row: Mapping[str, Any]) -> list[Any]:
    question, said = row["question"], row["answer"] or {}
    name, definition = question.get("feature", ("", ""))
    when = datetime.fromtimestamp(row["answered_at"], UTC).isoformat(timespec="seconds") if row["answered_at"] else ""
    return [
        *(row["id"], row["item"], row["queue"], row["kind"], name, definition, " ".join(row["ids"])),
        *(row["purpose"], row["state"], row["by"], row["role"]),
        *(said.get("verdict", ""), said.get("name", ""), said.get("definition", "")),
        *(" ".join(str(place + 1) for place in said.get("shown", ())), said.get("skipped", "")),
        *(round(row["seconds"], 1), row["cost"] / 1_000_000, when),
    ]


def _line(cells: Iterable[Any]) -> str:
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerow([_storable(defuse(cell)) for cell in cells])
    return written.getvalue()


def _storable(cell: Any) -> Any:
    return cell.encode("utf-8", "replace").decode("utf-8") if isinstance(cell, str) else cell
