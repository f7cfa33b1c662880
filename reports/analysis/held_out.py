"""How well features predict the target of a discovery, on examples that its questions were not chosen by."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery.statistics import fit_ridge
from twothirds.discovery.strategies import target_outputs
from twothirds.reports.analysis.prediction import Matrix, Target, ranking_score, ranking_scores

HELD_OUT = 0.25  # share of the examples
SHUFFLES = 999  # of the held-out values, for the test whether anything is predicted
DRAWS = 20  # of each control
FEWEST_HELD_OUT = 10


@dataclass(frozen=True)
class HeldOutScore:
    """`curve` and the controls have one score for each question, after it was answered."""

    measure: str  # AUC, or R² of a number
    trained_on: int
    held_out: int
    score: float
    p: float  # how often shuffled held-out values would score as high
    curve: list[float]
    random: list[float]  # features with the same shares, at random
    shuffled: list[float]  # the same features, with shuffled values to learn from


def held_out_rows(ids: Sequence[str], seed: int, by: NDArray[np.str_] | Matrix | None = None) -> NDArray[np.bool_]:
    """About a quarter of the examples: by their ids, in whole groups of `by` where it holds names, or the last ones
    where it holds numbers, such as times. The same whatever other examples there are, but for times."""
    if by is not None and by.dtype.kind == "f":
        times = np.asarray(by, np.float64)
        return np.asarray(times > float(np.nanquantile(times, 1 - HELD_OUT)), np.bool_)
    return np.array([_share_of(f"{seed}:{name}") < HELD_OUT for name in (ids if by is None else by)], np.bool_)


def _share_of(text: str) -> float:
    return int(hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12], 16) / 16**12


def score_held_out(
    labels: Matrix, found_after: Sequence[int], queries: int, target: Target, test: NDArray[np.bool_], seed: int = 0
) -> HeldOutScore:
    """`labels` has a row per example and a column per feature, NaN where unknown; `found_after` says for each feature
    by how many questions it was found. `test` are the examples held out."""
    rng = np.random.default_rng(seed)
    train, held = np.flatnonzero(~test), np.flatnonzero(test)
    counts = [sum(number <= query for number in found_after) for query in range(1, queries + 1)]

    def decided(x: Matrix, learned: Target) -> Matrix:
        """Of the held-out examples a number, or for each class how much speaks for it."""
        outputs = target_outputs(learned.values, len(learned.classes))
        predicted = fit_ridge(x[train], outputs[train]).predict(x[held])
        return np.hstack([-predicted, predicted]) if len(target.classes) == 2 else predicted

    def scores(x: Matrix, learned: Target) -> dict[int, float]:
        """By the number of features."""
        return {
            count: ranking_score(decided(x[:, :count], learned), target.at(held))
            if count
            else 0.0
            if target.is_number
            else 0.5
            for count in sorted(set(counts))
        }

    def controls(shuffle_columns: bool) -> list[float]:
        drawn = [
            scores(rng.permuted(labels, axis=0), target) if shuffle_columns else scores(labels, target.shuffled(rng))
            for _ in range(DRAWS)
        ]
        return [float(np.mean([draw[count] for draw in drawn])) for count in counts]

    mine = scores(labels, target)
    count = counts[-1] if counts else 0
    score = mine.get(count, 0.0 if target.is_number else 0.5)
    p = 1.0
    if count:
        mine_decided = decided(labels[:, :count], target)
        shuffled = ranking_scores(mine_decided, (target.at(held).shuffled(rng) for _ in range(SHUFFLES)))
        p = (1 + sum(other >= score for other in shuffled)) / (1 + SHUFFLES)
    return HeldOutScore(
        measure="R²" if target.is_number else "AUC",
        trained_on=len(train),
        held_out=len(held),
        score=score,
        p=p,
        curve=[mine[number] for number in counts],
        random=controls(shuffle_columns=True),
        shuffled=controls(shuffle_columns=False),
    )
