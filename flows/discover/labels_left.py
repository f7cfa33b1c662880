"""Labels that are still to be paid: what a budget leaves room for before the next question, and what a run lacks that
ended before everything was labelled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from twothirds.flows.discover.findings import Progress
from twothirds.flows.discover.forecast import expected_shares
from twothirds.flows.discover.preparation import Prepared
from twothirds.flows.estimate import (
    LIKELY,
    Asked,
    LabelPlan,
    Pricing,
    draw,
    made_up_features,
    unanswered_by,
)
from twothirds.models import MICRO, Compare, Feature, Label, Money, Same, Votes
from twothirds.reports.run import Unlabelled
from twothirds.sources import Example

SAMPLE = 40  # examples whose labels are priced for all


@dataclass(frozen=True, eq=False)
class LabelsLeft:
    """Of one run, at the prices that are usual by now. Nothing is sent."""

    prepared: Prepared

    def afford(self, questions: Sequence[Compare], waiting: Sequence[Feature], progress: Progress, left: Money) -> bool:
        """Whether what is `left` of the budget likely pays for these questions and for all labels of what is found by
        then. `waiting` are features that are named and not labelled yet. Questions with stored answers cost nothing,
        and the first one is asked in any case: a price that is foreseen is not certain."""
        pricing = self._pricing()
        asked = pricing.unanswered(questions)
        if not asked or not progress.queries:
            return True
        expected = made_up_features(max(1, LIKELY.named(self.prepared.profile.features * len(asked))))
        foreseen, _ = pricing.total(self._with_labels(questions, [*waiting, *expected], progress), LIKELY)
        bound = (
            foreseen.most // round(foreseen.requests) if foreseen.requests else 0
        )  # at which the last request is reserved
        return foreseen.cost + bound <= left

    def _with_labels(self, questions: Sequence[Compare], new: Sequence[Feature], progress: Progress) -> Iterator[Asked]:
        prepared, votes = self.prepared, self.prepared.settings.votes
        yield Asked(questions)
        if prepared.settings.ask_same:
            yield Asked([Same.of(new[0], new[-1], 0)], LIKELY.doubted * len(new))
        labels, sample = LabelPlan(votes, LIKELY), draw(prepared.compared, SAMPLE)
        yield from labels.of(sample, new, len(prepared.compared) / len(sample))
        if prepared.labelled > len(prepared.compared):
            sample = draw(prepared.remaining, SAMPLE)
            features = [finding.feature for finding in progress.known if not finding.dropped and not finding.repeats]
            times = len(prepared.remaining) / len(sample)
            yield from labels.of_pool(sample, [*features, *new], times, expected_shares(prepared))

    def lacking(self, progress: Progress, remaining: Votes | None, *, predicted: bool) -> Unlabelled | None:
        """What was to be labelled and is not. `remaining` are the votes on the examples that were not compared; where
        labels are `predicted`, these lack nothing."""
        wanted = [finding for finding in progress.known if not finding.dropped]
        features, examples = [finding.feature for finding in wanted], [*self.prepared.compared]
        row_of = {example.id: row for row, example in enumerate(examples)}
        cast = np.zeros((len(wanted), len(examples)), np.bool_)
        for place, finding in enumerate(wanted):
            voted = (vote.question for vote in finding.votes if isinstance(vote.question, Label))
            cast[place, [row_of[label.example.id] for label in voted]] = True
        if self.prepared.labelled > len(examples) and not predicted and wanted:
            examples += self.prepared.remaining
            others = np.zeros((len(wanted), len(self.prepared.remaining)), np.bool_)
            if remaining is not None:
                of = dict(zip(remaining.features, remaining.cast > 0, strict=True))
                others = np.array([of.get(feature, none) for feature, none in zip(features, others, strict=True)])
            cast = np.hstack([cast, others])
        if not wanted or cast.all():
            return None
        rows = np.flatnonzero(~cast.all(axis=0)).tolist()
        none = int((~cast.any(axis=0)).sum())
        cost = self._cost(features, [examples[row] for row in rows], cast[:, rows])
        return Unlabelled(examples=none, partly=len(rows) - none, of=len(examples), usd_about=cost / MICRO)

    def _cost(self, features: Sequence[Feature], examples: Sequence[Example], cast: NDArray[np.bool_]) -> Money:
        """Of the labels that are not cast, features × examples. Those of one example are asked together."""
        some = range(0, len(examples), ceil(len(examples) / SAMPLE))
        known = frozenset(
            (features[place], examples[row].digest) for row in some for place in np.flatnonzero(cast[:, row]).tolist()
        )
        plan = LabelPlan(self.prepared.settings.votes, LIKELY, known)
        asked = plan.of([examples[row] for row in some], features, len(examples) / len(some))
        return self._pricing().total(asked, LIKELY)[0].cost

    def _pricing(self) -> Pricing:
        members = self.prepared.members
        return Pricing(members, unanswered_by(members, self.prepared.store))
