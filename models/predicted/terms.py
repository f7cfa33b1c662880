"""Texts as vectors without a model: TF-IDF of words and pairs of words, reduced by a singular value decomposition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.contrastive import Vectors
from sources import Example

TERMS = "tfidf-1"
MOST_TERMS, MOST_NUMBERS, FITTED_ON = 50_000, 256, 20_000


@dataclass(eq=False)
class TermVectors:
    """Fitted on the texts of one pool; with the state of an earlier one it makes the same vectors."""

    terms: NDArray[np.str_]
    rarity: NDArray[np.float64]
    directions: NDArray[np.float64]
    name: str = TERMS

    @classmethod
    def of(cls, examples: Sequence[Example], state: Mapping[str, NDArray[Any]] | None) -> TermVectors:
        if state is not None and {"terms", "rarity", "directions"} <= set(state):
            return cls(state["terms"], state["rarity"], state["directions"])
        from sklearn.decomposition import TruncatedSVD

        texts = [example.text or "" for example in examples[:: max(1, len(examples) // FITTED_ON)]]
        vectorizer = _vectorizer(max_features=MOST_TERMS, min_df=2 if len(texts) > 50 else 1)
        counted = vectorizer.fit_transform([*texts, "nothing nothing"])  # texts without a word are no error
        numbers = min(MOST_NUMBERS, counted.shape[1] - 1, counted.shape[0] - 1)
        if numbers < 1:
            directions = np.eye(1, counted.shape[1])
        else:
            directions = TruncatedSVD(numbers, random_state=0).fit(counted).components_
        return cls(vectorizer.get_feature_names_out().astype(np.str_), vectorizer.idf_, directions)

    def state(self) -> Mapping[str, NDArray[Any]]:
        return {"terms": self.terms, "rarity": self.rarity, "directions": self.directions}

    def vectors(self, examples: Sequence[Example]) -> Vectors:
        vectorizer = _vectorizer(vocabulary={term: place for place, term in enumerate(self.terms.tolist())})
        vectorizer.idf_ = self.rarity
        reduced = vectorizer.transform([example.text or "" for example in examples]) @ self.directions.T
        length = np.linalg.norm(reduced, axis=1, keepdims=True)
        unit: Vectors = (reduced / np.where(length > 0, length, 1)).astype(np.float32)
        return unit


def _vectorizer(**options: Any) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), **options)
