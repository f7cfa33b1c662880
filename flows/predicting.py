"""Predicted labels of a run: what a discovery and an enrichment have in common."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery import UNKNOWN
from twothirds.flows.settings import PredictingSettings
from twothirds.models import LABELS_AT_ONCE, Feature, OracleError, Votes
from twothirds.models.predicted import (
    Cells,
    Classifiers,
    LabelPool,
    NoVectors,
    PredictedLabels,
    Rows,
    StoredClassifiers,
    Table,
    VectorSource,
    embedder_of,
    groups_of,
    label_pool,
    leanings,
    may_predict,
    random_order,
)
from twothirds.sources import Example

State = dict[str, NDArray[Any]]  # what is kept of classifiers and of what they need to describe an example
# Begins to put all of these features to all of these examples; what it returns waits for the votes.
Put = Callable[[Sequence[Example], Sequence[Feature]], Callable[[], Votes]]


class AskingStopped(Exception):
    """What ended the asking of labels: a budget, an oracle, or people who have yet to answer."""

    def __init__(self, error: OracleError) -> None:
        super().__init__(str(error))
        self.error = error


class CellLabels:
    """Puts cells of a pool (its examples × features) to one oracle, those with the same features together."""

    def __init__(
        self, put: Put, examples: Sequence[Example], features: Sequence[Feature], votes: int, in_flight: int = 0
    ) -> None:
        self.examples, self.features = examples, tuple(features)
        self.votes = Votes.empty(features, len(examples), votes)
        self._put, self._in_flight, self._most = put, in_flight, LABELS_AT_ONCE // votes

    def ask(self, cells: Cells) -> Table:
        """Raises AskingStopped once all that was answered is counted."""
        waiting: deque[tuple[Rows, Rows, Callable[[], Votes]]] = deque()

        def take() -> None:
            rows, columns, result = waiting.popleft()
            self.votes.add(result(), rows, columns)

        for rows, columns in groups_of(cells, self._most):
            asked = self._put([self.examples[row] for row in rows], [self.features[column] for column in columns])
            waiting.append((rows, columns, asked))
            while len(waiting) > self._in_flight:
                take()
            if self.votes.stopped is not None:
                break
        while waiting:
            take()
        if self.votes.stopped is not None:
            raise AskingStopped(self.votes.stopped)
        return np.where(cells, self.votes.decided.T, np.int8(UNKNOWN))

    def leanings(self) -> NDArray[np.float32]:
        """Which way the oracle leans, of all cells."""
        labels = self.ask(np.ones((len(self.examples), len(self.features)), np.bool_))
        return leanings(labels, self.votes.chances.T)


@dataclass(frozen=True, eq=False)
class Prediction:
    """What was predicted for one pool."""

    features: list[Feature]
    result: PredictedLabels
    source: VectorSource
    first: str  # who answered first: a cheaper model, or nobody

    def to_json(self, *, known: int = 0) -> dict[str, Any]:
        """Without the first so many examples, which were known."""
        asked, predicted = self.result.asked[known:], self.result.predicted[known:]
        return {
            "examples": len(asked),
            "asked_examples": int(asked.any(axis=1).sum()),
            "asked_labels": int(asked.sum()),
            "predicted_labels": int(predicted.sum()),
            "left_labels": int(self.result.left[known:].sum()),
            "embedder": self.source.name,
            "first": self.first,
            "learned_anew": self.result.learned_anew,
            "too_small": self.result.classifiers is None,
        }

    def certificates(self, **more: Any) -> list[dict[str, Any]]:
        """One per feature; without a certificate, of a feature of which nothing is predicted."""
        return [
            {"feature": feature.name, **more, "certificate": certificate.to_json() if certificate else None}
            for feature, certificate in zip(self.features, self.result.certificates, strict=True)
        ]

    @property
    def state(self) -> State | None:
        """For the next pool; None where it has one already, or could not confirm anything."""
        stored = self.result.to_store
        if stored is None or not self.result.learned_anew:
            return None
        made = stored.classifiers
        return {**self.source.state(), "weights": made.weights, "bias": made.bias, "certified": stored.certified}


@dataclass(frozen=True)
class PredictionTerms:
    settings: PredictingSettings
    sampling_number: str = field(repr=False)
    cache: Path  # of embeddings


def predict_labels(
    asking: CellLabels,
    first: CellLabels | None,
    terms: PredictionTerms,
    *,
    known: Table | None = None,
    state: State | None = None,
) -> Prediction:
    """Raises what `asking` and `first` raise, which is a cheaper model that is asked everything. `known` are labels of
    the first examples, and `state` is of the last pool with these features."""
    settings, examples, features = terms.settings, asking.examples, asking.features
    promise = settings.promise
    stored = None
    if state is not None:
        stored = StoredClassifiers(Classifiers(state["weights"], state["bias"]), state["certified"])
    labelled = 0 if known is None else int((known != UNKNOWN).any(axis=1).sum())
    source: VectorSource = NoVectors()
    if not may_predict(len(examples), promise, known=labelled, stored=stored is not None):
        first = None
    elif first is None or settings.embedder is not None:  # else the cheaper model's answers are all there is
        source = embedder_of(settings.embedder, examples, terms.cache, state)
    vectors = source.vectors(examples)
    if first is not None:
        vectors = np.concatenate([vectors, first.leanings()], axis=1)
    if stored is not None and stored.classifiers.weights.shape != (len(features), vectors.shape[1]):
        stored = None
    order = random_order(examples, settings.seed, terms.sampling_number)
    pool = LabelPool(vectors, order, len(features), whole_rows=examples[0].image is not None)
    result = label_pool(pool, asking.ask, promise, stored, known, leave=settings.leaves)
    return Prediction(list(features), result, source, "" if first is None else settings.cheap or "")
