"""Features that a user gives: from a run folder as curated, from a CSV file, or written by hand."""

from __future__ import annotations

import csv
import os
from pathlib import Path

from flows.errors import UsageError
from models import Feature
from reports import Run
from reports.run import RunError, RunSummary, restore

REMEDY = "give a run folder, a CSV file with the columns name and definition, or 'name: definition; name: definition'"


def read_features(text: str) -> list[Feature]:
    """Raises UsageError, or RunError for a run folder that cannot be read."""
    path = Path(text)
    if os.path.isdir(text):
        found = _of_run(path)
    elif os.path.isfile(text):
        found = _of_csv(path)
    elif text.endswith(".csv") or (os.sep in text and ":" not in text):
        raise UsageError(f"--features {text!r} is not there: {REMEDY}")
    else:
        found = _by_hand(text)
    if not found:
        raise UsageError(f"--features {text!r} names no feature: {REMEDY}")
    found = list(dict.fromkeys(found))
    names = [feature.name for feature in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"--features {text!r} names {twice!r} twice, with two definitions: keep one")
    return found


def about_of(text: str) -> str:
    """What the run was told about its data, if the text names a run folder."""
    try:
        return str(RunSummary.read(Path(text)).settings.get("about", "")) if os.path.isdir(text) else ""
    except RunError:
        return ""


def _of_run(path: Path) -> list[Feature]:
    """Without those that were only looked at: they are not worth their labels."""
    rows = Run(path).features.itertuples(index=False)
    return [Feature(str(row.name), str(row.definition)) for row in rows if not row.look]


def _of_csv(path: Path) -> list[Feature]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            if "name" not in (rows.fieldnames or ()):
                raise UsageError(f"--features {str(path)!r} has no column 'name': {REMEDY}")
            return [
                Feature(restore(name), restore((row.get("definition") or "").strip()))
                for row in rows
                if (name := (row["name"] or "").strip())
            ]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or "it is not a CSV table in UTF-8"
        raise UsageError(f"--features {str(path)!r} cannot be read ({reason}): {REMEDY}") from None


def _by_hand(text: str) -> list[Feature]:
    features = []
    for item in text.split(";"):
        name, _, definition = item.partition(":")
        if name.strip():
            features.append(Feature(name.strip(), definition.strip()))
    return features
