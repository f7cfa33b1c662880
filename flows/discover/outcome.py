"""The outcome of a discovery, as the run folder holds it."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.metadata import version
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from twothirds.discovery import (
    UNKNOWN,
    Comparison,
    Kind,
    Labels,
    interest_and_distinctness,
    matches_with_truth,
    mean_match_by_chance,
    none_bound,
    normalised,
)
from twothirds.flows.discover.findings import Finding, KnownFeature, Progress, StopReason
from twothirds.flows.discover.known import KnownFeatureInput
from twothirds.flows.discover.profiles import Profile
from twothirds.flows.discover.remaining import PredictedRemaining
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.flows.discover.target import DiscoveryTarget
from twothirds.models import (
    MICRO,
    Answer,
    AnswersUnusable,
    CachedOracle,
    Compare,
    Crowd,
    Feature,
    Label,
    Money,
    ReviewCounts,
    RunLedger,
    Same,
    Votes,
)
from twothirds.reports import LabelledFeature, LabelTable, Source
from twothirds.reports.run import (
    COMPARISON,
    KNOWN,
    LABEL,
    DatasetSummary,
    KnownFeatures,
    OracleSummary,
    PerQuestion,
    RunSummary,
    SameFeatures,
    SkippedExample,
    SteeredBy,
    TargetScore,
    TruthScore,
    Unlabelled,
    UnusableAnswers,
    UnusableCounts,
    write_run,
)
from twothirds.sources import Dataset
from twothirds.store import PROBE

if TYPE_CHECKING:
    from twothirds.store import Totals

VERSIONS = ("prefect", "numpy", "pandas", "sqlalchemy")


@dataclass(frozen=True)
class Outcome:
    settings: DiscoverSettings
    profile: Profile
    dataset: Dataset
    rows: list[int]  # the examples that were compared
    crowd: Crowd
    progress: Progress
    run_id: str
    seconds: float  # that the run took, waiting included
    finished_at: str
    remaining: Votes | None = None  # on the features that are labelled in full, of the examples that were not compared
    in_all: Totals | None = None  # what all calls of this run have paid together
    warnings: Sequence[str] = ()  # that the reader of the results must know
    target: DiscoveryTarget | None = None
    predicted: PredictedRemaining | None = None
    known: Sequence[KnownFeatureInput] = ()
    cheap: CachedOracle | None = None  # who labelled first what was not compared
    steered: Sequence[SteeredBy] = ()  # what people wanted while it ran
    unlabelled: Unlabelled | None = None  # examples that were to be labelled

    @property
    def spent(self) -> RunLedger:
        return self.crowd.ledger

    def features(self) -> list[dict[str, Any]]:
        findings = self.progress.known
        marks = interest_and_distinctness(
            [finding.labels for finding in findings],
            self.settings.rare,
            repeats=[finding.repeats for finding in findings],
            doubtful=[not finding.consistent for finding in findings],
        )
        return [
            {
                "order": order,
                "name": finding.feature.name,
                "definition": finding.feature.definition,
                "question": finding.question,
                "examples": " ".join(self._ids(finding)),
                "positives": int((labels == 1).sum()),
                "labelled": int((labels != UNKNOWN).sum()),
                "sampled_positives": int((finding.labels == 1).sum()),
                "sampled": len(self.rows),
                "interesting": interesting,
                "distinct": distinct,
                "consistent": finding.consistent,
                "twin": str(finding.twin or ""),
                "look": finding.dropped,
                "added_by": finding.by,
                "cost_usd": cost / MICRO,
            }
            for order, (finding, (interesting, distinct), labels, cost) in enumerate(
                zip(findings, marks, self._all_labels(), self._costs(), strict=True), start=1
            )
        ]

    def _costs(self) -> list[int]:
        """Of each feature, the labels of the examples that were not compared included."""
        return [
            finding.cost + sum(vote.own_cost for vote in _remaining_votes(self.remaining, finding.feature))
            for finding in self.progress.known
        ]

    def summary(self) -> RunSummary:
        progress = self.progress
        return RunSummary(
            settings=self.settings.model_dump(mode="json"),
            dataset=DatasetSummary(
                name=self.dataset.name,
                digest=self.dataset.digest,
                examples=len(self.dataset.examples),
                compared=len(self.rows),
                compared_ids=self._compared_ids(),
                left_out=[SkippedExample(id=left.id, reason=left.reason) for left in self.dataset.quarantined],
            ),
            oracle=OracleSummary(**self.crowd.identity.to_json()),
            run_id=self.run_id,
            scope=self.spent.scope,
            queries=progress.queries,
            features=len(progress.findings),
            interesting_distinct=progress.interesting_distinct,
            repeated_names=progress.repeated,
            g=progress.g,
            g_curve=progress.g_curve,
            unresolved=progress.unresolved,
            stopped_because=str(progress.stopped),
            cost_usd=self.spent.cost / MICRO,
            paid_calls=self.spent.paid_calls,
            cached_calls=self.spent.cached_calls,
            seconds=self.seconds,
            finished_at=self.finished_at,
            versions={"python": platform.python_version()} | {name: version(name) for name in VERSIONS},
            **self._sometimes(),
        )

    def _sometimes(self) -> dict[str, Any]:
        """The fields of the summary that only some runs have."""
        progress, settings = self.progress, self.settings
        fields: dict[str, Any] = {}
        if self.spent.in_doubt:
            fields["unknown_usd"] = self.spent.in_doubt / MICRO
        if progress.doubtful:
            fields["doubtful"] = progress.doubtful
        if self.unlabelled is not None:
            fields["unlabelled"] = self.unlabelled
        if self.warnings:
            fields["warnings"] = list(self.warnings)
        if self.in_all is not None:
            fields |= {"total_usd": self.in_all.paid / MICRO, "total_paid_calls": self.in_all.paid_calls}
            fields["booked_usd"] = _booked_for(self.in_all.paid_by_kind)
        if self.predicted is not None:
            fields["predicted"] = self.predicted.summary
        if progress.known_features:
            fields["given"] = self._known_part()
        if self.steered:
            fields["steered"] = list(self.steered)
        if self.profile.features > 1:
            fields["per_question"] = self._per_question()
        if settings.ask_same:
            fields["same"] = SameFeatures(
                asked=sum(len(finding.checks) for finding in progress.findings),
                usd=sum(answer.own_cost for finding in progress.findings for answer in finding.checks) / MICRO,
                features=sum(finding.repeats for finding in progress.findings),
            )
        if settings.voters > 1:
            fields["voters_agree"] = voters_agree(progress.asked)
        if len(self.crowd.members) > 1:
            fields["people"] = self._asked_of_people(self.crowd.review.counts if self.crowd.review else ReviewCounts())
        uniform = settings.strategy == "adaptive-triple" and settings.voters == 1
        if progress.stopped is StopReason.NONES and uniform:
            share = none_bound(progress.nones_in_a_row)
            fields["nones_prove"] = (
                f"{progress.nones_in_a_row} NONEs in a row: with 95 % confidence at most {share:.1%} of the "
                "unresolved triples still yield a feature"
            )
        if self.target is not None:
            fields["target"] = self._target_score(self.target)
        if self.dataset.truth is not None:
            fields["truth"] = self._against_truth(self.dataset.truth.matrix)
        return fields | {"unusable": self.unusable}

    @cached_property
    def _order(self) -> dict[str, int]:
        return {finding.feature.name: order for order, finding in enumerate(self.progress.known)}

    def _asked_of_people(self, asked: ReviewCounts) -> dict[str, int]:
        """With the number of all labels where the labeller's were put to people."""
        counts = asdict(asked)
        if asked.escalated or asked.checked:
            labels = {_cell(answer) for answer in answers_in_order(self.progress, self.remaining)} - {("", "")}
            counts["labels"] = len(labels)
        return counts

    @cached_property
    def unusable(self) -> UnusableAnswers:
        vote_counts = UnusableCounts()
        for answer in answers_in_order(self.progress, self.remaining):
            if answer.note == KNOWN:
                continue
            by = answer.by if len(self.crowd.members) > 1 else str(self.crowd.identity)
            kind = COMPARISON if isinstance(answer.question, Compare) else LABEL
            vote_counts.count(by, kind, answer.verdict.value, answer.note)
        return vote_counts.summary()

    def raise_if_unusable(self, written: Path) -> None:
        """Call it once what was found is written."""
        if self.unusable.too_many:
            raise AnswersUnusable.leaving(written, self.unusable.lines()[0])

    def _per_question(self) -> PerQuestion:
        answers = [answer for _, answer in self.progress.asked]
        return PerQuestion(
            most=self.profile.features,
            named=sum(len(answer.features) for answer in answers),
            features=round(len(self.progress.findings) / max(len(answers), 1), 3),
        )

    def _known_part(self) -> KnownFeatures:
        features = self.progress.known_features
        votes = [answer for known in features for answer in known.votes]
        votes += [answer for known in features for answer in _remaining_votes(self.remaining, known.feature)]
        asked = [answer for answer in votes if answer.note != KNOWN]
        return KnownFeatures(
            features=len(features),
            labels_taken=len({_cell(answer) for answer in votes if answer.note == KNOWN}),
            labels_asked=len({_cell(answer) for answer in asked}),
            cost_usd=sum(answer.own_cost for answer in asked) / MICRO,
            g=self.progress.g_known,
            labels_from={known.feature.name: known.source or "oracle" for known in self.known},
            **({"by": by} if (by := {known.feature.name: known.by for known in features if known.by}) else {}),
        )

    def answers(self) -> Iterator[dict[str, Any]]:
        by_people = self.crowd.is_by_people
        said = answers_in_order(self.progress, self.remaining)
        return (answer_row(answer, self._order, by_people) for answer in said)

    def write(self, folder: Path) -> None:
        write_run(
            folder,
            summary=self.summary(),
            features=self.features(),
            labels=self.label_table(),
            answers=self.answers(),
        )

    def label_table(self) -> LabelTable:
        """Of every example of the data set; votes are in answers.jsonl."""
        examples, features = self.dataset.examples, [finding.feature for finding in self.progress.known]
        value = np.array(self._all_labels(), np.int8).reshape(len(features), len(examples))
        chances = np.full(value.shape, np.nan, np.float32)
        if self.predicted is not None:
            chances[:, np.setdiff1d(np.arange(len(examples)), self.rows)] = self.predicted.chances.T
        predicted, asked = ~np.isnan(chances), np.where(value == UNKNOWN, Source.NONE, Source.ASKED)
        return LabelTable.of(
            [example.id for example in examples],
            [example.digest for example in examples],
            [LabelledFeature(feature.name, feature.definition) for feature in features],
            value,
            source=np.where(predicted, Source.PREDICTED, asked).astype(np.uint8),
            probability=chances,
        )

    def _ids(self, finding: KnownFeature | Finding) -> list[str]:
        return [self.dataset.examples[self.rows[row]].id for row in finding.asked]

    def _compared_ids(self) -> list[str] | None:
        """Of the subset; None where every example was compared."""
        n = len(self.dataset.examples)
        return None if len(self.rows) == n else [self.dataset.examples[row].id for row in self.rows]

    def _all_labels(self) -> list[Labels]:
        """Of each feature for every example of the data set; unknown where it was not asked."""
        n = len(self.dataset.examples)
        not_compared = np.setdiff1d(np.arange(n), self.rows)
        asked, remaining = dict[Feature, int](), np.zeros((0, n), np.int8)
        if self.remaining is not None:
            asked = {feature: place for place, feature in enumerate(self.remaining.features)}
            remaining = self.remaining.labels
        everywhere = []
        for order, finding in enumerate(self.progress.known):
            labels = np.full(n, UNKNOWN, np.int8)
            labels[self.rows] = finding.labels
            if (place := asked.get(finding.feature)) is not None:
                labels[not_compared] = remaining[place]
            if self.predicted is not None:
                chances, guessed = self.predicted.chances[:, order], self.predicted.labels[:, order]
                labels[not_compared] = np.where(np.isnan(chances), labels[not_compared], guessed)
            everywhere.append(labels)
        return everywhere

    def _against_truth(self, truth: Labels) -> TruthScore:
        """Of the features that are labelled in full."""
        found = [
            labels
            for finding, labels in zip(self.progress.known, self._all_labels(), strict=True)
            if not finding.dropped
        ]
        if not found:
            return TruthScore(matched=0, of=truth.shape[1], mean_balanced_accuracy=None, by_chance=None)
        labels = np.stack(found)
        match = matches_with_truth(labels, truth.T)
        return TruthScore(
            matched=match.matched,
            of=truth.shape[1],
            mean_balanced_accuracy=round(match.mean_balanced_accuracy, 6),
            by_chance=round(mean_match_by_chance(labels, truth.T, self.settings.seed), 6),
        )

    def _target_score(self, target: DiscoveryTarget) -> TargetScore:
        progress = self.progress
        after = [known.after for known in progress.known_features] + [
            progress.asked_until(finding) for finding in progress.findings
        ]
        scored = target.score(self._all_labels(), after, progress.queries, self.settings.seed)
        return TargetScore(column=target.column, classes=list(target.classes), **asdict(scored))


def voters_agree(asked: Sequence[tuple[Comparison, Answer]]) -> float | None:
    """The share of pairs of voters who, asked the same, name the same feature: salience, where it is high; diversity,
    where it is low. Pairs who both find nothing are left out; None where no pair is left."""
    named: dict[Comparison, list[str | None]] = {}
    for comparison, answer in asked:
        named.setdefault(comparison, []).append(normalised(answer.feature.name) if answer.feature else None)
    pairs = [pair for names in named.values() for pair in combinations(names, 2) if any(pair)]
    return sum(first == second for first, second in pairs) / len(pairs) if pairs else None


def _cell(answer: Answer) -> tuple[str, str]:
    """The feature and the example of a label."""
    question = answer.question
    return (question.feature.name, question.example.id) if isinstance(question, Label) else ("", "")


def _remaining_votes(remaining: Votes | None, feature: Feature) -> list[Answer]:
    return [] if remaining is None else remaining.answers_on(feature)


def answers_in_order(progress: Progress, remaining: Votes | None) -> Iterator[Answer]:
    for _, answer in progress.asked:
        yield answer
    for finding in progress.known:
        yield from sorted(finding.votes, key=_place)
        yield from finding.checks
    for feature in () if remaining is None else remaining.features:
        yield from sorted(_remaining_votes(remaining, feature), key=_place)


def answer_row(answer: Answer, order: Mapping[str, int], by_people: Callable[[Label], bool]) -> dict[str, Any]:
    """`order` is that of the features, by name."""
    question = answer.question
    asked: dict[str, Any] = {"kind": question.kind.value}
    if isinstance(question, Compare):
        asked |= {
            "examples": [example.id for example in question.examples],
            "without": [example.id for example in question.without],
            "known": list(question.known),
            **({"exclude": list(question.exclude)} if question.exclude else {}),
            **({"most": question.most} if question.most > 1 else {}),
        }
    elif isinstance(question, Same):
        other, feature = sorted((feature.name for feature in question.pair), key=lambda name: order.get(name, -1))
        asked |= {"feature": feature, "other": other}
    elif isinstance(question, Label):
        asked |= {"feature": question.feature.name, "example": question.example.id}
        if question.exemplars:
            asked["exemplars"] = [[exemplar.example.id, exemplar.has] for exemplar in question.exemplars]
        if by_people(question):
            asked["people"] = True
    return {"question": asked | {"voter": question.voter}, "answer": answer.to_json() | {"cost": answer.own_cost}}


def _booked_for(paid_by_kind: Mapping[str, Money]) -> dict[str, float]:
    """In US dollars: what the books hold of questions, of labels, and of finding out what a server can do."""
    sums = dict.fromkeys(("questions", "labels", "probes"), 0)
    for kind, paid in paid_by_kind.items():
        sums["labels" if kind == Kind.LABEL else "probes" if kind == PROBE else "questions"] += paid
    return {purpose: paid / MICRO for purpose, paid in sums.items()}


def _place(answer: Answer) -> tuple[str, int]:
    question = answer.question
    return (question.example.id if isinstance(question, Label) else "", question.voter)
