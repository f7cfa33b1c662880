"""From similarities to log-odds: how likely it is, by a contrastive model, that a phrase holds for a picture."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from models.embeddings import Embeddings
from sources.example import Example

LogOdds = NDArray[np.float64]  # a row per example, a column per prompt

NEGATED, NEUTRAL = "a picture without {}", "a picture"
ENOUGH_TO_CENTRE = 8  # phrases whose mean says what all phrases of the model have in common


def log_odds(embeddings: Embeddings, examples: Sequence[Example], prompts: Sequence[str]) -> LogOdds:
    """SigLIP gives them itself. CLIP only compares: the prompt against the mean of a negated and a neutral one."""
    images = embeddings.images(examples).astype(np.float64)
    model = embeddings.embedder
    logits: LogOdds = model.scale * images @ embeddings.texts(prompts).T + model.bias
    if model.sigmoid:
        return logits
    negated: LogOdds = model.scale * images @ embeddings.texts([NEGATED.format(prompt) for prompt in prompts]).T
    neutral: LogOdds = model.scale * images @ embeddings.texts([NEUTRAL]).T
    refuted: LogOdds = np.logaddexp(negated, neutral) - np.log(2.0)
    return logits - refuted


def probability(log_odds: LogOdds) -> NDArray[np.float64]:
    return np.exp(-np.logaddexp(0.0, -log_odds))


def closeness(embeddings: Embeddings, names: Sequence[str], others: Sequence[str]) -> NDArray[np.float64]:
    """Cosines of phrases, a row per name. What all names share is taken out: CLIP finds any two phrases alike."""
    ours, theirs = (embeddings.texts(list(texts)).astype(np.float64) for texts in (names, others))
    if len(names) >= ENOUGH_TO_CENTRE:
        common = ours.mean(axis=0)
        ours, theirs = ours - common, theirs - common
    norms = np.linalg.norm(ours, axis=1)[:, None] * np.linalg.norm(theirs, axis=1)
    cosines: NDArray[np.float64] = ours @ theirs.T / np.maximum(norms, 1e-12)
    return cosines
