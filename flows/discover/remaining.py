"""Label the examples that were not compared: whole rows, all features of an example together, or predict them where
that is certified."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery import UNKNOWN
from twothirds.flows.discover.findings import Progress
from twothirds.flows.discover.preparation import Prepared
from twothirds.flows.predicting import AskingStopped, CellLabels, Prediction, PredictionTerms, Put, predict_labels
from twothirds.flows.settings import Environment
from twothirds.models import Answer, Asks, CachedOracle, Feature, LabelBatch, OracleUnavailable, Votes, batches_of
from twothirds.sources import Example

LabelTask = Callable[[Asks, LabelBatch], Votes]


def features_of_remaining(prepared: Prepared, progress: Progress) -> list[Feature]:
    """What is labelled in full: features that repeat others are not paid for beyond the examples that were compared."""
    if not prepared.remaining:
        return []
    progress.drop_repeats()
    return [] if progress.message else [finding.feature for finding in progress.known if not finding.dropped]


def label_remaining(
    prepared: Prepared,
    oracle: Asks,
    progress: Progress,
    label: LabelTask,
    on_answer: Callable[[Answer], None] = lambda _: None,
) -> Votes | None:
    """If something ends it, which `progress.message` then says, the votes are those that were given until then."""
    remaining, count = prepared.remaining, prepared.settings.votes
    features = features_of_remaining(prepared, progress)
    if not features:
        return None
    votes = Votes.empty(features, len(remaining), count)
    with prepared.events.counting(len(remaining), "other examples labelled") as show:
        for rows in batches_of(remaining, len(features), count, least=prepared.members.labels.traits.width):
            examples = remaining[rows]
            heard = _counting(show, rows.start, len(examples), len(features), on_answer)
            part = label(oracle, LabelBatch(examples, features, count, on_answer=heard))
            votes.add(part, range(rows.start, rows.start + len(examples)))
            progress.stop(part.stopped)
            if part.stopped is not None:
                break
    return votes


def _counting(
    show: Callable[[int, str], None], first: int, examples: int, features: int, on_answer: Callable[[Answer], None]
) -> Callable[[Answer], None]:
    """Shows how far one task is."""
    answers = itertools.count(1)

    def count(answer: Answer) -> None:
        on_answer(answer)
        rows, more = divmod(next(answers), features)
        if not more:
            show(first + min(rows, examples), f"{features} features each")

    return count


@dataclass(frozen=True, eq=False)
class PredictedRemaining:
    """Labels of the examples that were not compared, examples × all features found; chances are numbers where
    predicted."""

    features: list[Feature]
    labels: NDArray[np.int8]
    chances: NDArray[np.float64]
    summary: dict[str, Any]  # the part of run.json


def predict_remaining(
    prepared: Prepared,
    oracle: Asks,
    progress: Progress,
    label: LabelTask,
    first: CachedOracle | None = None,
    on_answer: Callable[[Answer], None] = lambda _: None,
) -> tuple[Votes | None, PredictedRemaining | None]:
    """The votes on what was asked, and what was predicted; None where something ended it first, which
    `progress.message` then says. What was compared is learned from; features that are dropped stay as they are.
    `first` is a cheaper oracle that answers everything first."""
    features, settings = features_of_remaining(prepared, progress), prepared.settings
    if not features:
        return None, None
    examples, compared = (*prepared.compared, *prepared.remaining), len(prepared.compared)

    def put_to(asked: Asks, votes: int) -> Put:
        def put(part: Sequence[Example], chosen: Sequence[Feature]) -> Callable[[], Votes]:
            return partial(label, asked, LabelBatch(part, chosen, votes, on_answer=on_answer))

        return put

    asking = CellLabels(put_to(oracle, settings.votes), examples, features, settings.votes)
    cheap = CellLabels(put_to(first, 1), examples, features, 1) if first is not None else None
    places = [place for place, finding in enumerate(progress.known) if not finding.dropped]
    known = np.stack([progress.known[place].labels for place in places], axis=1)
    number = prepared.store.runs.sampling_number(prepared.scope)
    terms = PredictionTerms(settings, number, Environment.read().cache / "embeddings")
    try:
        with prepared.events.waiting("predicting labels, or asking where that is not certified"):
            made = predict_labels(asking, cheap, terms, known=known)
        _take_known(prepared, places, asking, made)
    except (AskingStopped, OracleUnavailable) as stopped:
        progress.stop(stopped.error if isinstance(stopped, AskingStopped) else stopped)
        return asking.votes.of(slice(compared, None)), None
    shape = (len(prepared.remaining), len(progress.known))
    labels, chances = np.full(shape, UNKNOWN, np.int8), np.full(shape, np.nan)
    labels[:, places], chances[:, places] = made.result.labels[compared:], made.result.chances[compared:]
    summary = made.to_json(known=compared) | {"certificates": made.certificates()}
    named = [finding.feature for finding in progress.known]
    return asking.votes.of(slice(compared, None)), PredictedRemaining(named, labels, chances, summary)


def _take_known(prepared: Prepared, places: list[int], asking: CellLabels, made: Prediction) -> None:
    """A label that was given with a feature needs no prediction, and is not left out. The features that were given are
    the first ones."""
    compared, result = len(prepared.compared), made.result
    not_compared = np.setdiff1d(np.arange(len(prepared.dataset.examples)), prepared.rows)
    for place, feature in enumerate(prepared.known):
        if place in places:
            column, cells = places.index(place), np.zeros_like(result.asked)
            known = feature.labels[not_compared] != UNKNOWN
            cells[compared:, column] = known & ~result.asked[compared:, column]
            if cells.any():
                result.labels[cells] = asking.ask(cells)[cells]
                result.chances[cells], result.asked[cells] = np.nan, True
