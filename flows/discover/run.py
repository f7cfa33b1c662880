"""A discovery as plain Python: what was prepared is asked as a run in the store, and its folder is written."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any

from twothirds.flows.discover.control import Control
from twothirds.flows.discover.findings import Progress, StopReason
from twothirds.flows.discover.forecast import price_of
from twothirds.flows.discover.labels_left import LabelsLeft
from twothirds.flows.discover.loop import QUERIES, Asker, Limits, Loop
from twothirds.flows.discover.outcome import Outcome
from twothirds.flows.discover.preparation import Prepared
from twothirds.flows.discover.remaining import LabelTask, PredictedRemaining, label_remaining, predict_remaining
from twothirds.flows.discover.same_questions import DuplicateCheck, SameQuestions
from twothirds.flows.events import RunStarted, StepEnded, StepStarted, Waiting
from twothirds.flows.reviewing.waiting import wait_for_people
from twothirds.flows.run_context import RunContext, RunEntry, run_context
from twothirds.models import (
    Answer,
    AnswersPending,
    Asks,
    CachedOracle,
    Compare,
    Elicited,
    Feature,
    LabelBatch,
    Money,
    Votes,
    collect_answers,
    collect_votes,
    in_usd,
    sentence_closeness,
)
from twothirds.reports.run import without_paths
from twothirds.studio.web import plural

CompareTask = Callable[[Asks, list[Any]], Elicited]


def run_discovery(
    prepared: Prepared, *, run_id: str, compare: CompareTask = collect_answers, label: LabelTask = collect_votes
) -> Outcome:
    """The whole discovery; the flow passes tasks, tests and benchmarks nothing."""
    prepared.check_folder()
    settings = prepared.settings
    entry = RunEntry(
        flow="discover",
        name=prepared.folder.name,
        scope=prepared.scope,
        dataset=prepared.dataset.name,
        members=prepared.members,
        settings=settings,
        known=prepared.known_labels,
        budget=settings.budget_micro,
        retry_unusable=settings.retry_unusable,
        job=prepared.job or settings.job,
        folder=prepared.folder,
    )
    expected = cache(lambda: price_of(prepared).questions)
    with run_context(prepared.store, run_id, entry, prepared.events, expected) as run:
        prepared.set_commands_aside()
        return _Discovery(replace(prepared, events=run.events), run, compare, label).run()


@dataclass
class _Discovery:
    """One discovery, once it has begun."""

    prepared: Prepared
    context: RunContext
    compare: CompareTask
    label: LabelTask
    warnings: list[str] = field(default_factory=list)
    planned: str = ""  # why a budget that is not used up pays for no more

    def __post_init__(self) -> None:
        prepared, context = self.prepared, self.context
        self.began = time.monotonic()
        self.labels_left = LabelsLeft(prepared)
        budget = prepared.settings.budget_text
        self.control = Control(prepared.folder, context.ledger, context.events, context.reached, budget)
        self.crowd = replace(context.crowd, wait=self._wait if prepared.settings.wait else None)
        self.loop = self._make_loop()

    def run(self) -> Outcome:
        """Ask, label the other examples, and write the run folder."""
        prepared, context, events = self.prepared, self.context, self.context.events
        self.warnings += [warning] if (warning := prepared.check_oracle().warning) else []
        for line in self.warnings:
            events.say(line)
        events.emit(self._started())
        events.emit(StepStarted(QUERIES, counted=True, total=prepared.profile.queries))
        try:
            progress = self.loop.run(prepared.known_features, self.control)
        finally:
            events.emit(StepEnded(QUERIES))
        if progress.notice:
            events.say(progress.notice)
        votes, predicted, first = self._label_others(progress)
        if progress.stopped is StopReason.BUDGET and not progress.message:
            progress.message = self.planned
        if progress.message and progress.stopped is not StopReason.UNAVAILABLE:  # that one is raised in the end
            events.say(progress.message)
        outcome = Outcome(
            settings=prepared.settings,
            profile=prepared.profile,
            dataset=prepared.dataset,
            rows=prepared.rows,
            crowd=self.crowd,
            progress=progress,
            run_id=context.run_id,
            seconds=round(time.monotonic() - self.began, 1),
            finished_at=datetime.now(UTC).isoformat(timespec="seconds"),
            remaining=votes,
            in_all=context.store.costs.totals_of_scope(prepared.scope),
            warnings=self.warnings,
            target=prepared.target,
            predicted=predicted,
            known=prepared.known,
            cheap=first,
            steered=self.control.applied,
            unlabelled=self.labels_left.lacking(progress, votes, predicted=predicted is not None),
        )
        outcome.write(prepared.folder)
        self.control.record()
        context.record.figures["unusable_answers_total"] = outcome.unusable.total
        context.end(f"stopped: {progress.stopped}", progress.message or progress.notice)
        return outcome

    def _make_loop(self) -> Loop:
        settings, profile = self.prepared.settings, self.prepared.profile
        limits = Limits(
            queries=profile.queries,
            target_g=settings.target_g,
            nones=settings.nones,
            voters=settings.voters,
            per_question=profile.features,
            exemplars=settings.exemplars,
            labels_after=profile.labels_after,
            rare=settings.rare,
            exclude=settings.excluded,
        )
        ask = partial(self.compare, self.crowd)
        return Loop(
            strategy=self.prepared.make_strategy(),
            examples=self.prepared.compared,
            limits=limits,
            asker=Asker(ask, self._label, self._affords),
            duplicates=DuplicateCheck(SameQuestions(ask) if settings.ask_same else None, sentence_closeness()),
            events=self.context.events,
        )

    def _label(self, features: list[Feature]) -> Votes:
        examples, votes = self.prepared.compared, self.prepared.settings.votes
        return self.label(self.crowd, LabelBatch(examples, features, votes, on_answer=self._watch))

    def _watch(self, _answer: Answer) -> None:
        self.control.watch(self.loop)

    def _started(self) -> RunStarted:
        prepared, settings = self.prepared, self.prepared.settings
        return RunStarted(
            run_id=self.context.run_id,
            scope=prepared.scope,
            name=prepared.dataset.name,
            oracle=without_paths(str(prepared.members.identity)),
            settings=settings.model_dump(mode="json"),
            at=datetime.now(UTC).isoformat(timespec="seconds"),
            queries=prepared.profile.queries,
            compared=len(prepared.compared),
            compared_ids=[example.id for example in prepared.compared] if prepared.remaining else None,
            budget_usd=None if settings.budget is None else float(settings.budget),
            reached=self.context.reached,
        )

    def _wait(self, pending: AnswersPending) -> None:
        events = self.context.events
        events.emit(Waiting.on(pending))
        wait_for_people(self.context.store.queue, events, pending)
        events.emit(Waiting(""))

    def _affords(self, questions: list[Compare], waiting: list[Feature], progress: Progress) -> bool:
        if (budget := self.context.ledger.budget) is None:
            return True
        booked = self.context.store.runs.booked(self.context.run_id)
        left = budget - booked.spent - booked.reserved
        if self.labels_left.afford(questions, waiting, progress, left):
            return True
        self.planned = _why_planned(progress, budget, booked.remedy)
        return False

    def _label_others(self, progress: Progress) -> tuple[Votes | None, PredictedRemaining | None, CachedOracle | None]:
        """The examples that were not compared; whoever has stopped the run wants nothing more to be spent."""
        prepared, settings = self.prepared, self.prepared.settings
        first = CachedOracle(prepared.cheap, self.context.ledger) if prepared.cheap is not None else None
        if progress.stopped is StopReason.STOPPED or not prepared.remaining:
            return None, None, first
        if settings.agree is None and not settings.label_rest:
            return None, None, first
        self.control.label_remaining(self.loop)
        if settings.agree is not None:
            votes, predicted = predict_remaining(prepared, self.crowd, progress, self.label, first, self._watch)
        else:
            votes, predicted = label_remaining(prepared, self.crowd, progress, self.label, self._watch), None
        self.control.end_remaining(self.loop)
        return votes, predicted, first


def _why_planned(progress: Progress, budget: Money, remedy: str) -> str:
    """Why a discovery asks no more questions that it could pay: the labels of what they find would not be paid."""
    return (
        f"the budget of {in_usd(budget, 2)} pays for {plural(progress.queries, 'question')} and all labels of what was "
        f"found, and not for more: {remedy}"
    )
