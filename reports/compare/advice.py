"""A model against people: what a model, people, or a model with people where it is in doubt would cost and give;
whether the model may replace one of them, and what people's labels correct."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery import UNKNOWN
from twothirds.discovery.statistics import (
    EPSILON,
    AltTest,
    Corrected,
    Estimate,
    Setting,
    Side,
    alone,
    alt_test,
    chance_of_right,
    cheapest,
    corrected_share,
    escalated,
    share,
)
from twothirds.reports.compare.labels import chances_of_right
from twothirds.reports.compare.study import LabelMatrix, Rater, Reference, Study

COMPLETE_SHARE = 0.95  # of the examples labelled by people: a part of their labels is then held back
USED_ONE_IN = 5  # one in so many is used
VOTE_COUNTS = (1, 3, 5, 7, 9, 15, 25)
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Advice:
    model: str
    people: str
    wanted: float
    settings: list[Setting] = field(default_factory=list)
    best: Setting | None = None  # the cheapest that reaches the wanted accuracy
    confirmed: float | None = None  # accuracy of what each half of the examples would choose, on the other half
    labels: int = 0  # it is worked out from
    reason: str = ""  # why there is none
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "people": self.people,
            "wanted_accuracy": self.wanted,
            "cheapest": self.best.to_json() if self.best else None,
            "confirmed_accuracy": self.confirmed,
            "labels": self.labels,
            "reason": self.reason,
            "notes": list(self.notes),
            "settings": [setting.to_json() for setting in self.settings],
        }


@dataclass(frozen=True, eq=False)
class _Labels:
    """All labels of which the truth, a model's vote and a person's vote are known, in one row."""

    model: Side
    people: Side
    doubt: Floats | None  # None where the model never says how sure it is
    other: Floats | None  # 1 where another model says otherwise
    other_cost: float
    after: dict[int, tuple[Floats, Floats]]  # people's votes → chance of right after a right and after a wrong first
    example: NDArray[np.int64]

    def over(self, rows: NDArray[np.bool_]) -> _Labels:
        return _Labels(
            model=self.model.over(rows),
            people=self.people.over(rows),
            doubt=None if self.doubt is None else self.doubt[rows],
            other=None if self.other is None else self.other[rows],
            other_cost=self.other_cost,
            after={votes: (right[rows], wrong[rows]) for votes, (right, wrong) in self.after.items()},
            example=self.example[rows],
        )


def advice(study: Study, reference: Reference, model: Rater, people: Rater) -> Advice:
    reason = _why_no_advice(reference, model, people)
    labels = None if reason else _labels(study, reference, model, people)
    if labels is None:
        reason = reason or "no label has a model's vote, a person's vote and something to be measured against"
        return Advice(model.name, people.name, study.accuracy, reason=reason)
    settings = _settings(labels)
    best = cheapest(settings, study.accuracy)
    no_doubt = f"{model.name} gives neither probabilities nor a second vote: it cannot say where it is in doubt."
    return Advice(
        model.name,
        people.name,
        study.accuracy,
        settings=settings,
        best=best,
        confirmed=_confirmed(study, labels) if best else None,
        labels=len(labels.example),
        notes=(no_doubt,) if labels.doubt is None else (),
    )


def _why_no_advice(reference: Reference, model: Rater, people: Rater) -> str:
    """Who has given no vote, is right by definition or has no price can be weighed against nothing."""
    for rater in (model, people):
        if not (rater.sheet.yes + rater.sheet.no).any():
            return f"{rater.name} gave no vote"
    if reference.kind == "people":
        return f"{people.name}'s own majority is what labels are measured against, so its votes are right by definition"
    if people.usd_per_vote == 0:
        return f"votes of {people.name} have no price here: give them one (?price=USD) to weigh cost"
    return ""


def _labels(study: Study, reference: Reference, model: Rater, people: Rater) -> _Labels | None:
    if reference.labels is None:
        return None
    true = reference.labels
    known = (true != UNKNOWN) & (model.sheet.yes + model.sheet.no > 0) & (people.sheet.yes + people.sheet.no > 0)
    if not known.any():
        return None

    def side(oracle: Rater) -> Side:
        most = oracle.sheet.most_votes
        numbers = sorted({votes for votes in VOTE_COUNTS if votes < most} | {most})
        right = {votes: chances_of_right(oracle, true, votes)[known] for votes in numbers}
        return Side(oracle.name, right, oracle.usd_per_vote)

    chances = model.sheet.chances[known]
    unsaid = np.isnan(chances)  # one vote where there should be more: doubt as large as can be
    doubt = None if unsaid.all() else np.where(unsaid, 1.0, 1 - 2 * np.abs(chances - 0.5))
    second = next((other for other in study.models if other is not model), None)
    of_people = side(people)
    return _Labels(
        model=side(model),
        people=of_people,
        doubt=doubt,
        other=(second.sheet.labels != model.sheet.labels)[known].astype(np.float64) if second else None,
        other_cost=second.usd_per_vote * max(second.sheet.most_votes, 1) if second else 0.0,
        after={votes: _after(people, true, votes, known) for votes in of_people.right if votes > 1},
        example=np.broadcast_to(np.arange(true.shape[1]), true.shape)[known],
    )


def _after(people: Rater, true: NDArray[np.int8], votes: int, known: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    right, wrong = np.zeros(true.shape), np.zeros(true.shape)
    for place, votes_cast in enumerate(people.sheet.votes):
        right[place] = chance_of_right(votes_cast, true[place], votes, first_right=True)
        wrong[place] = chance_of_right(votes_cast, true[place], votes, first_right=False)
    return np.nan_to_num(right[known]), np.nan_to_num(wrong[known])  # where a first vote cannot be so, its weight is 0


def _settings(labels: _Labels) -> list[Setting]:
    settings = [*alone(labels.model, "model"), *alone(labels.people, "people")]
    most = max(labels.model.right)
    if labels.doubt is not None:
        settings += escalated(labels.model, most, labels.people, labels.doubt, "uncertainty")
    if labels.other is not None:
        settings += [
            _dearer(setting, labels.other_cost)
            for setting in escalated(labels.model, most, labels.people, labels.other, "disagreement")
            if setting.escalated < 1
        ]
    settings += [_checked(labels, votes) for votes in labels.after]
    return settings


def _dearer(setting: Setting, cost: float) -> Setting:
    who = setting.who.replace("where in doubt", "where two models differ")
    return replace(setting, who=who, threshold=None, cost=setting.cost + cost)


def _checked(labels: _Labels, votes: int) -> Setting:
    """One person looks at every label; where the two differ, more people do."""
    model, people = labels.model, labels.people
    most = max(model.right)
    right, person = model.right[most], people.right[min(people.right)]
    after_right, after_wrong = labels.after[votes]
    differ = right * (1 - person) + (1 - right) * person
    accuracy = right * (person + (1 - person) * after_wrong) + (1 - right) * person * after_right
    share = float(differ.mean())
    cost = most * model.cost_per_vote + (1 + share * (votes - 1)) * people.cost_per_vote
    who = f"{model.name}, one of {people.name} checks, {votes} where the two differ ({share:.0%})"
    return Setting(
        who=who,
        kind="disagreement",
        model_votes=most,
        people_votes=votes,
        escalated=1.0,
        threshold=None,
        cost=cost,
        accuracy=float(accuracy.mean()),
    )


def _confirmed(study: Study, labels: _Labels) -> float | None:
    """Choose on one half of the examples, count on the other, both ways; None where a half finds nothing."""
    half = study.rng(8).permutation(len(study.ids)) % 2 == 0
    chosen = half[labels.example]
    found = []
    for mine in (chosen, ~chosen):
        if mine.all() or not mine.any():
            return None
        best = cheapest(_settings(labels.over(mine)), study.accuracy)
        if best is None:
            return None
        accuracy = _accuracy_of(labels.over(~mine), best)
        if accuracy is None:
            return None
        found.append(accuracy)
    return float(np.mean(found))


def _accuracy_of(labels: _Labels, chosen: Setting) -> float | None:
    """What a setting that was chosen elsewhere gives on these labels; None where they do not allow it."""
    if chosen.threshold is not None and labels.doubt is not None:
        people, model = labels.people.right[chosen.people_votes], labels.model.right[chosen.model_votes]
        return float(np.where(labels.doubt >= chosen.threshold, people, model).mean())
    return next((setting.accuracy for setting in _settings(labels) if _key(setting) == _key(chosen)), None)


def _key(setting: Setting) -> tuple[str, int, int, bool]:
    """Identifies a setting on any labels; where two models differ only a part goes to people."""
    return setting.kind, setting.model_votes, setting.people_votes, setting.escalated == 1


@dataclass(frozen=True, eq=False)
class Versus:
    model: str
    people: str
    test: AltTest  # all labels together, each feature of an example counting as an instance
    test_each: list[AltTest]
    shares: list[Corrected]  # per feature
    held_back: bool  # people labelled everything: only a part was used, and the rest tells how good the estimate is
    known: list[Estimate]  # what people's labels on everything say, where some were held back

    @property
    def saved(self) -> Estimate:
        """People's labels that the model was worth, over all features."""
        known = [corrected.saved.value for corrected in self.shares if corrected.saved.value is not None]
        if not known:
            return Estimate.undefined(self.shares[0].saved.reason if self.shares else "there is no feature")
        return Estimate(float(sum(known)))

    @property
    def sampled(self) -> int:
        return sum(corrected.sampled for corrected in self.shares)

    def to_json(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "people": self.people,
            "alt_test": self.test.to_json(),
            "alt_test_features": [test.to_json() for test in self.test_each],
            "shares": [corrected.to_json() for corrected in self.shares],
            "held_back": self.held_back,
            "known": [estimate.to_json() for estimate in self.known],
            "labels_saved": self.saved.to_json(),
        }


def versus(study: Study, model: Rater, people: Rater) -> Versus:
    epsilon = EPSILON[study.annotators]
    tables = [people.sheet.by_worker(feature) for feature in range(len(study.features))]
    labels = model.sheet.labels
    tests = [alt_test(labels[place], table, people.sheet.workers, epsilon) for place, table in enumerate(tables)]
    if tables:
        together = alt_test(labels.ravel(), np.concatenate(tables), people.sheet.workers, epsilon)
    else:
        together = AltTest(epsilon, (), 0, "there is no feature")
    judged, held_back = _judged(study, people.sheet.labels)
    known = [share(int((row == 1).sum()), int((row != UNKNOWN).sum())) for row in people.sheet.labels]
    return Versus(
        model=model.name,
        people=people.name,
        test=together,
        test_each=tests,
        shares=[corrected_share(row, labelled) for row, labelled in zip(judged, labels, strict=True)],
        held_back=held_back,
        known=known if held_back else [],
    )


def _judged(study: Study, labels: LabelMatrix) -> tuple[LabelMatrix, bool]:
    """People's labels that the estimates may use, and whether some were held back."""
    n = labels.shape[1]
    if not labels.size or (labels != UNKNOWN).any(0).mean() < COMPLETE_SHARE:
        return labels, False
    used = study.rng(7).permutation(n)[: max(n // USED_ONE_IN, min(n, 30))]
    judged = np.full_like(labels, UNKNOWN)
    judged[:, used] = labels[:, used]
    return judged, len(used) < n
