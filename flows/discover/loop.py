"""The adaptive loop: propose, ask, label, learn, until there is a reason to stop (Algorithm 1 of the paper).

Plain Python: `compare` and `label` are arguments, so the flow passes Prefect tasks and a test passes functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from twothirds.discovery import (
    DIFFERENCE,
    Closeness,
    Comparison,
    Described,
    Duplicates,
    HearsAnswers,
    Labels,
    Strategy,
    find_twin,
    g,
    interesting_and_distinct,
    same_name,
)
from twothirds.flows.discover.findings import EarlierTwin, Finding, KnownFeature, Progress, StopReason
from twothirds.flows.discover.same_questions import SameQuestions
from twothirds.models import (
    Answer,
    Compare,
    Elicited,
    Feature,
    OracleError,
    OracleUnavailable,
    Verdict,
    Votes,
    exemplars_of,
)
from twothirds.sources import Example

REPEATS_IN_A_ROW = 10  # of an oracle that was told what is known: it has nothing more to say
MOST_OVER = 2  # times as many features are asked for as the answer before held: a model that cannot name more shows it


@dataclass(frozen=True)
class Limits:
    queries: int
    target_g: float | None = None
    nones: int | None = None
    voters: int = 1  # who are asked each comparison; each answer is a query
    per_question: int = 1  # features that an answer may hold; after a short one fewer are asked for
    exemplars: int = 0  # that models are shown with a feature when they label
    labels_after: int | None = 1  # comparisons after which what they found is labelled; None: all at the end
    rare: float = DIFFERENCE  # share of the examples in which a feature must differ to count


@dataclass(frozen=True)
class NewLabels:
    """Of features that are labelled together."""

    votes: Votes
    repeats: dict[int, Described]  # by place: the feature that means the same
    stopped: OracleError | None


class Loop:
    def __init__(
        self,
        strategy: Strategy,
        examples: Sequence[Example],
        limits: Limits,
        compare: Callable[[list[Compare]], Elicited],
        label: Callable[[list[Feature]], Votes],
        closeness: Closeness | None = None,
        same: SameQuestions | None = None,
        *,
        known: Sequence[Feature] = (),
        exclude: Sequence[str] = (),
        affords: Callable[[list[Compare], list[Feature]], bool] = lambda _questions, _waiting: True,
    ) -> None:
        """`affords` says whether the budget pays for questions and the labels of what is found by then, with the
        features that wait for theirs."""
        self._strategy = strategy
        self._examples = examples
        self._limits = limits
        self._compare = compare
        self._label = label
        self._closeness = closeness
        self._known_features = list(known)
        self._exclude = tuple(exclude)
        self._same_questions = same
        self._duplicates = Duplicates(same, closeness) if same else None
        self._affords = affords
        self._in_full: list[tuple[Described, Labels]] = []  # what new features may repeat
        self._open: list[tuple[Comparison, Answer]] = []  # answers that are not learned yet
        self._asked_since = 0  # comparisons since the last labels
        self._most = limits.per_question  # features that the next question asks for
        self.progress = Progress()

    def run(self, on_round: Callable[[Progress, list[Finding]], None] = lambda *_: None) -> Progress:
        """`on_round` hears of every answer, or those of all voters, with the features that were labelled since."""
        progress = self.progress
        self._start()
        while True:
            reason = progress.stopped or self._reason_to_stop()
            comparison = None if reason else self._next_question()
            questions = [] if comparison is None else self._put(comparison)
            if questions and not self._affords(questions, self._unlabelled()):
                reason = progress.stopped = StopReason.BUDGET
                questions = []
            if not questions and not self._open:
                break
            if comparison is not None and questions:
                self._ask(comparison, questions)
            round_ends = self._limits.labels_after is not None and self._asked_since >= self._limits.labels_after
            ends = not questions or round_ends or progress.stopped or self._reason_to_stop()
            on_round(progress, self._label_and_learn() if ends else [])
        progress.stopped = reason or StopReason.EXHAUSTED
        progress.unresolved = self._strategy.unresolved
        return progress

    def _next_question(self) -> Comparison | None:
        return next(iter(self._strategy.next_questions(1)), None)

    def _reason_to_stop(self) -> StopReason | None:
        progress, limits = self.progress, self._limits
        if progress.queries >= limits.queries:
            return StopReason.QUERIES
        if limits.target_g is not None and progress.g <= limits.target_g:
            return StopReason.TARGET_G
        if limits.nones is not None and progress.nones_in_a_row >= limits.nones:
            return StopReason.NONES
        if progress.repeats_in_a_row >= REPEATS_IN_A_ROW:
            progress.notice = (
                f"stopped after {progress.queries} of {limits.queries} queries: the last {REPEATS_IN_A_ROW} answers "
                "named known features only; another model, or --about, may bring others"
            )
            return StopReason.REPEATS
        return None

    def _start(self) -> None:
        """Label the features that are given: the first question is about what they leave open."""
        if not self._known_features:
            return
        votes = self._label(self._known_features)
        if isinstance(votes.stopped, OracleUnavailable) and not votes.cast.any():
            raise votes.stopped
        self.progress.stop(votes.stopped)
        for feature, labels in zip(votes.features, votes.labels, strict=True):
            self.progress.known_features.append(KnownFeature(feature, labels, votes.answers_on(feature)))
            self._remember(self.progress.known_features[-1])
            self._strategy.know(feature.name, labels)
        self.progress.g_known = self._g()
        self.progress.unresolved = self._strategy.unresolved

    def _put(self, comparison: Comparison) -> list[Compare]:
        """A question for every voter, as far as questions are left."""
        waiting = [feature.name for feature in self._unlabelled()]
        voters = range(min(self._limits.voters, self._limits.queries - self.progress.queries))
        return [self._question(comparison, voter, waiting) for voter in voters]

    def _ask(self, comparison: Comparison, questions: list[Compare]) -> None:
        """The answers wait to be learned in the order of the questions, however they came in."""
        progress = self.progress
        elicited = self._compare(questions)
        if isinstance(elicited.stopped, OracleUnavailable) and not progress.queries and not any(elicited.answers):
            raise elicited.stopped  # it never answered: nothing was found that could be written
        progress.stop(elicited.stopped)
        self._asked_since += 1
        for answer in filter(None, elicited.answers):
            before = len(self._unlabelled())
            self._open.append((comparison, answer))
            self._hear(comparison, full=len(self._unlabelled()) - before >= questions[0].most)
            self._most = min(self._limits.per_question, max(MOST_OVER * len(answer.features), self._most // 2, 1))
            progress.queries += 1
            progress.asked.append((comparison, answer))
            progress.nones_in_a_row = progress.nones_in_a_row + 1 if answer.verdict is Verdict.NONE else 0
            progress.repeats_in_a_row = progress.repeats_in_a_row + 1 if _only_repeats(answer) else 0
        progress.waiting = len(self._unlabelled())

    def _hear(self, comparison: Comparison, *, full: bool) -> None:
        """Before its features have labels; `full` says whether as many new ones were named as were asked for."""
        if isinstance(self._strategy, HearsAnswers):
            self._strategy.hear(comparison, full=full)

    def _unlabelled(self) -> list[Feature]:
        return self._unknown(feature for _, answer in self._open for feature in self._named(answer))

    def _label_and_learn(self) -> list[Finding]:
        """Label what the questions since the last time found, together."""
        labelled = self._labelled(self._unlabelled())
        self.progress.stop(labelled.stopped)
        found = [finding for comparison, answer in self._open for finding in self._learn(comparison, answer, labelled)]
        self._open, self._asked_since, self.progress.waiting = [], 0, 0
        self.progress.unresolved = self._strategy.unresolved
        return found

    def _labelled(self, new: list[Feature]) -> NewLabels:
        if not new:
            return NewLabels(Votes.empty((), len(self._examples), 1), {}, None)
        votes = self._label(new)
        if votes.stopped is not None:
            return NewLabels(votes, {}, votes.stopped)
        repeats, stopped = self._same(votes)
        return NewLabels(votes, repeats, stopped)

    def _same(self, votes: Votes) -> tuple[dict[int, Described], OracleError | None]:
        if self._duplicates is None or self._same_questions is None:
            return {}, None
        new = [(_described(feature), labels) for feature, labels in zip(votes.features, votes.labels, strict=True)]
        return self._duplicates.among(new, self._in_full, self.progress.contradictions), self._same_questions.stopped

    def _remember(self, known: KnownFeature | Finding) -> None:
        self._in_full.append((_described(known.feature), known.labels))

    def _question(self, comparison: Comparison, voter: int, waiting: Sequence[str] = ()) -> Compare:
        """`waiting` are names that are not labelled yet."""
        known = [*(finding.feature.name for finding in self.progress.known), *waiting]
        return Compare(
            kind=comparison.kind,
            examples=tuple(self._examples[row] for row in comparison.examples),
            without=tuple(self._examples[row] for row in comparison.without),
            known=tuple(known) if comparison.other_than_known else (),
            voter=voter,
            most=self._most,
            exclude=self._exclude,
        )

    def _named(self, answer: Answer) -> Iterator[Feature]:
        """The features of an answer, each with the examples that it was named for."""
        for named in answer.features:
            asked = answer.question
            shown = exemplars_of(asked, named.shown) if isinstance(asked, Compare) else ()
            yield replace(named.feature, exemplars=shown, models_see=self._limits.exemplars)

    def _unknown(self, named: Iterable[Feature]) -> list[Feature]:
        """The features that are not known yet, each once."""
        new: list[Feature] = []
        for feature in named:
            if self._known(feature.name) or self._is_excluded(feature.name):
                continue
            if not any(same_name(feature.name, other.name) for other in new):
                new.append(feature)
        return new

    def _known(self, name: str) -> KnownFeature | Finding | None:
        """The feature of that name, however it is worded: it is not labelled again."""
        return next((finding for finding in self.progress.known if same_name(finding.feature.name, name)), None)

    def _is_excluded(self, name: str) -> bool:
        return any(same_name(name, other) for other in self._exclude)

    def _learn(self, comparison: Comparison, answer: Answer, labelled: NewLabels) -> list[Finding]:
        """Those of the answer's features that are new."""
        progress = self.progress
        named: dict[str, KnownFeature | Finding] = {}
        new: list[Finding] = []
        for feature in (entry.feature for entry in answer.features):
            finding = self._known(feature.name)
            excluded = finding is None and self._is_excluded(feature.name)
            progress.repeated += finding is not None or excluded
            if excluded:
                continue
            if finding is None:
                new.append(finding := self._finding(comparison, answer, feature, labelled))
                progress.findings.append(new[-1])
                if not new[-1].repeats:
                    self._remember(new[-1])
            learned = self._earlier(finding) or finding
            named[learned.feature.name] = learned
        self._tell_strategy(comparison, named)
        if new:
            self._recount()
        progress.g_curve.append(self._g() if new else progress.g)
        return new

    def _tell_strategy(self, comparison: Comparison, named: dict[str, KnownFeature | Finding]) -> None:
        """No feature is NONE, refused or unreadable: this very question is settled, no other."""
        self._strategy.learn(comparison, [*named], [finding.labels for finding in named.values()])

    def _recount(self) -> None:
        """Which features are interesting, distinct and not doubtful."""
        known = self.progress.known
        flags = interesting_and_distinct(
            [finding.labels for finding in known],
            self._limits.rare,
            repeats=[finding.repeats for finding in known],
            doubtful=[not finding.consistent for finding in known],
        )
        self.progress.flags = flags[len(self.progress.known_features) :]

    def _g(self) -> float:
        return g(np.stack([finding.labels for finding in self.progress.known]), len(self._examples))

    def _finding(self, comparison: Comparison, answer: Answer, feature: Feature, labelled: NewLabels) -> Finding:
        votes = labelled.votes
        place = next(place for place, asked in enumerate(votes.features) if same_name(asked.name, feature.name))
        asked, its_labels = votes.features[place], votes.labels[place]
        names = [finding.feature.name for finding in self.progress.known]
        labels = [finding.labels for finding in self.progress.known]
        checks = self._same_questions.answers.pop(asked, []) if self._same_questions else []
        finding = Finding(asked, comparison, answer, its_labels, votes.answers_on(asked), checks=checks)
        if (repeated := labelled.repeats.get(place)) is not None:
            finding.twin, finding.repeats = EarlierTwin("same", repeated.name), True
        elif twin := find_twin(feature.name, its_labels, names, labels, self._closeness):
            other = self.progress.known[twin.other].feature
            denied = self._duplicates and self._duplicates.denied(_described(feature), _described(other))
            if not (twin.kind == "same" and denied):
                finding.twin = EarlierTwin(twin.kind, other.name)
        return finding

    def _earlier(self, finding: KnownFeature | Finding) -> KnownFeature | Finding | None:
        """The feature that means the same, where one does."""
        return self._known(finding.twin.name) if finding.repeats and finding.twin else None


def _described(feature: Feature) -> Described:
    return Described(feature.name, feature.definition)


def _only_repeats(answer: Answer) -> bool:
    """Whether every feature that it names is one that the question told of."""
    asked = answer.question
    told = (*asked.known, *asked.exclude) if isinstance(asked, Compare) else ()
    names = [named.feature.name for named in answer.features]
    return bool(names) and all(any(same_name(name, other) for other in told) for name in names)
