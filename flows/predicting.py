"""Predicted labels of a run: what a discovery and an enrichment have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery import UNKNOWN
from twothirds.flows.settings import PredictingSettings
from twothirds.models import Feature, OracleError
from twothirds.models.predicted import (
    Ask,
    Classifiers,
    LabelPool,
    NoVectors,
    PredictedLabels,
    StoredClassifiers,
    Table,
    VectorSource,
    embedder_of,
    label_pool,
    may_predict,
    random_order,
)
from twothirds.sources import Example

State = dict[str, NDArray[Any]]  # what is kept of classifiers and of what they need to describe an example
FirstAnswers = Callable[[], NDArray[np.float32]]  # which way a cheaper model leans, of all cells


class AskingStopped(Exception):
    """What ended the asking of labels: a budget, an oracle, or people who have yet to answer."""

    def __init__(self, error: OracleError) -> None:
        super().__init__(str(error))
        self.error = error


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


def predict_labels(
    examples: Sequence[Example],
    features: list[Feature],
    settings: PredictingSettings,
    sampling_number: str,
    cache: Path,
    ask: Ask,
    first: FirstAnswers | None,
    *,
    known: Table | None = None,
    state: State | None = None,
) -> Prediction:
    """Raises whatever `ask` and `first` raise. `known` are labels of the first examples, and `state` is of the last
    pool with these features."""
    promise = settings.promise
    stored = None
    if state is not None:
        stored = StoredClassifiers(Classifiers(state["weights"], state["bias"]), state["certified"])
    labelled = 0 if known is None else int((known != UNKNOWN).any(axis=1).sum())
    source: VectorSource = NoVectors()
    if not may_predict(len(examples), promise, known=labelled, stored=stored is not None):
        first = None
    elif first is None or settings.embedder is not None:  # else the cheaper model's answers are all there is
        source = embedder_of(settings.embedder, examples, cache, state)
    vectors = source.vectors(examples)
    if first is not None:
        vectors = np.concatenate([vectors, first()], axis=1)
    if stored is not None and stored.classifiers.weights.shape != (len(features), vectors.shape[1]):
        stored = None
    order = random_order(examples, settings.seed, sampling_number)
    pool = LabelPool(vectors, order, len(features), whole_rows=examples[0].image is not None)
    result = label_pool(pool, ask, promise, stored, known, leave=settings.leaves)
    return Prediction(features, result, source, "" if first is None else settings.cheap or "")
