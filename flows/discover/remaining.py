"""Label the examples that were not compared: whole rows, all features of an example together, or predict them where
that is certified."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery import UNKNOWN
from twothirds.flows.discover.findings import Progress
from twothirds.flows.discover.preparation import Prepared
from twothirds.flows.predicting import AskingStopped, Prediction, predict_labels
from twothirds.flows.progress import Display
from twothirds.flows.settings import Environment
from twothirds.models import Answer, Ballot, Feature, Labelled, Oracle, OracleUnavailable, Panel, mean_chances
from twothirds.models.predicted import Cells, groups_of, leanings
from twothirds.sources import Example

AT_ONCE = 8_192  # labels in one task: what is in flight is held in memory
LabelTask = Callable[[Panel, list[Feature]], Labelled]


def label_rest(
    prepared: Prepared,
    oracle: Oracle,
    progress: Progress,
    label: LabelTask,
    on_answer: Callable[[Answer], None] = lambda _: None,
) -> list[Ballot]:
    """Put the features to the examples that were not compared: one ballot per feature, in their order.

    If something ends it, which `progress.message` then says, the ballots hold what was answered until then."""
    remaining, votes = prepared.remaining, prepared.settings.votes
    if remaining:
        progress.drop_repeats()
    features = [finding.feature for finding in progress.known if not finding.dropped]
    if not remaining or not features or progress.message:
        return []
    every = [
        Ballot.empty(finding.feature, len(remaining)) for finding in progress.known
    ]  # those that are not wanted stay empty
    ballots = [ballot for ballot, finding in zip(every, progress.known, strict=True) if not finding.dropped]
    step = max(1, max(AT_ONCE, oracle.width) // (len(features) * votes))
    with prepared.display.counting(len(remaining), "other examples labelled"):
        for first in range(0, len(remaining), step):
            examples = remaining[first : first + step]
            count = _counting(prepared.display, first, len(examples), len(features), on_answer)
            labelled = label(Panel(oracle, examples, votes, count), features)
            for ballot, part in zip(ballots, labelled.ballots, strict=True):
                ballot.join(first, part)
            progress.stop(labelled.stopped)
            if labelled.stopped is not None:
                break
    return every


def _counting(
    display: Display, first: int, examples: int, features: int, on_answer: Callable[[Answer], None]
) -> Callable[[Answer], None]:
    """Shows how far one task is."""
    answers = itertools.count(1)

    def count(answer: Answer) -> None:
        on_answer(answer)
        rows, more = divmod(next(answers), features)
        if not more:
            display.update(first + min(rows, examples), f"{features} features each")

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
    oracle: Oracle,
    progress: Progress,
    label: LabelTask,
    first: Oracle | None = None,
    on_answer: Callable[[Answer], None] = lambda _: None,
) -> tuple[list[Ballot], PredictedRemaining | None]:
    """The ballots of what was asked, and what was predicted; None where something ended it first, which
    `progress.message` then says. What was compared is learned from; features that are dropped stay as they are.
    `first` is a cheaper oracle that answers everything first."""
    ballots = [Ballot.empty(finding.feature, len(prepared.remaining)) for finding in progress.known]
    if prepared.remaining:
        progress.drop_repeats()
    places = [place for place, finding in enumerate(progress.known) if not finding.dropped]
    if not prepared.remaining or not places or progress.message:
        return [], None
    labelling = _RemainingLabels(prepared, oracle, [ballots[place] for place in places], label, on_answer)
    known = np.stack([progress.known[place].labels for place in places], axis=1)
    try:
        with prepared.display.waiting("predicting labels, or asking where that is not certified"):
            made = labelling.predict(known, first)
        not_compared = np.setdiff1d(np.arange(len(prepared.dataset.examples)), prepared.rows)
        for place, known_feature in enumerate(prepared.known):  # the first of the features
            if place in places:
                labelling.take_known(made, places.index(place), known_feature.labels[not_compared] != UNKNOWN)
    except (AskingStopped, OracleUnavailable) as stopped:
        progress.stop(stopped.error if isinstance(stopped, AskingStopped) else stopped)
        return ballots, None
    shape = (len(prepared.remaining), len(ballots))
    labels, chances = np.full(shape, UNKNOWN, np.int8), np.full(shape, np.nan)
    labels[:, places], chances[:, places] = made.result.labels[len(known) :], made.result.chances[len(known) :]
    summary = made.to_json(known=len(known)) | {"certificates": made.certificates()}
    return ballots, PredictedRemaining([ballot.feature for ballot in ballots], labels, chances, summary)


class _RemainingLabels:
    """`ballots` are those of the features that are labelled, about the examples that were not compared."""

    def __init__(
        self,
        prepared: Prepared,
        oracle: Oracle,
        ballots: list[Ballot],
        label: LabelTask,
        on_answer: Callable[[Answer], None],
    ) -> None:
        self._settings, self._oracle, self._label, self._ballots = prepared.settings, oracle, label, ballots
        self._features = [ballot.feature for ballot in ballots]
        self._examples: tuple[Example, ...] = (*prepared.compared, *prepared.remaining)
        self._compared, self._on_answer = len(prepared.compared), on_answer
        self._number = prepared.store.runs.sampling_number(prepared.scope)

    def predict(self, known: NDArray[np.int8], first: Oracle | None) -> Prediction:
        return predict_labels(
            self._examples,
            self._features,
            self._settings,
            self._number,
            Environment.read().cache / "embeddings",
            self._ask,
            partial(self._first_answers, first) if first is not None else None,
            known=known,
        )

    def _first_answers(self, first: Oracle) -> NDArray[np.float32]:
        cells = np.ones((len(self._examples), len(self._features)), np.bool_)
        answers = np.zeros(cells.shape, np.float32)

        def take(rows: NDArray[np.intp], columns: NDArray[np.intp], ballots: list[Ballot]) -> None:
            labels = np.stack([ballot.labels for ballot in ballots], axis=1)
            examples = [self._examples[row] for row in rows]
            answers[np.ix_(rows, columns)] = leanings(labels, mean_chances(ballots, examples))

        self._put(first, 1, cells, take)
        return answers

    def _ask(self, cells: Cells) -> NDArray[np.int8]:
        labels = np.full(cells.shape, UNKNOWN, np.int8)

        def take(rows: NDArray[np.intp], columns: NDArray[np.intp], ballots: list[Ballot]) -> None:
            for column, part in zip(columns.tolist(), ballots, strict=True):
                self._ballots[column].add(rows - self._compared, part)
                labels[rows, column] = part.labels

        self._put(self._oracle, self._settings.votes, cells, take)
        return labels

    def take_known(self, made: Prediction, column: int, known: NDArray[np.bool_]) -> None:
        """A label that was given with the feature needs no prediction, and is not left out."""
        result, cells = made.result, np.zeros_like(made.result.asked)
        cells[self._compared :, column] = known & ~result.asked[self._compared :, column]
        if cells.any():
            result.labels[cells] = self._ask(cells)[cells]
            result.chances[cells], result.asked[cells] = np.nan, True

    def _put(
        self,
        oracle: Oracle,
        votes: int,
        cells: Cells,
        take: Callable[[NDArray[np.intp], NDArray[np.intp], list[Ballot]], None],
    ) -> None:
        """Put cells to an oracle, those with the same features together. Raises AskingStopped after what came."""
        for rows, columns in groups_of(cells, AT_ONCE // votes):
            panel = Panel(oracle, [self._examples[row] for row in rows], votes, self._on_answer)
            labelled = self._label(panel, [self._features[column] for column in columns])
            take(rows, columns, list(labelled.ballots))
            if labelled.stopped is not None:
                raise AskingStopped(labelled.stopped)
