"""From similarities to log-odds that a phrase holds for an image, and the phrase that answers a comparison best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from discovery import Kind, differs_clearly
from models.contrastive.embeddings import Embeddings
from models.oracle import Compare
from sources import Example

Patterns = NDArray[np.bool_]  # one row per way to answer: which examples have the feature, then those of `without`


@dataclass(frozen=True, slots=True)
class Fit:
    phrase: int
    probability: float  # that the phrase holds for exactly the examples in `shown`
    shown: tuple[int, ...]


def patterns_of(question: Compare) -> Patterns:
    shown, without = len(question.examples), len(question.without)
    if question.kind is Kind.LEFT_RIGHT:
        return np.array([[True] * shown + [False] * without])
    having = {Kind.TWO_OF_THREE: 2, Kind.PAIR: 1, Kind.ONE_OF_THREE: 1, Kind.TAG: shown}[question.kind]
    return np.array([[place in chosen for place in range(shown)] for chosen in combinations(range(shown), having)])


def best_fit(logits: NDArray[np.float64], patterns: Patterns, allowed: NDArray[np.bool_]) -> Fit | None:
    """`logits` has a row per example and a column per phrase. None where no phrase is allowed."""
    if not allowed.any():
        return None
    log_yes, log_no = -np.logaddexp(0.0, -logits), -np.logaddexp(0.0, logits)
    scores = patterns @ log_yes + ~patterns @ log_no
    scores[:, ~allowed] = -np.inf
    row, phrase = np.unravel_index(int(np.argmax(scores)), scores.shape)
    shown = tuple(int(place) for place in np.flatnonzero(patterns[row]))
    return Fit(int(phrase), float(np.exp(scores[row, phrase])), shown)


def best_between(logits: NDArray[np.float64], first: int, allowed: NDArray[np.bool_]) -> Fit | None:
    """The phrase whose expected share differs most between the `first` examples and the others; None if none clearly
    does. Its probability is that it is true of an example where it is said to be."""
    likely = np.exp(-np.logaddexp(0.0, -logits))
    has = likely > 0.5
    difference = np.abs(likely[:first].mean(axis=0) - likely[first:].mean(axis=0))
    difference[~(allowed & differs_clearly(has[:first], has[first:]))] = -np.inf
    phrase = int(difference.argmax()) if difference.size else 0
    if not difference.size or not np.isfinite(difference[phrase]):
        return None
    shown = np.flatnonzero(has[:, phrase])
    return Fit(phrase, float(likely[shown, phrase].mean()), tuple(shown.tolist()))


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
