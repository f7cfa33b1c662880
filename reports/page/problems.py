"""What did not go as it should: refusals, unreadable replies, questions without an answer, skipped rows."""

from __future__ import annotations

from dataclasses import dataclass

from discovery import UNKNOWN
from reports.run import AnsweredComparison, Findings, RunFolder, SkippedExample


@dataclass(frozen=True)
class FeatureProblems:
    feature: str
    order: int
    refused: int
    unreadable: int
    unknown: int  # labels that stay empty
    reasons: list[tuple[str, int]]  # most frequent first


@dataclass(frozen=True)
class RunProblems:
    unusable: list[tuple[int, AnsweredComparison]]  # comparisons refused or unreadable, with their number
    none: list[tuple[int, AnsweredComparison]]  # answered: nothing of the kind
    repeated: list[tuple[int, AnsweredComparison]]  # answered with a feature that was known already
    features: list[FeatureProblems]
    left_out: list[SkippedExample]

    @property
    def anything(self) -> bool:
        return bool(self.unusable or self.none or self.repeated or self.features or self.left_out)


def problems_of(run: RunFolder, findings: Findings) -> RunProblems:
    names = set(run.found_features["name"])
    seen: set[str] = set()
    unusable, none, repeated = [], [], []
    for number, asked in enumerate(findings.comparisons, start=1):
        if asked.verdict == "none":
            none.append((number, asked))
        elif asked.feature is None:
            unusable.append((number, asked))
        for one in asked.each:
            if one.feature is not None and (one.feature in seen or one.feature not in names):
                repeated.append((number, one))
            elif one.feature is not None:
                seen.add(one.feature)
    return RunProblems(unusable, none, repeated, _features(findings), run.summary.dataset.left_out)


def _features(findings: Findings) -> list[FeatureProblems]:
    compared = findings.labelled
    affected = []
    for order, found in enumerate(findings.found, start=1):
        refused, unreadable = (int(found.tally.cast[side].sum()) for side in (2, 3))
        unknown = 0 if found.look else int((found.labels[compared] == UNKNOWN).sum())
        if refused or unreadable or unknown:
            reasons = sorted(found.tally.notes.items(), key=lambda reason: -reason[1])
            affected.append(FeatureProblems(found.name, order, refused, unreadable, unknown, reasons[:5]))
    return affected
