"""The feature tree of a run: which features lie below which, from the labels of the examples that were compared.

What did not go as it should: refusals, replies that could not be read, questions without an answer, skipped rows."""

from __future__ import annotations

from dataclasses import dataclass

from discovery.questions import UNKNOWN
from discovery.tree import FeatureTree, feature_tree
from reports.run.answers import AnsweredComparison
from reports.run.files import RunError
from reports.run.findings import Findings, names_of
from reports.run.folder import RunFolder
from reports.run.summary import SkippedExample

TOLERANCE = 0.1  # exceptions to "what has this has that", for labels err
SUPPORT = 4  # examples of which it must hold


def tree_of(findings: Findings, *, tolerance: float = TOLERANCE, support: int = SUPPORT) -> FeatureTree:
    if not 0 <= tolerance < 0.5:
        raise RunError(f"--tolerance {tolerance:g} is no share of exceptions: give one from 0 to below 0.5")
    if support < 1:
        raise RunError(f"--support {support} is no number of examples: give 1 or more")
    labels = findings.matrix[:, findings.compared]
    return feature_tree(labels, names_of(findings.found), tolerance=tolerance, support=support)


@dataclass(frozen=True)
class FeatureTrouble:
    feature: str
    order: int
    refused: int
    unreadable: int
    unknown: int  # labels that stay empty
    reasons: list[tuple[str, int]]  # most frequent first


@dataclass(frozen=True)
class Troubles:
    unusable: list[tuple[int, AnsweredComparison]]  # comparisons refused or unreadable, with their number
    none: list[tuple[int, AnsweredComparison]]  # answered: nothing of the kind
    repeated: list[tuple[int, AnsweredComparison]]  # answered with a feature that was known already
    features: list[FeatureTrouble]
    left_out: list[SkippedExample]

    @property
    def anything(self) -> bool:
        return bool(self.unusable or self.none or self.repeated or self.features or self.left_out)


def troubles_of(run: RunFolder, findings: Findings) -> Troubles:
    names = set(run.found_features["name"])
    seen: set[str] = set()
    unusable, none, repeated = [], [], []
    for number, asked in enumerate(findings.comparisons, start=1):
        if asked.verdict == "none":
            none.append((number, asked))
        elif asked.feature is None:
            unusable.append((number, asked))
        elif asked.feature in seen or asked.feature not in names:
            repeated.append((number, asked))
        else:
            seen.add(asked.feature)
    return Troubles(unusable, none, repeated, _features(findings), run.summary.dataset.left_out)


def _features(findings: Findings) -> list[FeatureTrouble]:
    compared = findings.compared
    troubled = []
    for order, found in enumerate(findings.found, start=1):
        refused, unreadable = (int(found.tally.cast[side].sum()) for side in (2, 3))
        unknown = int((found.labels[compared] == UNKNOWN).sum())
        if refused or unreadable or unknown:
            reasons = sorted(found.tally.notes.items(), key=lambda reason: -reason[1])
            troubled.append(FeatureTrouble(found.name, order, refused, unreadable, unknown, reasons[:5]))
    return troubled
