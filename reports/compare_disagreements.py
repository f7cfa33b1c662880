"""The labels on which oracles differ, with everybody's votes, and who was right where that is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discovery.questions import UNKNOWN
from reports.compare_study import Study


@dataclass(frozen=True, slots=True)
class Disagreement:
    feature: int
    row: int
    labels: tuple[int, ...]  # per oracle
    votes: tuple[tuple[int, int, int], ...]  # per oracle: yes, no, refused
    truth: int  # UNKNOWN where it is not known
    right: tuple[bool, ...]  # per oracle; all False where the truth is not known
    strength: float  # how sure the two sides are: 1 where both are unanimous


def disagreements(study: Study) -> list[Disagreement]:
    """Where a known label contradicts another oracle's; the surest contradictions first."""
    if not study.contenders:
        return []
    labels = np.stack([one.sheet.labels for one in study.contenders])
    yes = np.stack([one.sheet.yes for one in study.contenders])
    no = np.stack([one.sheet.no for one in study.contenders])
    refused = np.stack([one.sheet.refused for one in study.contenders])
    differ = (labels == 1).any(0) & (labels == 0).any(0)
    sure = np.abs(yes - no) / np.maximum(yes + no, 1)
    for_it = np.where(labels == 1, sure, 0.0).max(0)
    against = np.where(labels == 0, sure, 0.0).max(0)
    strength = np.minimum(for_it, against)
    found = []
    for feature, row in np.argwhere(differ).tolist():
        truth = UNKNOWN if study.truth is None else int(study.truth[feature, row])
        said = tuple(labels[:, feature, row].tolist())
        found.append(
            Disagreement(
                feature,
                row,
                said,
                tuple(zip(*(counts[:, feature, row].tolist() for counts in (yes, no, refused)), strict=True)),
                truth,
                tuple(one == truth and truth != UNKNOWN for one in said),
                float(strength[feature, row]),
            )
        )
    return sorted(found, key=lambda one: (-one.strength, one.feature, one.row))
