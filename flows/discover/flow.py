"""Discover features: the adaptive loop as a Prefect flow, and the same from Python in one call."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State

from twothirds.flows.discover.findings import StopReason
from twothirds.flows.discover.forecast import forecast_discovery
from twothirds.flows.discover.preparation import Prepared, prepare
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.flows.endings import BUDGET
from twothirds.flows.estimate import agreed_in_python
from twothirds.flows.oracle_specs import may_cost
from twothirds.flows.prefect_api.connection import starting_prefect
from twothirds.flows.prefect_api.history import History
from twothirds.flows.prefect_api.runs import artifact_key, run_as_flow, run_in_flow, run_name
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
def discover_flow(settings: DiscoverSettings) -> dict[str, Any] | State[Any]:
    """Discover named features in a data set and label every example with them."""

    def work(history: History) -> dict[str, Any]:
        prepared = prepare(settings, history.events)
        history.log(*estimate_of(prepared))
        return _discover(prepared, history)

    return run_in_flow(work, settings)


def _discover(prepared: Prepared, history: History) -> dict[str, Any]:
    """Within a flow run, or after it was lost."""
    name = prepared.dataset.name
    progress = PrefectProgress(name, history.tell, history.emit)
    prepared = replace(prepared, events=history.events.to(progress))
    history.log(f"starts: {prepared.settings.dataset} with {prepared.settings.oracle}", plan_of(prepared))
    if left := prepared.settings.budget_left(prepared.store):
        history.events.say(left)
    run_id, compare, labelled = history.run_id, history.task(elicit), history.task(label)
    history.connect(prepared.oracle)
    if stored := prepared.store.requests.count(prepared.scope):
        prepared.events.say(f"{stored:,} answers are stored already")
    try:
        outcome = run_discovery(prepared, run_id=run_id, compare=compare, label=labelled)
    except AnswersPending as pending:
        suspend(history, name, prepared.store, run_id, pending)
        raise
    with prepared.events.waiting("writing the report"):
        run = Run(prepared.folder)
        run.report(dataset=prepared.dataset)
    if prepared.upload is not None:
        prepared.upload.deliver(prepared.events)
    key, link, picture = artifact_key("features", name), served_at(prepared.folder), picture_of(run, run.findings)
    lines = [str(outcome.progress), _paid(run.summary)]
    report = None if link else markdown_of(run.findings, prepared.dataset, lines, picture)
    title = f"Features of {name}"
    history.tell(publish, key, outcome.features(), title, picture=picture, link=link, report=report)
    outcome.progress.raise_if_lost(prepared.folder)
    outcome.raise_if_unusable(prepared.folder)
    summary = outcome.summary()
    history.log(str(outcome.progress), *summary.notices, _paid(summary))
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


def run_flow(prepared: Prepared) -> Run:
    """A discovery that is prepared already, as a flow run. Its summary is its own, whoever writes the folder next."""
    work, events = partial(_discover, prepared), prepared.events
    with prepared.store:
        summary = run_as_flow(
            discover_flow, prepared.settings, work, prepared.dataset.name, prepared.kind, events=events
        )
    return Run(prepared.folder, summary=RunSummary.model_validate(summary))


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
    return run_flow(prepared.with_budget(budget))
