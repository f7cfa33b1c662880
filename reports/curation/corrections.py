"""Labels that people correct: corrections.jsonl in the run folder, to which lines are only added.

A correction belongs to a feature by what that was made of, so that it stays with the feature through renaming, merging
and undoing, and to no run: discovering again leaves it in force. What the oracle said stays where it was."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from twothirds.discovery import UNKNOWN, contradicts
from twothirds.reports.curation.changes import place_of
from twothirds.reports.curation.events import Event, StaleEdit, append_events, now, read_events
from twothirds.reports.run import Attribute, CorrectedLabel, Findings, FoundFeature, Origin, RunError, RunFolder
from twothirds.studio.web import percent, plural

CORRECTIONS = "corrections.jsonl"
YES, NO, CLEAR = "yes", "no", "clear"
LABELS: Mapping[str, int | None] = {YES: 1, NO: 0, CLEAR: None}
WORDS = {label: word for word, label in LABELS.items()}
DIGEST_BYTES = 32


@dataclass(frozen=True)
class Correction:
    """One line of the log."""

    at: str
    by: str
    example: str
    feature: str  # its name at that time
    origins: tuple[Origin, ...]
    label: int | None  # None takes back what was corrected before
    digest: str = ""  # of the example's content, where it was known: tables of other ids use it

    def __str__(self) -> str:
        return f"{self.example!r} {self.feature!r} {WORDS[self.label]}, by {self.by}"

    def effect_on(self, feature: FoundFeature) -> tuple[bool, int | None]:
        """Whether it concerns a feature, and its label there. A feature was corrected together with those that it was
        later merged with; of what lacks a feature the parts of that are lacking too."""
        begun = {own[:length] for own in feature.origins for length in range(len(own) + 1)}
        if not self.origins or not begun.issuperset(self.origins):
            return False, None
        exact = all(origin in feature.origins for origin in self.origins)
        return True, self.label if exact or self.label == 0 else None


@dataclass(frozen=True)
class LabelEdit:
    """A label as a person wants it; None takes back what was corrected before."""

    example: str
    feature: str
    label: int | None


def read_corrections(folder: Path) -> list[Correction]:
    """In the order in which they were made."""
    return _corrections(folder, read_events(folder / CORRECTIONS))


def corrected(findings: Findings, log: Sequence[Correction]) -> Findings:
    """With the labels that people have corrected; of several corrections of one label the last counts."""
    if not log:
        return findings
    rows = {name: row for row, name in enumerate(findings.ids)}
    by_origins: dict[tuple[Origin, ...], list[tuple[int, Correction]]] = {}
    for place, correction in enumerate(log):
        by_origins.setdefault(correction.origins, []).append((place, correction))
    found = [_corrected(feature, by_origins.values(), rows) for feature in findings.found]
    by_name = {feature.name: feature for feature in found}
    return replace(
        findings, found=found, attributes=tuple(_revalued(attribute, by_name) for attribute in findings.attributes)
    )


def record_corrections(
    run: RunFolder,
    findings: Findings,
    edits: Iterable[LabelEdit],
    by: str,
    digests: Mapping[str, str] | None = None,
    seen: int | None = None,
) -> list[Correction]:
    """Append those that change anything, all or none. Raises RunError for an example or a feature that is not there,
    and StaleEdit where somebody has corrected one of the labels after the first `seen` corrections."""
    if not by.strip():
        raise RunError("a correction needs the name of the person who makes it: give it with --by")
    rows, at = {name: row for row, name in enumerate(findings.ids)}, now()
    wanted: dict[tuple[str, str], Correction] = {}
    for edit in edits:
        if edit.example not in rows:
            raise RunError(f"the run has no example {edit.example!r}: labels.csv lists those there are")
        feature = findings.found[place_of(findings, edit.feature)]
        digest = (digests or {}).get(edit.example, "")
        wanted[edit.example, feature.name] = Correction(
            at=at,
            by=by,
            example=edit.example,
            feature=feature.name,
            origins=feature.origins,
            label=edit.label,
            digest=digest,
        )
    made: list[Correction] = []

    def check(events: list[Event]) -> list[Event]:
        log = _corrections(run.folder, events)
        if seen is not None and (newer := _same_labels(log[seen:], wanted, findings)):
            raise StaleEdit([str(edit) for edit in newer])
        there = {feature.name: feature for feature in corrected(findings, log).found}
        known = {correction.example: correction.digest for correction in log if correction.digest}
        made.extend(
            replace(edit, digest=edit.digest or known.get(edit.example, ""))
            for edit in wanted.values()
            if _changes_anything(edit, there[edit.feature], rows[edit.example])
        )
        return [asdict(edit) for edit in made]

    append_events(run.folder / CORRECTIONS, check)
    return made


def unused_corrections(findings: Findings, log: Sequence[Correction]) -> list[Correction]:
    """Those in the log that concern no feature or no example of the run, as after a drop or a smaller data set."""
    ids = set(findings.ids)
    return [
        correction
        for correction in log
        if correction.example not in ids or not any(correction.effect_on(f)[0] for f in findings.found)
    ]


@dataclass(frozen=True)
class CheckedByPeople:
    """How often people left a label as it was when they looked at it."""

    people: int
    labels: int
    confirmed: int
    turned: int  # yes for no, or no for yes; the others were unknown before

    @property
    def agreement(self) -> float | None:
        """Share of the labels that were known which people confirmed."""
        return self.confirmed / (self.confirmed + self.turned) if self.confirmed + self.turned else None

    def sentences(self) -> list[str]:
        """In words, with what the figure does not say; nothing where no label was corrected."""
        if not self.labels:
            return []
        who = plural(self.people, "person") if self.people == 1 else f"{self.people:,} people"
        lines = [f"{who} looked at {plural(self.labels, 'label')}; what they say stands, whatever the votes were."]
        if self.agreement is not None:
            known = plural(self.confirmed + self.turned, "label")
            lines.append(
                f"Of {known} that the oracle had given, they left {self.confirmed:,} as they were "
                f"({percent(self.agreement)}). They chose what they looked at, so that this share says nothing about "
                "other labels."
            )
        return lines


def checked_by_people(found: Iterable[FoundFeature]) -> CheckedByPeople:
    corrections = [correction for feature in found for correction in feature.corrected.values()]
    known = [correction for correction in corrections if correction.before != UNKNOWN]
    same = sum(correction.label == correction.before for correction in known)
    return CheckedByPeople(
        people=len({correction.by for correction in corrections}),
        labels=len(corrections),
        confirmed=same,
        turned=len(known) - same,
    )


def _corrected(
    feature: FoundFeature, groups: Iterable[list[tuple[int, Correction]]], rows: Mapping[str, int]
) -> FoundFeature:
    concerned = [group for group in groups if group[0][1].effect_on(feature)[0]]
    if not concerned and not feature.corrected:
        return feature
    labels = feature.uncorrected
    found: dict[int, CorrectedLabel] = {}
    for _, correction in sorted((item for group in concerned for item in group), key=lambda item: item[0]):
        row, (_, label) = rows.get(correction.example), correction.effect_on(feature)
        if row is not None and label is None:
            found.pop(row, None)
        elif row is not None and label is not None:
            found[row] = CorrectedLabel(label, correction.by, correction.at, int(labels[row]))
    chances = None if feature.chances is None else feature.chances.copy()
    for row, final in found.items():
        labels[row] = final.label
        if chances is not None:
            chances[row] = np.nan
    made = replace(feature, labels=labels, chances=chances, corrected=found)
    return replace(made, consistent=_consistent(made, rows))


def _revalued(attribute: Attribute, found: Mapping[str, FoundFeature]) -> Attribute:
    """An example has the value whose feature a person says it has, and not the one that a person says it lacks."""
    codes, none = attribute.codes.copy(), len(attribute.values)
    edits = [
        (correction.label, place, row)
        for place, value in enumerate(attribute.values)
        if value.feature in found
        for row, correction in found[value.feature].corrected.items()
    ]
    for label, place, row in sorted(edits):  # what is lacking first
        code = int(codes[row])
        if label and not (attribute.scale and place <= code < none):
            codes[row] = place
        elif not label and attribute.scale and place <= code < none:
            codes[row] = place - 1 if place else none
        elif not label and code == place:
            codes[row] = UNKNOWN
    return replace(attribute, codes=codes)


def _consistent(feature: FoundFeature, rows: Mapping[str, int]) -> bool:
    """Whether the labels show what the feature's question asked for, now that some of them were corrected."""
    asked = feature.asked
    if asked is None or not any(rows.get(name) in feature.corrected for name in (*asked.examples, *asked.without)):
        return feature.consistent
    has, lacks = (
        np.array([feature.labels[rows[name]] if name in rows else UNKNOWN for name in names], np.int8)
        for names in (asked.examples, asked.without)
    )
    return not contradicts(asked.kind, has, lacks)


def _changes_anything(correction: Correction, feature: FoundFeature, row: int) -> bool:
    there = feature.corrected.get(row)
    return (
        there is not None
        if correction.label is None
        else there is None or (there.label, there.by) != (correction.label, correction.by)
    )


def _same_labels(
    newer: Iterable[Correction], wanted: Mapping[tuple[str, str], Correction], findings: Findings
) -> list[Correction]:
    return [
        correction
        for correction in newer
        for example, name in wanted
        if correction.example == example and correction.effect_on(findings.found[place_of(findings, name)])[0]
    ]


def _corrections(folder: Path, events: list[Event]) -> list[Correction]:
    try:
        return [_correction(event) for event in events]
    except (TypeError, KeyError, ValueError) as error:
        path, reason = folder / CORRECTIONS, " ".join(f"{type(error).__name__}: {error}".split())
        raise RunError(f"{path} cannot be read ({reason}): correct the line, or move the file away") from None


def _correction(event: Event) -> Correction:
    texts = {name: event[name] for name in ("at", "by", "example", "feature")} | {"digest": event.get("digest", "")}
    label, origins = event["label"], tuple(tuple(origin) for origin in event["origins"])
    if not all(isinstance(text, str) for text in (*texts.values(), *(word for origin in origins for word in origin))):
        raise TypeError("what should be a text is not")
    if isinstance(label, bool) or label not in (0, 1, None):
        raise ValueError("label should be 0, 1 or null")
    if texts["digest"] and len(bytes.fromhex(texts["digest"])) != DIGEST_BYTES:
        raise ValueError("digest should be that of a content")
    return Correction(label=label, origins=origins, **texts)
