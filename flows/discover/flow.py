"""Discover features: the adaptive loop as a Prefect flow, and the same from Python in one call."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State

from twothirds.flows.discover.findings import StopReason
from twothirds.flows.discover.forecast import forecast_discovery
from twothirds.flows.discover.outcome import Outcome
from twothirds.flows.discover.preparation import Prepared, prepare
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.flows.endings import BUDGET
from twothirds.flows.estimate import agreed_in_python
from twothirds.flows.oracle_specs import may_cost
from twothirds.flows.prefect_api.connection import starting_prefect
from twothirds.flows.prefect_api.executor import TaskExecutor
from twothirds.flows.prefect_api.runs import Caller, FlowRun, artifact_key, flow_run, run_flow, run_name, travels
from twothirds.flows.reviewing.suspension import suspend
from twothirds.flows.settings import micro_of, served_at, shows_settings
from twothirds.flows.subscribers.notebook import events_for_python
from twothirds.flows.subscribers.prefect import PrefectProgress
from twothirds.models import AnswersPending, in_usd
from twothirds.reports import Run
from twothirds.reports.page import markdown_of, picture_of
from twothirds.reports.run import RunSummary
from twothirds.studio.web import plural
from twothirds.tasks import elicit, label, publish


@flow(name="discover", flow_run_name=run_name, persist_result=False)
@travels
def discover_flow(settings: DiscoverSettings) -> dict[str, Any] | State[Any]:
    """Discover named features in a data set and label every example with them."""
    with flow_run(settings) as run:
        prepared: Prepared = run.prepared or _prepared(settings, run)
        prepared = replace(prepared, events=run.events.to(PrefectProgress(run.executor.tell, run.emit)))
        _tell_plan(prepared)
        outcome = _asked(prepared, run)
        report = _report(prepared)
        _publish(outcome, prepared, report, run.executor)
        outcome.progress.raise_if_lost(prepared.folder)
        outcome.raise_if_unusable(prepared.folder)
        _end(outcome, run)
    return run.state


def _prepared(settings: DiscoverSettings, run: FlowRun) -> Prepared:
    prepared = prepare(settings, run.events)
    run.events.log(*estimate_of(prepared))
    return prepared


def _tell_plan(prepared: Prepared) -> None:
    events, settings = prepared.events, prepared.settings
    events.log(f"starts: {settings.dataset} with {settings.oracle}", plan_of(prepared))
    if left := settings.budget_left(prepared.store):
        events.say(left)


def _asked(prepared: Prepared, run: FlowRun) -> Outcome:
    if stored := prepared.store.requests.count(prepared.scope):
        prepared.events.say(f"{stored:,} answers are stored already")
    compare, labelling = partial(run.executor.call, elicit), partial(run.executor.call, label)
    try:
        return run_discovery(prepared, run_id=run.run_id, compare=compare, label=labelling)
    except AnswersPending as pending:
        suspend(run, prepared.store, run.run_id, pending)
        raise


def _report(prepared: Prepared) -> Run:
    with prepared.events.waiting("writing the report"):
        run = Run(prepared.folder)
        run.report(dataset=prepared.dataset)
    if prepared.upload is not None:
        prepared.upload.deliver(prepared.events)
    return run


def _publish(outcome: Outcome, prepared: Prepared, run: Run, executor: TaskExecutor) -> None:
    name, link, picture = prepared.dataset.name, served_at(prepared.folder), picture_of(run, run.findings)
    lines = [str(outcome.progress), _paid(run.summary)]
    report = None if link else markdown_of(run.findings, prepared.dataset, lines, picture)
    key, title = artifact_key("features", name), f"Features of {name}"
    executor.tell(publish, key, outcome.features(), title, picture=picture, link=link, report=report)


def _end(outcome: Outcome, run: FlowRun) -> None:
    summary = outcome.summary()
    run.events.log(str(outcome.progress), *summary.notices, _paid(summary))
    run.tell_refusals(summary.unusable)
    if outcome.progress.stopped is StopReason.BUDGET:
        run.end(BUDGET, outcome.progress.message)
    run.done(summary, summary.to_json())


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


def run_prepared(prepared: Prepared) -> Run:
    """A discovery that is prepared already, as a flow run. Its summary is its own, whoever writes the folder next."""
    with prepared.store:
        caller = Caller(prepared.events, prepared)
        summary: RunSummary = run_flow(discover_flow, prepared.settings, caller, prepared.kind)
    return Run(prepared.folder, summary=summary)


@shows_settings(DiscoverSettings)
def discover(dataset: str, *, yes: bool = False, **settings: Any) -> Run:
    """Discover features from Python: `run = discover("datasets/faces", oracle="simulated")`, then `run.features` and
    `run.labels`. Works in a script and inside a running event loop (a notebook); no server need be started. What costs
    money needs a `budget`, or `yes`."""
    with starting_prefect():
        chosen, events = DiscoverSettings(dataset=dataset, **settings), events_for_python()
        prepared = prepare(chosen, events)
        prepared.check_oracle()
        budget = agreed_in_python(
            lambda: forecast_discovery(prepared),
            budget=chosen.budget,
            oracles=(chosen.oracle, chosen.labeller, chosen.people, chosen.cheap),
            yes=yes,
            events=events,
        )
    return run_prepared(prepared.with_budget(budget))
