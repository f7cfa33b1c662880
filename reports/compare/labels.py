"""How far oracles agree on labels, and how right each of them is."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discovery import UNKNOWN
from discovery.statistics import (
    BRIER,
    ENOUGH_TO_LABEL,
    ERRORS_ALIKE,
    OF_CORRECTNESS,
    OF_PAIRS,
    OF_VOTES,
    TOLERANCE,
    UNSCORED,
    Calibration,
    Estimate,
    brier_columns,
    calibration,
    chance_of_right,
    dawid_skene,
    enough,
    error_columns,
    estimates,
    odd_numbers,
    pair_columns,
    refitted,
    vote_columns,
    why_not,
)
from reports.compare.study import Rater, Reference, Study

IS_REFERENCE = "its majority is the reference"
RAW = OF_CORRECTNESS[0]
REFITTING = 9  # the purpose of this chance
Named = dict[str, Estimate]


@dataclass(frozen=True, eq=False)
class PairAgreement:
    a: str
    b: str
    by_feature: list[Named]
    overall: Named

    def to_json(self) -> dict[str, Any]:
        return {"a": self.a, "b": self.b, "overall": _json(self.overall), "features": list(map(_json, self.by_feature))}


@dataclass(frozen=True, eq=False)
class Quality:
    """One oracle: how far its own votes agree, and how right it is by each way of counting them."""

    name: str
    among: Named  # its own votes, overall
    among_each: list[Named]
    right: Named  # against the reference, overall
    right_each: list[Named]
    calibration: Calibration
    single: Estimate
    single_each: list[Estimate]
    majority: Estimate
    majority_each: list[Estimate]
    consensus: Estimate  # Dawid-Skene
    consensus_each: list[Estimate]
    curve: dict[int, float]  # votes → expected share of right labels
    enough: int | None

    @classmethod
    def unscored(cls, name: str, *, among: Named, among_each: list[Named], reason: str) -> Quality:
        """Of an oracle of which nothing says how right it is."""
        absent = Estimate.undefined(reason)
        absences = [absent] * len(among_each)
        nothing = dict.fromkeys((statistic.name for statistic in (*OF_CORRECTNESS, BRIER, ERRORS_ALIKE)), absent)
        return cls(
            name=name,
            among=among,
            among_each=among_each,
            right=nothing,
            right_each=[nothing for _ in absences],
            calibration=Calibration((), None, reason),
            single=absent,
            single_each=absences,
            majority=absent,
            majority_each=absences,
            consensus=absent,
            consensus_each=absences,
            curve={},
            enough=None,
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "oracle": self.name,
            "own_votes": _json(self.among),
            "own_votes_features": list(map(_json, self.among_each)),
            "against_reference": _json(self.right),
            "against_reference_features": list(map(_json, self.right_each)),
            "calibration": self.calibration.to_json(),
            "single_vote": self.single.to_json(),
            "majority": self.majority.to_json(),
            "dawid_skene": self.consensus.to_json(),
            "accuracy_by_votes": self.curve,
            "votes_enough": self.enough,
        }


def agreements(study: Study) -> list[PairAgreement]:
    """Of every two oracles; bias is how much more often the first says yes."""
    found = []
    for a, b in combinations(study.raters, 2):
        columns = np.moveaxis(pair_columns(a.sheet.labels, b.sheet.labels), 0, 1)
        by_feature, overall = estimates(OF_PAIRS, columns, study.resamples)
        found.append(PairAgreement(a.name, b.name, by_feature, overall))
    return found


def all_together(study: Study) -> Named:
    """Fleiss' kappa and alpha with every oracle as one rater; meant for three and more."""
    labels = np.stack([oracle.sheet.labels for oracle in study.raters], axis=-1)
    return estimates(OF_VOTES, np.moveaxis(vote_columns(labels), 0, 1), study.resamples)[1]


def qualities(study: Study, reference: Reference) -> list[Quality]:
    return [_quality(study, reference, oracle) for oracle in study.raters]


def _quality(study: Study, reference: Reference, oracle: Rater) -> Quality:
    sheet = oracle.sheet
    among_each, among = estimates(OF_VOTES, np.moveaxis(vote_columns(sheet.votes), 0, 1), study.resamples)
    reason = _why_no_score(reference, oracle)
    if reason or reference.labels is None:
        return Quality.unscored(oracle.name, among=among, among_each=among_each, reason=reason)
    columns = np.moveaxis(pair_columns(sheet.labels, reference.labels), 0, 1)
    right_each, right = estimates(OF_CORRECTNESS, columns, study.resamples)
    chances = np.moveaxis(brier_columns(sheet.chances, reference.labels), 0, 1)
    brier_each, brier = estimates([BRIER], chances, study.resamples)
    pairs = np.moveaxis(error_columns(sheet.votes, reference.labels), 0, 1)
    alike_each, alike = estimates([ERRORS_ALIKE], pairs, study.resamples)
    curve = votes_curve(oracle, reference.labels)
    single_each, single = _accuracy(study, chances_of_right(oracle, reference.labels, 1))
    majority_each, majority = _accuracy(study, chances_of_right(oracle, reference.labels, max(curve, default=1)))
    consensus_each, consensus = _consensus(study, oracle, reference.labels)
    return Quality(
        name=oracle.name,
        among=among,
        among_each=among_each,
        right=right | brier | alike,
        right_each=[a | b | c for a, b, c in zip(right_each, brier_each, alike_each, strict=True)],
        calibration=calibration(sheet.chances.ravel(), reference.labels.ravel()),
        single=single,
        single_each=single_each,
        majority=majority,
        majority_each=majority_each,
        consensus=consensus,
        consensus_each=consensus_each,
        curve=curve,
        enough=enough(curve),
    )


def _why_no_score(reference: Reference, oracle: Rater) -> str:
    if reference.labels is None:
        return "neither truth nor people's labels are known"
    return IS_REFERENCE if reference.kind == "people" and oracle.people else ""


def chances_of_right(oracle: Rater, true: NDArray[np.int8], votes: int) -> NDArray[np.float64]:
    """Features × examples: how probable it is that the majority of so many of its votes is right; a tie is half."""
    chances = np.full(true.shape, np.nan)
    for place, votes_cast in enumerate(oracle.sheet.votes):
        chances[place] = chance_of_right(votes_cast, true[place], votes)
    return chances


def votes_curve(oracle: Rater, true: NDArray[np.int8]) -> dict[int, float]:
    """How often labels would be right with 1, 3, 5 … votes; the labels of all features together."""
    curve = {}
    for votes in odd_numbers(oracle.sheet.most_votes):
        chances = chances_of_right(oracle, true, votes)
        if (~np.isnan(chances)).any():
            curve[votes] = float(np.nanmean(chances))
    return curve


def _accuracy(study: Study, chances: NDArray[np.float64]) -> tuple[list[Estimate], Estimate]:
    """The share that is right, per feature and as a mean over features; intervals are over examples."""
    known = ~np.isnan(chances)
    right = np.where(known, chances, 0.0)
    columns = np.stack([right, known - right, np.zeros_like(right), np.zeros_like(right)], axis=-1)
    by_feature, overall = estimates([RAW], np.moveaxis(columns, 0, 1), study.resamples)
    return [named[RAW.name] for named in by_feature], overall[RAW.name]


def _consensus(study: Study, oracle: Rater, true: NDArray[np.int8]) -> tuple[list[Estimate], Estimate]:
    """Dawid-Skene, feature by feature: a worker may be good at one and bad at another."""
    votes = [oracle.sheet.by_worker(feature) for feature in range(len(true))]
    reasons = [why_not(cast) for cast in votes]
    if not len(reasons) or all(reasons):
        reason = reasons[0] if reasons else "there is nothing to compare"
        return [Estimate.undefined(why) for why in reasons], Estimate.undefined(reason)

    def fit(rows: NDArray[np.intp], tolerance: float = ENOUGH_TO_LABEL) -> NDArray[np.float64]:
        right = np.full(len(votes), np.nan)
        for feature, cast in enumerate(votes):
            if not reasons[feature] and not why_not(cast[rows]):
                labels, correct = dawid_skene(cast[rows], tolerance).labels, true[feature, rows]
                known = (labels != UNKNOWN) & (correct != UNKNOWN)
                right[feature] = (labels[known] == correct[known]).mean() if known.any() else np.nan
        return right

    n = len(study.ids)
    fitted, overall = refitted(fit(np.arange(n), TOLERANCE), fit, n, study.rng(REFITTING))
    by_feature = [
        Estimate.undefined(reason or UNSCORED) if not found.defined else found
        for reason, found in zip(reasons, fitted, strict=True)
    ]
    return by_feature, overall


def _json(named: Named) -> dict[str, Any]:
    return {name: estimate.to_json() for name, estimate in named.items()}
