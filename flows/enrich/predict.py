"""Predicted labels in an enrichment: which cells of a pool are asked, and what becomes of the classifiers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discovery.statistics import Promise
from flows.enrich.settings import EnrichSettings
from models import Feature, digest_of
from models.predicted import (
    Classifiers,
    LabelPool,
    NoVectors,
    PredictedLabels,
    StoredClassifiers,
    VectorSource,
    embedder_of,
    label_pool,
    may_predict,
    random_order,
)
from reports.run import replace_file
from sources import Example, Quarantined, vanished

PREDICTOR = "predictor.npz"
Cells = NDArray[np.bool_]
Table = NDArray[np.int8]
FirstAnswers = Callable[[Sequence[Example], Sequence[Feature]], NDArray[np.float64]]  # log-odds of a cheaper model


@dataclass
class Prediction:
    """What was predicted for one pool."""

    features: list[Feature]
    result: PredictedLabels
    embedder: str
    examples: int
    by: str  # who answered first: a cheaper model, or nobody

    def to_json(self) -> dict[str, Any]:
        result = self.result
        return {
            "examples": self.examples,
            "asked_examples": int(result.asked.any(axis=1).sum()),
            "asked_labels": int(result.asked.sum()),
            "predicted_labels": int(result.predicted.sum()),
            "left_labels": int(result.left.sum()),
            "embedder": self.embedder,
            "first": self.by,
            "learned_anew": self.result.learned_anew,
            "too_small": self.result.classifiers is None,
        }

    def certificates(self, version: int) -> list[dict[str, Any]]:
        """One per feature; without a certificate, of a feature of which nothing is predicted."""
        return [
            {"feature": feature.name, "version": version, "certificate": certificate.to_json() if certificate else None}
            for feature, certificate in zip(self.features, self.result.certificates, strict=True)
        ]


@dataclass
class Predictor:
    """Labels pools of examples, each with its own features; keeps the classifiers for the next night."""

    settings: EnrichSettings
    folder: Path
    cache: Path
    oracle: dict[str, Any]  # its identity
    sampling_number: str = field(repr=False)
    made: list[Prediction] = field(default_factory=list)
    _to_save: dict[str, Any] | None = None

    @property
    def used(self) -> list[str]:
        """By what labels were predicted: embedders, and a cheaper oracle that answered first."""
        names = (name for prediction in self.made for name in (prediction.by, prediction.embedder))
        return list(dict.fromkeys(filter(None, names)))

    def certificates(self, version: int) -> list[dict[str, Any]]:
        return [certificate for made in self.made for certificate in made.certificates(version)]

    @property
    def promise(self) -> Promise:
        return self.settings.promise_at(self.settings.agree or 1.0, self.settings.delta)

    def without_vanished(self, examples: Sequence[Example]) -> tuple[list[Example], list[Quarantined]]:
        gone = vanished(list(examples))
        names = {left.id for left in gone}
        return [example for example in examples if example.id not in names], gone

    def label(
        self,
        examples: Sequence[Example],
        features: list[Feature],
        ask: Callable[[Cells], Table],
        first: FirstAnswers | None,
    ) -> Prediction:
        """Raises ExampleChanged where a picture is gone, and whatever `ask` raises."""
        state, stored = self._read(features)
        source: VectorSource = NoVectors()
        if not may_predict(len(examples), self.promise, kept=stored is not None):
            first = None
        elif first is None or self.settings.embedder is not None:  # else the cheaper model's answers are all there is
            source = embedder_of(self.settings.embedder, examples, self.cache, state)
        order = random_order(examples, self.settings.seed, self.sampling_number)
        odds = first(examples, features) if first is not None else None
        whole_rows = examples[0].image is not None
        pool = LabelPool(source.vectors(examples), order, len(features), whole_rows, odds)
        if stored is not None and stored.classifiers.weights.shape != (pool.features, pool.vectors.shape[1]):
            stored = None
        result = label_pool(pool, ask, self.promise, stored, leave=self.settings.leaves)
        by = "" if first is None else self.settings.cheap or ""
        made = Prediction(features, result, source.name, len(examples), by)
        self.made.append(made)
        if result.kept is not None and result.learned_anew:
            self._keep(features, source, result.kept)
        return made

    def keeps(self, features: Sequence[Feature]) -> bool:
        """Whether classifiers of an earlier night are there."""
        return self._read(features)[1] is not None

    def _key(self, features: Sequence[Feature]) -> str:
        """Of all that the classifiers were learned from but the examples."""
        asked = [[feature.name, feature.definition] for feature in features]
        settings = self.settings
        return digest_of([asked, self.oracle, settings.votes, settings.embedder or "", settings.cheap or ""])

    def _read(self, features: Sequence[Feature]) -> tuple[dict[str, NDArray[Any]] | None, StoredClassifiers | None]:
        """Of an earlier night; a file that is missing or damaged counts as none."""
        try:
            with np.load(self.folder / PREDICTOR, allow_pickle=False) as file:
                if str(file["key"]) != self._key(features):
                    return None, None
                state = {name: file[name] for name in file.files}
                classifiers = Classifiers(state["weights"], state["trust"], state["bias"])
                return state, StoredClassifiers(classifiers, state["certified"])
        except Exception:  # numpy and zipfile raise anything for a file that they did not write
            return None, None

    def _keep(self, features: Sequence[Feature], source: VectorSource, stored: StoredClassifiers) -> None:
        made = stored.classifiers
        arrays = {"weights": made.weights, "trust": made.trust, "bias": made.bias, "certified": stored.certified}
        self._to_save = {**source.state(), **arrays, "key": np.array(self._key(features))}

    def save(self) -> None:
        """Once the table is written: a run that is killed before goes on with the classifiers it had."""
        if self._to_save is not None:
            arrays = self._to_save
            replace_file(self.folder / PREDICTOR, lambda file: np.savez(file, **arrays), binary=True)
