"""How far oracles agree on labels, and how right each of them is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery import UNKNOWN
from twothirds.discovery.statistics import (
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
    Statistic,
    Threshold,
    best_threshold,
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
from twothirds.reports.compare.study import Rater, Reference, Study

IS_REFERENCE = "its majority is the reference"
RAW = OF_CORRECTNESS[0]
REFITTING = 9  # the purpose of this chance
ONE_VOTE, MAJORITY, DAWID_SKENE = WAYS = ("one vote", "majority", "Dawid-Skene")
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
class Statistics:
    """Estimates by name: over all features, and of each."""

    overall: Named
    by_feature: list[Named]

    def __or__(self, other: Statistics) -> Statistics:
        by_feature = [own | more for own, more in zip(self.by_feature, other.by_feature, strict=True)]
        return Statistics(self.overall | other.overall, by_feature)


@dataclass(frozen=True, eq=False)
class Quality:
    """One oracle: how far its own votes agree, and how right it is by each way of counting them."""

    name: str
    among: Statistics  # its own votes
    right: Statistics  # against the reference
    accuracy: Statistics  # against the reference, by the ways of counting votes
    calibration: Calibration
    curve: dict[int, float] = field(default_factory=dict)  # votes → expected share of right labels
    enough: int | None = None
    threshold: Threshold | None = None  # where it gives probabilities

    def to_json(self) -> dict[str, Any]:
        return {
            "oracle": self.name,
            "own_votes": _json(self.among.overall),
            "own_votes_features": list(map(_json, self.among.by_feature)),
            "against_reference": _json(self.right.overall),
            "against_reference_features": list(map(_json, self.right.by_feature)),
            "calibration": self.calibration.to_json(),
            "threshold": None if self.threshold is None else self.threshold.to_json(),
            "single_vote": self.accuracy.overall[ONE_VOTE].to_json(),
            "majority": self.accuracy.overall[MAJORITY].to_json(),
            "dawid_skene": self.accuracy.overall[DAWID_SKENE].to_json(),
            "accuracy_by_votes": self.curve,
            "votes_enough": self.enough,
        }


def agreements(study: Study) -> list[PairAgreement]:
    """Of every two oracles; bias is how much more often the first says yes."""
    found = []
    for a, b in combinations(study.raters, 2):
        agreement = _statistics(study, OF_PAIRS, pair_columns(a.sheet.labels, b.sheet.labels))
        found.append(PairAgreement(a.name, b.name, agreement.by_feature, agreement.overall))
    return found


def all_together(study: Study) -> Named:
    """Fleiss' kappa and alpha with every oracle as one rater; meant for three and more."""
    labels = np.stack([oracle.sheet.labels for oracle in study.raters], axis=-1)
    return _statistics(study, OF_VOTES, vote_columns(labels)).overall


def qualities(study: Study, reference: Reference) -> list[Quality]:
    return [_quality(study, reference, oracle) for oracle in study.raters]


def _quality(study: Study, reference: Reference, oracle: Rater) -> Quality:
    sheet, true = oracle.sheet, reference.labels
    among = _statistics(study, OF_VOTES, vote_columns(sheet.votes))
    reason = _why_no_score(reference, oracle)
    if reason or true is None:
        features, scores = len(among.by_feature), (*OF_CORRECTNESS, BRIER, ERRORS_ALIKE)
        return Quality(
            name=oracle.name,
            among=among,
            right=_undefined([score.name for score in scores], features, reason),
            accuracy=_undefined(WAYS, features, reason),
            calibration=Calibration((), None, reason),
        )
    curve = votes_curve(oracle, true)
    return Quality(
        name=oracle.name,
        among=among,
        right=_statistics(study, OF_CORRECTNESS, pair_columns(sheet.labels, true))
        | _statistics(study, [BRIER], brier_columns(sheet.chances, true))
        | _statistics(study, [ERRORS_ALIKE], error_columns(sheet.votes, true)),
        accuracy=_accuracy(study, ONE_VOTE, chances_of_right(oracle, true, 1))
        | _accuracy(study, MAJORITY, chances_of_right(oracle, true, max(curve, default=1)))
        | _consensus(study, oracle, true),
        calibration=calibration(sheet.chances.ravel(), true.ravel()),
        curve=curve,
        enough=enough(curve),
        threshold=best_threshold(sheet.chances, sheet.labels, true),
    )


def _statistics(study: Study, statistics: Sequence[Statistic], columns: NDArray[Any]) -> Statistics:
    """`columns` are features × examples × columns."""
    by_feature, overall = estimates(statistics, np.moveaxis(columns, 0, 1), study.resamples)
    return Statistics(overall, by_feature)


def _undefined(names: Iterable[str], features: int, reason: str) -> Statistics:
    nothing = dict.fromkeys(names, Estimate.undefined(reason))
    return Statistics(nothing, [nothing] * features)


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


def _accuracy(study: Study, way: str, chances: NDArray[np.float64]) -> Statistics:
    """The share that is right, per feature and as a mean over features; intervals are over examples."""
    known = ~np.isnan(chances)
    right = np.where(known, chances, 0.0)
    columns = np.stack([right, known - right, np.zeros_like(right), np.zeros_like(right)], axis=-1)
    found = _statistics(study, [RAW], columns)
    return Statistics({way: found.overall[RAW.name]}, [{way: named[RAW.name]} for named in found.by_feature])


def _consensus(study: Study, oracle: Rater, true: NDArray[np.int8]) -> Statistics:
    """Dawid-Skene, feature by feature: a worker may be good at one and bad at another."""
    votes = [oracle.sheet.by_worker(feature) for feature in range(len(true))]
    reasons = [why_not(cast) for cast in votes]
    if all(reasons):
        undefined = Estimate.undefined(reasons[0] if reasons else "there is nothing to compare")
        return Statistics({DAWID_SKENE: undefined}, [{DAWID_SKENE: Estimate.undefined(why)} for why in reasons])

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
        {DAWID_SKENE: found if found.defined else Estimate.undefined(reason or UNSCORED)}
        for reason, found in zip(reasons, fitted, strict=True)
    ]
    return Statistics({DAWID_SKENE: overall}, by_feature)


def _json(named: Named) -> dict[str, Any]:
    return {name: estimate.to_json() for name, estimate in named.items()}
