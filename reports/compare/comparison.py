"""The whole comparison, computed once from a study; the page and the exports read it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discovery import UNKNOWN
from discovery.statistics import Estimate
from reports.compare.advice import Advice, advice
from reports.compare.discoveries import Matched, SameQuestions, Yield, matched, same_questions, yields
from reports.compare.labels import PairAgreement, Quality, agreements, all_together, qualities
from reports.compare.methods import methods
from reports.compare.study import Reference, Study, reference_of
from reports.compare.versus import Versus, versus


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


@dataclass(frozen=True, eq=False)
class OracleComparison:
    study: Study
    reference: Reference
    pairs: list[PairAgreement]
    together: dict[str, Estimate]
    qualities: list[Quality]
    versus: list[Versus]
    advice: list[Advice]
    same_questions: list[SameQuestions]
    yields: list[Yield]
    matched: list[Matched]
    disagreements: list[Disagreement]

    @property
    def methods(self) -> str:
        return methods(self.study, self.reference)

    def pair(self, a: str, b: str) -> PairAgreement:
        return next(one for one in self.pairs if {one.a, one.b} == {a, b})


def compare_oracles(study: Study) -> OracleComparison:
    reference = reference_of(study)
    labels = agreements(study), all_together(study), qualities(study, reference), versus(study)
    named = same_questions(study), yields(study), matched(study)
    return OracleComparison(study, reference, *labels, advice(study, reference), *named, disagreements(study))
