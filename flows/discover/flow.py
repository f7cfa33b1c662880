"""Discover features: the adaptive loop as a Prefect flow, and the same from Python in one call."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State

from twothirds.flows.discover.findings import Finding, Progress, StopReason
from twothirds.flows.discover.forecast import forecast_discovery, price_of
from twothirds.flows.discover.labels_left import LabelsLeft
from twothirds.flows.discover.live.log import LiveLog
from twothirds.flows.discover.live.steered_loop import SteeredLoop
from twothirds.flows.discover.live.steering import Steering, WatchedRemaining
from twothirds.flows.discover.loop import Limits
from twothirds.flows.discover.outcome import Outcome
from twothirds.flows.discover.preparation import Prepared, prepare
from twothirds.flows.discover.remaining import LabelTask, PredictedRemaining, label_remaining, predict_remaining
from twothirds.flows.discover.same_questions import SameQuestions
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.flows.estimate import agreed_in_python
from twothirds.flows.oracle_specs import may_cost
from twothirds.flows.prefect_api.connection import starting_prefect
from twothirds.flows.prefect_api.endings import BUDGET
from twothirds.flows.prefect_api.history import History
from twothirds.flows.prefect_api.runs import artifact_key, run_as_flow, run_in_flow, run_name
from twothirds.flows.progress import display_for_python, recorded_run, run_ledger
from twothirds.flows.reviewing.suspension import suspend, wait_for_people
from twothirds.flows.settings import micro_of, served_at, shows_settings
from twothirds.models import (
    AnswersPending,
    Compare,
    Elicited,
    Feature,
    LabelBatch,
    Money,
    Oracle,
    Votes,
    collect_answers,
    collect_votes,
    connect,
    in_usd,
    sentence_closeness,
    unlike,
)
from twothirds.models.people import WaitingOracle, recorded_by
from twothirds.reports import Run
from twothirds.reports.page import markdown_of, picture_of
from twothirds.reports.run import LIVE, LiveRun, RunSummary, locked, without_paths
from twothirds.studio.web import plural
from twothirds.tasks import ProgressArtifact, elicit, label, publish

CompareTask = Callable[[Oracle, list[Any]], Elicited]


@flow(name="discover", flow_run_name=run_name, persist_result=False)
def discover_flow(settings: DiscoverSettings) -> dict[str, Any] | State[Any]:
    """Discover named features in a data set and label every example with them."""

    def work(history: History) -> dict[str, Any]:
        prepared = prepare(settings, history.display)
        history.log(*estimate_of(prepared))
        return _discover(prepared, history)

    return run_in_flow(work, settings)


def _discover(prepared: Prepared, history: History) -> dict[str, Any]:
    """Within a flow run, or after it was lost."""
    prepared = replace(prepared, display=history.display)
    name, queries = prepared.dataset.name, prepared.profile.queries
    history.log(f"starts: {prepared.settings.dataset} with {prepared.settings.oracle}", plan_of(prepared))
    if left := prepared.settings.budget_left(prepared.store):
        history.display.say(left)
    artifact: ProgressArtifact | None = history.tell(ProgressArtifact, f"{queries} queries on {name}")

    def show(share: float, progress: Progress) -> None:
        if artifact is not None:
            history.tell(artifact.update, share, _detail(progress))

    def publish_round(progress: Progress, found: list[Finding]) -> None:
        show(progress.queries / queries, progress)
        for finding in found:
            feature, positives = finding.feature.name, int((finding.labels == 1).sum())
            history.emit("twothirds.feature.found", name, f"found {feature}", feature=feature, positives=positives)

    run_id, compare, labelled = history.run_id, history.task(elicit), history.task(label)
    history.connect(prepared.oracle)
    if stored := prepared.store.requests.count(prepared.scope):
        prepared.display.say(f"{stored:,} answers are stored already")
    try:
        outcome = run_discovery(prepared, run_id=run_id, compare=compare, label=labelled, on_round=publish_round)
    except AnswersPending as pending:
        suspend(history, name, prepared.store, run_id, pending)
        raise
    show(1.0, outcome.progress)
    with prepared.display.waiting("writing the report"):
        run = Run(prepared.folder)
        run.report(dataset=prepared.dataset)
    if prepared.upload is not None:
        prepared.upload.deliver(prepared.display)
    key, link, picture = artifact_key("features", name), served_at(prepared.folder), picture_of(run, run.findings)
    lines = [_detail(outcome.progress), _paid(run.summary)]
    report = None if link else markdown_of(run.findings, prepared.dataset, lines, picture)
    title = f"Features of {name}"
    history.tell(publish, key, outcome.features(), title, picture=picture, link=link, report=report)
    outcome.progress.raise_if_lost(prepared.folder)
    outcome.raise_if_unusable(prepared.folder)
    summary = outcome.summary()
    history.log(_detail(outcome.progress), *summary.notices, _paid(summary))
    history.tell_refusals(name, summary.unusable)
    if outcome.progress.stopped is StopReason.BUDGET:
        history.end(BUDGET, outcome.progress.message, name)
    return summary.to_json()


def plan_of(prepared: Prepared) -> str:
    """What the discovery is about to do."""
    settings, profile, compared = prepared.settings, prepared.profile, len(prepared.compared)
    several = f" for up to {profile.features} features each" if profile.features > 1 else ""
    plan = f"plan: {profile.queries} queries{several} by {settings.strategy} on {plural(compared, 'example')}, "
    plan += f"{plural(settings.votes, 'vote')} per label"
    if profile.labels_after != 1:
        plan += f", labels after every {profile.labels_after} queries" if profile.labels_after else ", all at the end"
    if remaining := len(prepared.remaining):
        use = "predicted where certified" if settings.agree else "labelled at the end" if settings.label_rest else ""
        plan += f"; {plural(remaining, 'example')} more {use or 'left out'}"
    if settings.budget_micro is None:
        return f"{plan}; no budget"
    counted = f"per {settings.per}" if settings.per else "earlier attempts included"
    return f"{plan}; budget {in_usd(settings.budget_micro)}, {counted}"


def estimate_of(prepared: Prepared) -> list[str]:
    """What a discovery without a budget may cost; printed first for whoever starts it on the command line."""
    settings = prepared.settings
    asked = (settings.oracle, settings.labeller, settings.people, settings.cheap)
    if settings.budget is not None or not any(text and may_cost(text) for text in asked):
        return []
    expected = forecast_discovery(prepared)
    return [f"estimate: likely {in_usd(expected.left)}, at most {in_usd(expected.most_left, at_most=True)}"]


def _paid(summary: RunSummary) -> str:
    return (
        f"cost: {plural(summary.paid_calls, 'question')} asked, {summary.cached_calls:,} from the store, "
        f"{in_usd(micro_of(summary.cost_usd))}"
    )


def run_discovery(
    prepared: Prepared,
    *,
    run_id: str,
    compare: CompareTask = collect_answers,
    label: LabelTask = collect_votes,
    on_round: Callable[[Progress, list[Finding]], None] = lambda *_: None,
) -> Outcome:
    """The whole discovery as plain Python; the flow passes tasks, tests and benchmarks nothing."""
    settings, store, display = prepared.settings, prepared.store, prepared.display
    started = time.monotonic()
    connect(prepared.oracle)
    if prepared.cheap is not None:
        connect(prepared.cheap)
    prepared.check_folder()
    with (
        locked(prepared.folder, "discovery"),
        recorded_run(
            store,
            run_id,
            prepared.scope,
            flow="discover",
            name=prepared.folder.name,
            dataset=prepared.dataset.name,
            oracle=prepared.oracle,
            settings=settings,
            job=prepared.job or settings.job,
            display=display,
            expected=cache(lambda: price_of(prepared).questions),
        ) as run,
    ):
        prepared.set_commands_aside()
        ledger = run_ledger(store, run_id, prepared.scope, settings.budget_micro, retry=settings.retry_unusable)
        recorded = recorded_by(prepared.oracle, ledger)
        first = recorded_by(prepared.cheap, ledger) if prepared.cheap is not None else None
        run.spending = ledger
        with display.waiting("looking at the examples"):
            warnings = [warning] if (warning := unlike(prepared.oracle, prepared.compared).warning) else []
        for line in warnings:
            display.say(line)
        reached = LiveRun(prepared.folder / LIVE).reached(prepared.scope)

        with LiveLog(prepared.folder, _begun(prepared, run_id) | {"reached": reached}) as live:

            def wait(pending: AnswersPending) -> None:
                with live.waiting(pending):
                    wait_for_people(store.queue, display, pending)

            def show(progress: Progress, found: list[Finding]) -> None:
                display.update(progress.queries, f"{_detail(progress)}, {in_usd(ledger.cost)}")
                live.round(progress, found, ledger.cost)
                on_round(progress, found)
                if steering.apply(loop, live):
                    live.round(progress, [], ledger.cost)

            asked = prepared.knowing(WaitingOracle(recorded, wait) if settings.wait else recorded)
            steering = Steering(prepared.folder, reached, settings.budget_text, ledger.halt)
            ledger.follow(steering.budget)
            labels_left, planned = LabelsLeft(prepared), ""

            def affords(questions: list[Compare], waiting: list[Feature]) -> bool:
                nonlocal planned
                if (budget := ledger.budget) is None:
                    return True
                booked = store.runs.booked(run_id)
                left = budget - booked.spent - booked.reserved
                if labels_left.afford(questions, waiting, loop.progress, left):
                    return True
                planned = _why_planned(loop.progress, budget, booked.remedy)
                return False

            loop = _loop(prepared, asked, *_shown(live, compare, label), affords)
            with display.counting(prepared.profile.queries, "queries"):
                progress = loop.run(show)
            if progress.notice:
                display.say(progress.notice)
            watched = WatchedRemaining(len(prepared.remaining), steering, loop, live, lambda: ledger.cost)
            remaining, predicted = _label_others(prepared, asked, progress, label, first, watched)
            if progress.stopped is StopReason.BUDGET and not progress.message:
                progress.message = planned
            if progress.message and progress.stopped is not StopReason.UNAVAILABLE:  # that one is raised in the end
                display.say(progress.message)
            outcome = Outcome(
                settings=settings,
                profile=prepared.profile,
                dataset=prepared.dataset,
                rows=prepared.rows,
                recorded=recorded,
                progress=progress,
                run_id=run_id,
                seconds=round(time.monotonic() - started, 1),
                finished_at=datetime.now(UTC).isoformat(timespec="seconds"),
                remaining=remaining,
                in_all=store.costs.totals_of_scope(prepared.scope),
                warnings=warnings,
                target=prepared.target,
                predicted=predicted,
                known=prepared.known,
                cheap=first,
                steered=steering.applied,
                unlabelled=labels_left.lacking(progress, remaining, predicted=predicted is not None),
            )
            outcome.write(prepared.folder)
            steering.settle()
            live.end(progress)
        run.figures["unusable_answers_total"] = outcome.unusable.total
        run.status, run.message = f"stopped: {progress.stopped}", progress.message or progress.notice
    return outcome


def _label_others(
    prepared: Prepared,
    oracle: Oracle,
    progress: Progress,
    label: LabelTask,
    first: Oracle | None,
    watched: WatchedRemaining,
) -> tuple[Votes | None, PredictedRemaining | None]:
    """The examples that were not compared; whoever has stopped the run wants nothing more to be spent."""
    if progress.stopped is StopReason.STOPPED or not prepared.remaining:
        return None, None
    if prepared.settings.agree is not None:
        with watched:
            return predict_remaining(prepared, oracle, progress, label, first, watched)
    if prepared.settings.label_rest:
        with watched:
            return label_remaining(prepared, oracle, progress, label, watched), None
    return None, None


def _shown(live: LiveLog, compare: CompareTask, label: LabelTask) -> tuple[CompareTask, LabelTask]:
    """The same, with what is asked shown before it is."""

    def comparing(oracle: Oracle, questions: list[Any]) -> Elicited:
        live.asking(questions)
        return compare(oracle, questions)

    def labelling(oracle: Oracle, batch: LabelBatch) -> Votes:
        live.labelling(batch.features)
        return label(oracle, batch)

    return comparing, labelling


def _begun(prepared: Prepared, run_id: str) -> dict[str, Any]:
    """What a page that follows the run must know to show it."""
    settings = prepared.settings
    return {
        "run_id": run_id,
        "scope": prepared.scope,
        "name": prepared.dataset.name,
        "oracle": without_paths(str(prepared.oracle.identity)),
        "queries": prepared.profile.queries,
        "compared": len(prepared.compared),
        "compared_ids": [example.id for example in prepared.compared] if prepared.remaining else None,
        "budget_usd": None if settings.budget is None else float(settings.budget),
        "settings": settings.model_dump(mode="json"),
    }


def _why_planned(progress: Progress, budget: Money, remedy: str) -> str:
    """Why a discovery asks no more questions that it could pay: the labels of what they find would not be paid."""
    return (
        f"the budget of {in_usd(budget, 2)} pays for {plural(progress.queries, 'question')} and all labels of what was "
        f"found, and not for more: {remedy}"
    )


def _loop(
    prepared: Prepared,
    oracle: Oracle,
    compare: CompareTask,
    label: LabelTask,
    affords: Callable[[list[Compare], list[Feature]], bool],
) -> SteeredLoop:
    settings = prepared.settings
    limits = Limits(
        queries=prepared.profile.queries,
        target_g=settings.target_g,
        nones=settings.nones,
        voters=settings.voters,
        per_question=prepared.profile.features,
        exemplars=settings.exemplars,
        labels_after=prepared.profile.labels_after,
        rare=settings.rare,
    )
    return SteeredLoop(
        strategy=prepared.make_strategy(),
        examples=prepared.compared,
        limits=limits,
        compare=partial(compare, oracle),
        label=lambda features: label(oracle, LabelBatch(prepared.compared, features, settings.votes)),
        closeness=sentence_closeness(),
        same=SameQuestions(partial(compare, oracle)) if settings.ask_same else None,
        known=prepared.known_features,
        exclude=settings.excluded,
        affords=affords,
    )


def _detail(progress: Progress) -> str:
    waiting = f" and {progress.waiting} to label" if progress.waiting else ""
    repeated = f", {progress.repeated} named again" if progress.repeated else ""
    return (
        f"{plural(len(progress.findings), 'feature')}{waiting}, {progress.interesting_distinct} interesting and "
        f"distinct{repeated}, g {progress.g:.3f}, unresolved {progress.unresolved:.1%}"
    )


def run_flow(prepared: Prepared) -> Run:
    """A discovery that is prepared already, as a flow run. Its summary is its own, whoever writes the folder next."""
    work, display = partial(_discover, prepared), prepared.display
    with prepared.store:
        summary = run_as_flow(
            discover_flow, prepared.settings, work, prepared.dataset.name, prepared.kind, display=display
        )
    return Run(prepared.folder, summary=RunSummary.model_validate(summary))


@shows_settings(DiscoverSettings)
def discover(dataset: str, *, yes: bool = False, **settings: Any) -> Run:
    """Discover features from Python: `run = discover("datasets/faces", oracle="simulated")`, then `run.features` and
    `run.labels`. Works in a script and inside a running event loop (a notebook); no server need be started. What costs
    money needs a `budget`, or `yes`."""
    with starting_prefect():
        chosen, display = DiscoverSettings(dataset=dataset, **settings), display_for_python()
        prepared = prepare(chosen, display)
        prepared.check_oracle()
        budget = agreed_in_python(
            lambda: forecast_discovery(prepared),
            budget=chosen.budget,
            oracles=(chosen.oracle, chosen.labeller, chosen.people, chosen.cheap),
            yes=yes,
            display=display,
        )
    return run_flow(prepared.with_budget(budget))
