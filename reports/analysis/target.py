"""What the discovered features are good for: predicting a column of the data set, against three controls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery import UNKNOWN
from twothirds.discovery.statistics import Interval
from twothirds.reports.analysis.columns import MetadataColumn, read_column
from twothirds.reports.analysis.prediction import Matrix, Target, fit_linear, interval_of, out_of_fold, score_of
from twothirds.reports.run import Findings, RunError, names_of
from twothirds.sources import Dataset

REPEATS = 5  # different divisions into folds
DRAWS = 99  # of random features, and of shuffled targets
REFITS = 200
MOST_CARRIERS = 12
FEWEST_EXAMPLES = 20
SEED = 0


@dataclass(frozen=True)
class PredictorScore:
    name: str
    columns: int
    estimate: Interval
    note: str = ""


@dataclass(frozen=True)
class Carrier:
    """A feature's weight in the model, its column scaled to unit variance. `toward`: the class that it speaks for."""

    order: int
    name: str
    toward: str
    weight: float
    low: float
    high: float


@dataclass(frozen=True)
class TargetResult:
    column: str
    measure: str
    examples: int
    classes: list[str]
    raters: list[PredictorScore]  # the discovered features first, then the controls
    better_than: int  # of DRAWS shuffled targets, how many the features beat on the true one
    draws: int
    carriers: list[Carrier]
    left_out: list[str]
    pooled: str = ""

    @property
    def useful(self) -> bool:
        """The score beats at least 95 % of the shuffled targets, and its interval what chance gives."""
        shuffled = self.raters[-1].estimate
        return self.better_than >= 0.95 * self.draws and self.raters[0].estimate.low > shuffled.value


def predict_target(
    findings: Findings, dataset: Dataset | None, name: str, tagging: Findings | None = None
) -> TargetResult:
    """Cross-validated and regularised; `tagging` are the findings of a tagging run on the same data set."""
    column = _labelled_only(read_column(dataset, name, findings.ids), findings)
    if not findings.found or len(column.rows) < FEWEST_EXAMPLES:
        raise RunError(
            f"column {name!r} and the labels of {len(findings.found)} features are known together for "
            f"{len(column.rows)} examples, and {FEWEST_EXAMPLES} are needed: label more, or name another column"
        )
    x, target = _matrix(findings, column.rows), _target(column)
    found = _cross_validated(x, target)
    random = _drawn(lambda rng: (rng.permuted(x, axis=0), target))  # the shares of positives stay as they are
    shuffled = _drawn(lambda rng: (x, target.shuffled(rng)))
    return TargetResult(
        column=name,
        measure="R²" if target.is_number else "balanced accuracy",
        examples=len(x),
        classes=list(target.classes),
        raters=[
            PredictorScore("discovered features", x.shape[1], found),
            *_tagged(tagging, findings, column, target),
            PredictorScore("random features", x.shape[1], _spread(random)),
            PredictorScore("shuffled target", x.shape[1], _spread(shuffled)),
        ],
        better_than=sum(found.value > score for score in shuffled),
        draws=DRAWS,
        carriers=_carriers(x, target, names_of(findings.found)),
        left_out=column.left_out,
        pooled=column.pooled,
    )


def _labelled_only(column: MetadataColumn, findings: Findings) -> MetadataColumn:
    labelled = findings.labelled[column.rows]
    without = [f"{int((~labelled).sum()):,} examples without labels"] if not labelled.all() else []
    return replace(
        column, rows=column.rows[labelled], values=column.values[labelled], left_out=column.left_out + without
    )


def _target(column: MetadataColumn) -> Target:
    if column.is_number:
        return Target(column.values.astype(np.float64))
    classes, places = np.unique(column.values, return_inverse=True)
    return Target(places.astype(np.intp), tuple(str(name) for name in classes))


def _matrix(findings: Findings, rows: NDArray[np.intp], columns: int | None = None) -> Matrix:
    labels = findings.matrix[:columns, rows].T.astype(np.float64)
    return np.where(labels == UNKNOWN, np.nan, labels)


def _cross_validated(x: Matrix, target: Target) -> Interval:
    outcome = np.mean([out_of_fold(x, target, seed) for seed in range(REPEATS)], axis=0)
    return interval_of(outcome, target, SEED)


def _drawn(draw: Callable[[np.random.Generator], tuple[Matrix, Target]]) -> list[float]:
    rng = np.random.default_rng(SEED)
    scores = []
    for number in range(DRAWS):
        x, target = draw(rng)
        scores.append(score_of(out_of_fold(x, target, number), target))
    return scores


def _spread(scores: list[float]) -> Interval:
    low, high = np.quantile(scores, [0.025, 0.975])
    return Interval(float(np.mean(scores)), float(low), float(high))


def _tagged(
    tagging: Findings | None, findings: Findings, column: MetadataColumn, target: Target
) -> list[PredictorScore]:
    """The first names of a tagging run, as many as there are features."""
    if tagging is None or not tagging.found:
        return []
    wanted = len(findings.found)
    row_of = {name: row for row, name in enumerate(tagging.ids)}
    rows = np.array([row_of.get(findings.ids[row], -1) for row in column.rows], np.intp)
    if (rows < 0).any():
        raise RunError("the tagging run is about other examples: give one on the same data set")
    x = _matrix(tagging, rows, wanted)
    note = "" if x.shape[1] == wanted else f"the tagging run found no more than {x.shape[1]}"
    return [PredictorScore("first names of tagging", x.shape[1], _cross_validated(x, target), note)]


def _carriers(x: Matrix, target: Target, names: list[str]) -> list[Carrier]:
    """The features with the largest weights in a fit to all examples, with bootstrap intervals."""
    fit = fit_linear(x, target)
    speaks = fit.weights.argmax(axis=1)  # of two classes a feature that speaks against one speaks for the other
    rng = np.random.default_rng(SEED)
    draws = [_resampled(target, rng) for _ in range(REFITS)]
    refits = np.stack([fit_linear(x[rows], target.at(rows), fit.strength).weights for rows in draws])
    low, high = np.quantile(refits, [0.025, 0.975], axis=0)
    weights = fit.weights[np.arange(x.shape[1]), speaks]
    return [
        Carrier(
            order=int(place) + 1,
            name=names[place],
            toward=target.classes[speaks[place]] if target.classes else "more" if weights[place] > 0 else "less",
            weight=float(weights[place]),
            low=float(low[place, speaks[place]]),
            high=float(high[place, speaks[place]]),
        )
        for place in np.argsort(-np.abs(weights))[:MOST_CARRIERS]
    ]


def _resampled(target: Target, rng: np.random.Generator) -> NDArray[np.intp]:
    """As many rows with replacement, of every class at least one."""
    n = len(target.values)
    anchors = [rng.choice(np.flatnonzero(target.values == place)) for place in range(len(target.classes))]
    return np.array([*anchors, *rng.integers(n, size=n - len(anchors))], np.intp)
