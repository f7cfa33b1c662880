"""Predicted labels in an enrichment: the classifiers of one night serve the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from twothirds.flows.enrich.settings import EnrichSettings
from twothirds.flows.predicting import CellLabels, Prediction, PredictionTerms, State, predict_labels
from twothirds.models import Feature, digest_of
from twothirds.reports.run import replace_file

PREDICTOR = "predictor.npz"


@dataclass
class Predictor:
    """Labels pools of examples, each with its own features; keeps the classifiers for the next night."""

    settings: EnrichSettings
    folder: Path
    cache: Path
    oracle: dict[str, Any]  # its identity
    sampling_number: str = field(repr=False)
    made: list[Prediction] = field(default_factory=list)
    _to_save: State | None = None

    @property
    def used(self) -> list[str]:
        """By what labels were predicted: embedders, and a cheaper oracle that answered first."""
        names = (name for prediction in self.made for name in (prediction.first, prediction.source.name))
        return list(dict.fromkeys(filter(None, names)))

    def certificates(self, version: int) -> list[dict[str, Any]]:
        return [certificate for made in self.made for certificate in made.certificates(version=version)]

    def label(self, asking: CellLabels, first: CellLabels | None) -> Prediction:
        """Raises ExampleChanged where a picture is gone, and whatever `asking` raises."""
        terms = PredictionTerms(self.settings, self.sampling_number, self.cache)
        made = predict_labels(asking, first, terms, state=self.read(asking.features))
        self.made.append(made)
        if made.state is not None:
            self._to_save = {**made.state, "key": np.array(self._key(asking.features))}
        return made

    def _key(self, features: Sequence[Feature]) -> str:
        """Of all that the classifiers were learned from but the examples."""
        asked = [[feature.name, feature.definition] for feature in features]
        settings = self.settings
        return digest_of([asked, self.oracle, settings.votes, settings.embedder or "", settings.cheap or ""])

    def read(self, features: Sequence[Feature]) -> State | None:
        """Of an earlier night; a file that is missing or damaged counts as none."""
        try:
            with np.load(self.folder / PREDICTOR, allow_pickle=False) as file:
                state = {name: file[name] for name in file.files}
            whole = {"key", "weights", "bias", "certified"} <= set(state)
            return state if whole and str(state["key"]) == self._key(features) else None
        except Exception:  # numpy and zipfile raise anything for a file that they did not write
            return None

    def save(self) -> None:
        """Once the table is written: a run that is killed before goes on with the classifiers it had."""
        if self._to_save is not None:
            arrays: dict[str, Any] = self._to_save
            replace_file(self.folder / PREDICTOR, lambda file: np.savez(file, **arrays), binary=True)
