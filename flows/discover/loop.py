"""The adaptive loop: propose, ask, label, learn, until there is a reason to stop (Algorithm 1 of the paper).

Plain Python: who answers is an argument, so the flow passes Prefect tasks and a test passes functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from twothirds.discovery import (
    DIFFERENCE,
    Comparison,
    Described,
    HearsAnswers,
    Kind,
    Strategy,
    g,
    interesting_and_distinct,
    same_name,
)
from twothirds.flows.discover.findings import EarlierTwin, Finding, KnownFeature, Progress, StopReason
from twothirds.flows.discover.same_questions import DuplicateCheck
from twothirds.flows.events import (
    SILENT,
    AnswerReceived,
    AskedQuestion,
    Events,
    FeatureRejected,
    Progressed,
    QuestionAsked,
)
from twothirds.models import (
    MICRO,
    Answer,
    Compare,
    Elicited,
    Feature,
    OracleError,
    OracleUnavailable,
    Verdict,
    Votes,
    exemplars_of,
    in_usd,
)
from twothirds.sources import Example

REPEATS_IN_A_ROW = 10  # of an oracle that was told what is known: it has nothing more to say
MOST_OVER = 2  # times as many features are asked for as the answer before held: a model that cannot name more shows it
QUERIES = "queries"


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
    exclude: tuple[str, ...] = ()  # names that are not to come up


@dataclass(frozen=True)
class Asker:
    """Who compares and labels. `affords` says whether the budget pays for questions and the
    labels of what is found by then, with the features that wait for theirs."""

    compare: Callable[[list[Compare]], Elicited]
    label: Callable[[list[Feature]], Votes]
    affords: Callable[[list[Compare], list[Feature], Progress], bool] = lambda _questions, _waiting, _progress: True


class AppliesCommands(Protocol):
    """What people want of the loop while it runs (control.py)."""

    def apply(self, loop: Loop) -> bool: ...


class CommandRejected(Exception):
    """What a person wants of the loop is impossible; the message says why."""


@dataclass(frozen=True)
class NewLabels:
    """Of features that are labelled together."""

    votes: Votes
    repeats: dict[int, Described]  # by place: the feature that means the same
    stopped: OracleError | None


class Loop:
    """`run` does it; `stop`, `reject_feature`, `add_feature` and `ask_about` are for who controls it, between two
    questions."""

    def __init__(
        self,
        strategy: Strategy,
        examples: Sequence[Example],
        limits: Limits,
        asker: Asker,
        duplicates: DuplicateCheck | None = None,
        events: Events = SILENT,
    ) -> None:
        self._strategy = strategy
        self._examples = examples
        self._limits = limits
        self._asker = asker
        self._duplicates = duplicates or DuplicateCheck()
        self._events = events
        self._exclude = limits.exclude
        self._open: list[tuple[Comparison, Answer]] = []  # answers that are not learned yet
        self._asked_since = 0  # comparisons since the last labels
        self._most = limits.per_question  # features that the next question asks for
        self._wanted: list[Comparison] = []  # questions of people, to be asked next
        self._of_people: list[Comparison] = []  # those that were asked: the strategy knows nothing of them
        self.progress = Progress()

    def run(self, known: Sequence[Feature] = (), control: AppliesCommands | None = None) -> Progress:
        """`known` are features to start with: the first question is about what they leave open."""
        progress = self.progress
        if known:
            self._label_known(known)
        while True:
            reason = progress.stopped or self._reason_to_stop()
            comparison = None if reason else self._next_comparison()
            questions = [] if comparison is None else self._questions(comparison)
            if questions and not self._asker.affords(questions, self._unlabelled(), progress):
                reason = progress.stopped = StopReason.BUDGET
                questions = []
            if not questions and not self._open:
                break
            if comparison is not None and questions:
                self._ask(comparison, questions)
            if not questions or self._round_ends() or progress.stopped or self._reason_to_stop():
                self._label_and_learn()
            self._emit_progress()
            if control is not None and control.apply(self):
                self._emit_progress()
        progress.stopped = reason or StopReason.EXHAUSTED
        progress.unresolved = self._strategy.unresolved
        return progress

    def stop(self) -> None:
        self.progress.stopped = StopReason.STOPPED

    def reject_feature(self, name: str, by: str) -> str:
        """It is not labelled further, and not named again. The name that the results no longer have; empty for a
        feature that waited for its labels. Raises CommandRejected."""
        if self._is_waiting(name):
            self._exclude += (name,)
            self.progress.waiting = len(self._unlabelled())
            return ""
        for known in self.progress.known:
            if not known.vetoed and " ".join(known.feature.name.split()) == name:
                self._exclude += (known.feature.name,)
                known.vetoed, known.dropped = True, known.dropped or f"vetoed by {by}"
                self._events.emit(FeatureRejected(known.feature.name, by))
                return known.feature.name
        raise CommandRejected(f"there is no feature {name} any more")

    def add_feature(self, name: str, definition: str, by: str) -> None:
        """Labelled in full, whatever it may turn out to be: a person wants it. Raises CommandRejected."""
        known = self._known(name)
        if known is not None or self._is_waiting(name):
            raise CommandRejected(f"there is a feature {known.feature.name if known else name} already")
        if self._is_excluded(name):
            raise CommandRejected(f"{name} is not wanted: it was vetoed or excluded")
        feature = Feature(name, definition)
        votes = self._label([feature])
        self.progress.stop(votes.stopped)
        after = self.progress.queries
        self._know(KnownFeature(feature, votes.labels[0], votes.answers_on(feature), by, after))
        self.progress.unresolved = self._strategy.unresolved
        self._recount()
        if self.progress.g_curve:
            self.progress.g_curve[-1] = self._g()
        else:
            self.progress.g_known = self._g()

    def ask_about(self, ids: Sequence[str]) -> None:
        """Ask about these examples next, for a feature other than the known ones. Raises CommandRejected."""
        place = {example.id: row for row, example in enumerate(self._examples)}
        missing = next((id_ for id_ in ids if id_ not in place), None)
        if missing is not None:
            raise CommandRejected(f"{missing} is not among the examples that are compared")
        self._wanted.append(Comparison(Kind.TWO_OF_THREE, tuple(place[id_] for id_ in ids), other_than_known=True))

    def can_ask(self) -> bool:
        """Whether a question is left for one more command."""
        waiting = self._limits.voters * len(self._wanted)
        return self.progress.stopped is None and self.progress.queries + waiting < self._limits.queries

    def _next_comparison(self) -> Comparison | None:
        if self._wanted:
            self._of_people.append(self._wanted.pop(0))
            return self._of_people[-1]
        return next(iter(self._strategy.next_questions(1)), None)

    def _is_of_people(self, comparison: Comparison) -> bool:
        """Another comparison like it may be the strategy's."""
        return any(comparison is asked for asked in self._of_people)

    def _reason_to_stop(self) -> StopReason | None:
        progress, limits = self.progress, self._limits
        if progress.queries >= limits.queries:
            return StopReason.QUERIES
        if self._wanted:
            return None
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

    def _round_ends(self) -> bool:
        return self._limits.labels_after is not None and self._asked_since >= self._limits.labels_after

    def _label_known(self, known: Sequence[Feature]) -> None:
        votes = self._label(list(known))
        if isinstance(votes.stopped, OracleUnavailable) and not votes.cast.any():
            raise votes.stopped
        self.progress.stop(votes.stopped)
        for feature, labels in zip(votes.features, votes.labels, strict=True):
            self._know(KnownFeature(feature, labels, votes.answers_on(feature)))
        self.progress.g_known = self._g()
        self.progress.unresolved = self._strategy.unresolved

    def _know(self, known: KnownFeature) -> None:
        """A feature that nobody has to find any more."""
        self.progress.known_features.append(known)
        self._duplicates.remember(known)
        self._strategy.know(known.feature.name, known.labels)
        self._events.emit(known.as_event(counts=True))

    def _questions(self, comparison: Comparison) -> list[Compare]:
        """One for every voter, as far as questions are left."""
        known = [*(finding.feature.name for finding in self.progress.known)]
        known += [feature.name for feature in self._unlabelled()]
        return [
            Compare(
                kind=comparison.kind,
                examples=tuple(self._examples[row] for row in comparison.examples),
                without=tuple(self._examples[row] for row in comparison.without),
                known=tuple(known) if comparison.other_than_known else (),
                voter=voter,
                most=self._most,
                exclude=self._exclude,
            )
            for voter in range(min(self._limits.voters, self._limits.queries - self.progress.queries))
        ]

    def _ask(self, comparison: Comparison, questions: list[Compare]) -> None:
        """The answers wait to be learned in the order of the questions, however they came in."""
        progress = self.progress
        self._events.emit(QuestionAsked(questions=tuple(map(AskedQuestion.of, questions))))
        elicited = self._asker.compare(questions)
        if isinstance(elicited.stopped, OracleUnavailable) and not progress.queries and not any(elicited.answers):
            raise elicited.stopped  # it never answered: nothing was found that could be written
        progress.stop(elicited.stopped)
        self._asked_since += 1
        for answer in filter(None, elicited.answers):
            before = len(self._unlabelled())
            self._open.append((comparison, answer))
            if isinstance(self._strategy, HearsAnswers) and not self._is_of_people(comparison):
                full = len(self._unlabelled()) - before >= questions[0].most  # as many new ones as were asked for
                self._strategy.hear(comparison, full=full)
            self._most = min(self._limits.per_question, max(MOST_OVER * len(answer.features), self._most // 2, 1))
            progress.queries += 1
            progress.asked.append((comparison, answer))
            progress.nones_in_a_row = progress.nones_in_a_row + 1 if answer.verdict is Verdict.NONE else 0
            progress.repeats_in_a_row = progress.repeats_in_a_row + 1 if _only_repeats(answer) else 0
            self._events.emit(AnswerReceived.of(progress.queries, answer))
        progress.waiting = len(self._unlabelled())

    def _unlabelled(self) -> list[Feature]:
        return self._new(feature for _, answer in self._open for feature in self._named(answer))

    def _label(self, features: list[Feature]) -> Votes:
        asked = tuple((feature.name, feature.definition) for feature in features)
        self._events.emit(QuestionAsked(features=asked))
        return self._asker.label(features)

    def _label_and_learn(self) -> None:
        """Label what the questions since the last time found, together."""
        labelled = self._label_new(self._unlabelled())
        self.progress.stop(labelled.stopped)
        found = [finding for comparison, answer in self._open for finding in self._learn(comparison, answer, labelled)]
        self._open, self._asked_since, self.progress.waiting = [], 0, 0
        self.progress.unresolved = self._strategy.unresolved
        counts = {id(finding): flag for finding, flag in zip(self.progress.findings, self.progress.flags, strict=False)}
        for finding in found:
            self._events.emit(finding.as_event(counts=counts.get(id(finding), False)))

    def _label_new(self, new: list[Feature]) -> NewLabels:
        if not new:
            return NewLabels(Votes.empty((), len(self._examples), 1), {}, None)
        votes = self._label(new)
        if votes.stopped is not None:
            return NewLabels(votes, {}, votes.stopped)
        repeats, stopped = self._duplicates.among(votes, self.progress.contradictions)
        return NewLabels(votes, repeats, stopped)

    def _named(self, answer: Answer) -> Iterator[Feature]:
        """The features of an answer, each with the examples that it was named for."""
        for named in answer.features:
            asked = answer.question
            shown = exemplars_of(asked, named.shown) if isinstance(asked, Compare) else ()
            yield replace(named.feature, exemplars=shown, models_see=self._limits.exemplars)

    def _new(self, named: Iterable[Feature]) -> list[Feature]:
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

    def _is_waiting(self, name: str) -> bool:
        """Whether it was named and is not labelled yet."""
        return any(same_name(name, feature.name) for feature in self._unlabelled())

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
                    self._duplicates.remember(new[-1])
            learned = self._earlier(finding) or finding
            named[learned.feature.name] = learned
        self._tell_strategy(comparison, named)
        if new:
            self._recount()
        progress.g_curve.append(self._g() if new else progress.g)
        return new

    def _tell_strategy(self, comparison: Comparison, named: dict[str, KnownFeature | Finding]) -> None:
        """No feature is NONE, refused or unreadable: this very question is settled, no other."""
        if not self._is_of_people(comparison):
            self._strategy.learn(comparison, [*named], [finding.labels for finding in named.values()])
            return
        for name, known in named.items():
            self._strategy.know(name, known.labels)

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
        asked, labels = votes.features[place], votes.labels[place]
        checks = self._duplicates.checks_of(asked)
        finding = Finding(asked, comparison, answer, labels, votes.answers_on(asked), checks=checks)
        if (repeated := labelled.repeats.get(place)) is not None:
            finding.twin, finding.repeats = EarlierTwin("same", repeated.name), True
        else:
            finding.twin = self._duplicates.twin(feature, labels, self.progress.known)
        return finding

    def _earlier(self, finding: KnownFeature | Finding) -> KnownFeature | Finding | None:
        """The feature that means the same, where one does."""
        return self._known(finding.twin.name) if finding.repeats and finding.twin else None

    def _emit_progress(self) -> None:
        progress, usd = self.progress, self._events.usd()
        figures = {
            "features": len(progress.findings),
            "waiting": progress.waiting,
            "given": len(progress.known_features),
            "counting": progress.interesting_distinct,
            "g": round(progress.g, 6),
        }
        detail = str(progress) if usd is None else f"{progress}, {in_usd(round(usd * MICRO))}"
        self._events.emit(Progressed(progress.queries, QUERIES, detail, self._limits.queries, usd, figures))


def _only_repeats(answer: Answer) -> bool:
    """Whether every feature that it names is one that the question told of."""
    asked = answer.question
    told = (*asked.known, *asked.exclude) if isinstance(asked, Compare) else ()
    names = [named.feature.name for named in answer.features]
    return bool(names) and all(any(same_name(name, other) for other in told) for name in names)
