"""Label the examples that were not compared where they must be asked, and predict the others under a certificate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discovery import UNKNOWN
from discovery.statistics import Promise
from flows.discover.loop import Progress
from flows.discover.preparation import Prepared
from flows.settings import Environment
from models import Ballot, Feature, Labelled, Oracle, OracleError, OracleUnavailable, Panel
from models.predicted import LabelPool, PredictedLabels, embedder_of, groups_of, label_pool, random_order
from sources import Example

AT_ONCE = 8_192  # labels in one task


@dataclass(frozen=True, eq=False)
class PredictedRest:
    """Labels of the examples that were not compared, examples × features; chances are numbers where predicted."""

    features: list[Feature]
    labels: NDArray[np.int8]
    chances: NDArray[np.float64]
    made: PredictedLabels
    embedder: str

    @property
    def count(self) -> int:
        return int((~np.isnan(self.chances)).sum())

    def to_json(self) -> dict[str, Any]:
        """The part of run.json."""
        certificates = [
            {"feature": feature.name, "certificate": one.to_json() if one else None}
            for feature, one in zip(self.features, self.made.certificates, strict=True)
        ]
        return {
            "predicted_labels": self.count,
            "asked_labels": self.chances.size - self.count,
            "embedder": self.embedder,
            "certificates": certificates,
        }


class _Stopped(Exception):
    def __init__(self, error: OracleError) -> None:
        super().__init__(str(error))
        self.error = error


def predict_rest(
    prepared: Prepared, oracle: Oracle, progress: Progress, label: Callable[[Panel, list[Feature]], Labelled]
) -> tuple[list[Ballot], PredictedRest | None]:
    """The ballots of what was asked, and what was predicted; None where something ended it first, which
    `progress.message` then says. What was compared is learned from."""
    features = [one.feature for one in progress.known]
    if not prepared.rest or not features or progress.message:
        return [], None
    asking = _RestAsking(prepared, oracle, features, label)
    known = np.stack([one.labels for one in progress.known], axis=1)
    try:
        with prepared.display.waiting("predicting labels, or asking where that is not certified"):
            made, embedder = asking.predict(known)
    except (_Stopped, OracleUnavailable) as stopped:
        progress.stop(stopped.error if isinstance(stopped, _Stopped) else stopped)
        return asking.ballots, None
    first = len(known)
    rest = PredictedRest(features, made.labels[first:], made.chances[first:], made, embedder)
    not_compared = np.setdiff1d(np.arange(len(prepared.dataset.examples)), prepared.rows)
    for column, one in enumerate(prepared.given):
        asking.take_known(rest, column, one.labels[not_compared] != UNKNOWN)
    return asking.ballots, rest


class _RestAsking:
    def __init__(
        self,
        prepared: Prepared,
        oracle: Oracle,
        features: list[Feature],
        label: Callable[[Panel, list[Feature]], Labelled],
    ) -> None:
        self._settings, self._oracle, self._features, self._label = prepared.settings, oracle, features, label
        self._examples: tuple[Example, ...] = (*prepared.compared, *prepared.rest)
        self._compared = len(prepared.compared)
        self.ballots = [Ballot.empty(feature, len(prepared.rest)) for feature in features]

    def predict(self, known: NDArray[np.int8]) -> tuple[PredictedLabels, str]:
        settings, examples = self._settings, self._examples
        source = embedder_of(settings.embedder, examples, Environment.read().cache / "embeddings")
        pictures = examples[0].image is not None
        pool = LabelPool(
            source.vectors(examples), random_order(examples, settings.seed), len(self._features), whole_rows=pictures
        )
        return label_pool(pool, self._ask, Promise(settings.agree or 1.0), known=known), source.name

    def _ask(self, cells: NDArray[np.bool_]) -> NDArray[np.int8]:
        labels = np.full(cells.shape, UNKNOWN, np.int8)
        for rows, columns in groups_of(cells, AT_ONCE // self._settings.votes):
            panel = Panel(self._oracle, [self._examples[row] for row in rows], self._settings.votes)
            labelled = self._label(panel, [self._features[column] for column in columns])
            for column, part in zip(columns.tolist(), labelled.ballots, strict=True):
                self._count(self.ballots[column], rows - self._compared, part)
                labels[rows, column] = part.labels
            if labelled.stopped is not None:
                raise _Stopped(labelled.stopped)
        return labels

    def take_known(self, rest: PredictedRest, column: int, known: NDArray[np.bool_]) -> None:
        """A label that was given with the feature needs no prediction."""
        cells = np.zeros((len(self._examples), len(self._features)), np.bool_)
        cells[self._compared :, column] = known & ~np.isnan(rest.chances[:, column])
        if cells.any():
            rest.labels[cells[self._compared :]] = self._ask(cells)[cells]
            rest.chances[cells[self._compared :]] = np.nan

    @staticmethod
    def _count(ballot: Ballot, rows: NDArray[np.intp], part: Ballot) -> None:
        ballot.yes[rows] += part.yes
        ballot.no[rows] += part.no
        ballot.abstained[rows] += part.abstained
        ballot.answers += part.answers
