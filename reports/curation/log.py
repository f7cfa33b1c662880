"""The log of changes beside a run: what was discovered stays as it is, and what is shown is the log applied to it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from discovery import majority_labels
from reports.curation.changes import Change, plan
from reports.run import (
    COMPLEMENT,
    CURATION,
    SAME,
    Findings,
    Found,
    RunError,
    RunFolder,
    names_of,
    read_findings,
    relinked,
    replace_file,
    twins_of,
)

if TYPE_CHECKING:
    import pandas as pd

Votes = tuple[int, int, int, int]  # yes, no, refused, unreadable
VotesByFeature = Mapping[str, Mapping[str, Votes]]  # by feature, then by example


@dataclass(frozen=True)
class Entry:
    """One line of the log. `asked` holds the votes that the change made necessary, so that they are not lost."""

    at: str
    action: str
    arguments: dict[str, Any]
    asked: dict[str, dict[str, Votes]] = field(default_factory=dict)
    cost_usd: float = 0.0
    values: dict[str, dict[str, int]] = field(default_factory=dict)  # by attribute and example the place of its value


@dataclass(frozen=True, repr=False)
class CuratedRun(RunFolder):
    """A run with the changes of its log applied."""

    @cached_property
    def features(self) -> pd.DataFrame:
        """The columns of features.csv."""
        return self.findings.feature_table() if self._is_curated else self.found_features

    @cached_property
    def labels(self) -> pd.DataFrame:
        """One row per example, one nullable 0/1 column per feature."""
        return self.findings.label_table() if self._is_curated else self.found_labels

    @cached_property
    def attributes(self) -> pd.DataFrame:
        """One row per example, one column of categories per attribute; see `python -m flows attributes`."""
        return self.findings.attribute_table()

    @cached_property
    def findings(self) -> Findings:
        """The features with their labels, votes and questions."""
        return _applied(read_findings(self), read_log(self.folder), self.folder)

    @property
    def _is_curated(self) -> bool:
        return (self.folder / CURATION).exists()


Curated = TypeVar("Curated", bound=CuratedRun)


def plan_change(run: CuratedRun, action: str, arguments: dict[str, Any]) -> Change:
    """What the change would keep, ask and take away; nothing is written."""
    return plan(run.findings, action, arguments)


def record_change(
    run: Curated,
    change: Change,
    asked: VotesByFeature | None = None,
    cost_usd: float = 0.0,
    values: dict[str, dict[str, int]] | None = None,
) -> Curated:
    """Append the change to the log and return the changed run. Labels without votes in `asked` stay unknown."""
    votes = {feature: dict(rows) for feature, rows in (asked or {}).items()}
    _append(run.folder, Entry(_now(), change.action, change.arguments, votes, cost_usd, values or {}))
    return replace(run)


def undo(run: RunFolder) -> Entry:
    """Take the last change back; the log keeps both."""
    entries = effective(read_log(run.folder))
    if not entries:
        raise RunError(f"{run.folder} has no change to undo: `features RUN log` shows what was changed")
    _append(run.folder, Entry(_now(), "undo", {}))
    return entries[-1]


def effective(log: list[Entry]) -> list[Entry]:
    """The changes that count: each undo takes back the last one before it."""
    entries: list[Entry] = []
    for entry in log:
        if entry.action == "undo":
            entries = entries[:-1]
        else:
            entries.append(entry)
    return entries


def read_log(folder: Path) -> list[Entry]:
    path = folder / CURATION
    if not path.exists():
        return []
    try:
        return [Entry(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise RunError(f"{path} cannot be read ({error}): correct the line, or move the file away") from None


def _applied(findings: Findings, log: list[Entry], folder: Path) -> Findings:
    for entry in effective(log):
        try:
            chosen = {"codes": entry.values} if entry.values else {}
            after = plan(findings, entry.action, entry.arguments | chosen).after
        except RunError as error:
            raise RunError(
                f"{folder / CURATION} does not fit this run any more ({error}): `features RUN undo`"
            ) from None
        rows = {name: row for row, name in enumerate(findings.ids)}
        found = [_filled(feature, entry.asked.get(feature.name, {}), rows) for feature in after.found]
        renamed = {entry.arguments["name"]: entry.arguments["to"]} if entry.action == "rename" else {}
        attributes = relinked(after.attributes, names_of(found), renamed)
        findings = replace(after, found=found, attributes=attributes)
    return _with_twins(findings) if effective(log) else findings


def _with_twins(findings: Findings) -> Findings:
    """A change may have given a feature a twin or taken it; what discover found is kept while the other is there."""
    names = names_of(findings.found)
    twins = twins_of(names, list(findings.matrix[:, findings.working]))
    kept = {start + name for name in names for start in (SAME, COMPLEMENT)}
    found = [
        replace(feature, twin=twin or (feature.twin if feature.twin in kept else ""))
        for feature, twin in zip(findings.found, twins, strict=True)
    ]
    return replace(findings, found=found)


def _filled(feature: Found, asked: Mapping[str, Votes], rows: Mapping[str, int]) -> Found:
    """The feature with the votes that were asked again for a change."""
    if not asked:
        return feature
    cast = feature.tally.cast.copy()
    places = [rows[name] for name in asked if name in rows]
    cast[:, places] = np.array([votes for name, votes in asked.items() if name in rows]).T
    labels = feature.labels.copy()
    labels[places] = majority_labels(cast[0, places], cast[1, places])
    chances = None if feature.chances is None else feature.chances.copy()
    if chances is not None:
        chances[places] = np.nan
    return replace(feature, labels=labels, tally=replace(feature.tally, cast=cast), chances=chances)


def _append(folder: Path, entry: Entry) -> None:
    path = folder / CURATION
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    line = json.dumps(entry.__dict__, ensure_ascii=False) + "\n"
    replace_file(path, lambda file: file.write(before + line))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
