"""The log of changes beside a run: what was discovered stays as it is, and what is shown is the log applied to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from twothirds.discovery import majority_labels
from twothirds.reports.curation.changes import Change, plan
from twothirds.reports.curation.corrections import CORRECTIONS, Correction, corrected, read_corrections
from twothirds.reports.curation.events import Event, StaleEdit, append_events, now, read_events
from twothirds.reports.run import (
    COMPLEMENT,
    CURATION,
    SAME,
    Findings,
    FoundFeature,
    RunError,
    RunFolder,
    names_of,
    read_findings,
    relinked,
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
    by: str = ""  # who, where that is known

    def __str__(self) -> str:
        return f"{self.action} {self.arguments or ''}".strip() + (f", by {self.by}" if self.by else "")


@dataclass(frozen=True, repr=False)
class CuratedRun(RunFolder):
    """A run with the changes of its log and the corrections of its labels applied. `unedited` is the same run as it was
    read before: what was discovered is not read again."""

    unedited: CuratedRun | None = field(default=None, compare=False)

    @cached_property
    def features(self) -> pd.DataFrame:
        """The columns of features.csv."""
        return self.findings.feature_table() if self._is_curated else self.found_features

    @cached_property
    def labels(self) -> pd.DataFrame:
        """One row per example, one nullable 0/1 column per feature."""
        return (self.findings.table if self._is_curated else self.found_labels).frame()

    @cached_property
    def attributes(self) -> pd.DataFrame:
        """One row per example, one column of categories per attribute; see `twothirds attributes`."""
        return self.findings.attribute_table()

    @cached_property
    def log(self) -> list[Entry]:
        """The changes that `findings` shows, and those that were taken back."""
        return read_log(self.folder)

    @cached_property
    def findings(self) -> Findings:
        """The features with their labels, votes and questions."""
        changes, corrections = effective(self.log), self.corrections
        findings = _applied(corrected(self.discovered, corrections), changes, corrections, self.folder)
        return _with_twins(findings, self.discovered) if changes or corrections else findings

    @cached_property
    def discovered(self) -> Findings:
        """The features as discovered, before any change or correction."""
        return read_findings(self) if self.unedited is None else self.unedited.discovered

    @cached_property
    def corrections(self) -> list[Correction]:
        """All that were ever made, in their order."""
        return read_corrections(self.folder)

    @property
    def _is_curated(self) -> bool:
        return any((self.folder / name).exists() for name in (CURATION, CORRECTIONS))


Curated = TypeVar("Curated", bound=CuratedRun)


def plan_change(run: CuratedRun, action: str, arguments: dict[str, Any]) -> Change:
    """What the change would keep, ask and take away; nothing is written. What a person has corrected stays."""
    change = plan(run.findings, action, arguments)
    after = corrected(change.after, run.corrections)
    rows = {name: row for row, name in enumerate(after.ids)}
    labels_of = {feature.name: feature for feature in after.found}
    asks = [
        replace(ask, ids=[name for name in ask.ids if rows[name] not in labels_of[ask.feature].corrected])
        for ask in change.asks
    ]
    kept = {name: labels_of[name].labelled for name in change.kept}
    return replace(change, after=after, asks=asks, kept=kept)


def record_change(
    run: Curated,
    change: Change,
    asked: VotesByFeature | None = None,
    cost_usd: float = 0.0,
    values: dict[str, dict[str, int]] | None = None,
    *,
    by: str = "",
    seen: int | None = None,
) -> Curated:
    """Append the change to the log and return the changed run. Labels without votes in `asked` stay unknown. Raises
    StaleEdit if the log holds more than the `seen` entries that the change was planned on."""
    votes = {feature: dict(rows) for feature, rows in (asked or {}).items()}
    entry = Entry(
        at=now(),
        action=change.action,
        arguments=change.arguments,
        asked=votes,
        cost_usd=cost_usd,
        values=values or {},
        by=by,
    )
    _append(run.folder, lambda _: entry, seen)
    return replace(run)


def undo(run: RunFolder, *, by: str = "", seen: int | None = None) -> Entry:
    """Take the last change back; the log keeps both."""
    undone: list[Entry] = []

    def take_back(log: list[Entry]) -> Entry:
        if not effective(log):
            raise RunError(f"{run.folder} has no change to undo: `features RUN log` shows what was changed")
        undone.append(effective(log)[-1])
        return Entry(now(), "undo", {}, by=by)

    _append(run.folder, take_back, seen)
    return undone[0]


def refuse_stale(log: list[Entry], seen: int | None) -> None:
    """Raises StaleEdit if there are more than the `seen` entries that an edit is built on."""
    if seen is not None and len(log) > seen:
        raise StaleEdit([str(entry) for entry in log[seen:]])


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
    return _entries(folder, read_events(folder / CURATION))


def _entries(folder: Path, events: list[Event]) -> list[Entry]:
    try:
        return [Entry(**event) for event in events]
    except TypeError as error:
        path = folder / CURATION
        raise RunError(f"{path} cannot be read ({error}): correct the line, or move the file away") from None


def _applied(findings: Findings, changes: list[Entry], corrections: list[Correction], folder: Path) -> Findings:
    for entry in changes:
        try:
            chosen = {"codes": entry.values} if entry.values else {}
            after = plan(findings, entry.action, entry.arguments | chosen).after
        except RunError as error:
            raise RunError(
                f"{folder / CURATION} does not fit this run any more ({error}): `features RUN undo`"
            ) from None
        rows = {name: row for row, name in enumerate(findings.ids)}
        found = [
            _filled(feature, entry.asked.get(feature.name, {}), rows)
            for feature in _noted(after.found, findings, entry)
        ]
        renamed = {entry.arguments["name"]: entry.arguments["to"]} if entry.action == "rename" else {}
        attributes = relinked(after.attributes, names_of(found), renamed)
        findings = corrected(replace(after, found=found, attributes=attributes), corrections)
    return findings


def _noted(found: list[FoundFeature], before: Findings, entry: Entry) -> list[FoundFeature]:
    """Those that the change has made something else, with who has made it and when."""
    same = {id(feature) for feature in before.found}
    by = f" by {entry.by}" if entry.by else ""
    return [
        feature
        if id(feature) in same
        else replace(feature, changes=(*feature.changes, f"{feature.made}{by}, {entry.at[:16]}"))
        for feature in found
    ]


def _with_twins(findings: Findings, discovered: Findings) -> Findings:
    """A change may have given a feature a twin or taken it; what discover found is kept while the other is there, and
    of two features that are as it left them it has judged."""
    names, before = names_of(findings.found), {feature.name: feature.labels for feature in discovered.found}
    judged = [
        feature.name in before and np.array_equal(feature.labels, before[feature.name]) for feature in findings.found
    ]
    twins = twins_of(names, list(findings.matrix[:, findings.working]), judged)
    kept = {start + name for name in names for start in (SAME, COMPLEMENT)}
    found = [
        replace(feature, twin=twin or (feature.twin if feature.twin in kept else ""))
        for feature, twin in zip(findings.found, twins, strict=True)
    ]
    return replace(findings, found=found)


def _filled(feature: FoundFeature, asked: Mapping[str, Votes], rows: Mapping[str, int]) -> FoundFeature:
    """The feature with the votes that were asked again for a change."""
    if not asked:
        return feature
    cast = feature.vote_counts.cast.copy()
    places = [rows[name] for name in asked if name in rows]
    cast[:, places] = np.array([votes for name, votes in asked.items() if name in rows]).T
    labels = feature.labels.copy()
    labels[places] = majority_labels(cast[0, places], cast[1, places])
    chances = None if feature.chances is None else feature.chances.copy()
    if chances is not None:
        chances[places] = np.nan
    others = {row: correction for row, correction in feature.corrected.items() if row not in set(places)}
    vote_counts = replace(feature.vote_counts, cast=cast)
    return replace(feature, labels=labels, vote_counts=vote_counts, chances=chances, corrected=others)


def _append(folder: Path, make: Callable[[list[Entry]], Entry], seen: int | None) -> None:
    def checked(events: list[Event]) -> list[Event]:
        log = _entries(folder, events)
        refuse_stale(log, seen)
        return [asdict(make(log))]

    append_events(folder / CURATION, checked)
