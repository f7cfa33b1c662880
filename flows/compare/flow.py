"""Compare oracles: the same questions to each, and a page that says where they differ, who is right, what it costs."""

from __future__ import annotations

import platform
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State

from twothirds.flows.compare.ask_oracles import Asking, CompareTask, waits_for
from twothirds.flows.compare.preparation import PreparedComparison, prepare_comparison
from twothirds.flows.compare.settings import CompareSettings
from twothirds.flows.discover.findings import StopReason
from twothirds.flows.discover.preparation import as_rows
from twothirds.flows.discover.remaining import LabelTask
from twothirds.flows.endings import BUDGET
from twothirds.flows.oracle_specs import OracleSpec
from twothirds.flows.prefect_api.history import History
from twothirds.flows.prefect_api.runs import artifact_key, run_as_flow, run_in_flow, run_name
from twothirds.flows.reviewing.suspension import suspend
from twothirds.flows.settings import micro_of, served_at
from twothirds.models import AnswersPending, OracleLost, collect_answers, collect_votes, connect, in_usd
from twothirds.reports.compare import (
    OracleComparison,
    Study,
    compare_oracles,
    summary_rows,
    verdict_of,
    write_comparison,
)
from twothirds.studio.web import plural
from twothirds.tasks import elicit, label, publish

VERSIONS = ("numpy", "scipy", "prefect")


@flow(name="compare", flow_run_name=run_name, persist_result=False)
def compare_flow(settings: CompareSettings) -> dict[str, Any] | State[Any]:
    """Put the same questions to several oracles and say where they differ, who is right, and what each costs."""

    def work(history: History) -> dict[str, Any]:
        return _compare(prepare_comparison(settings, history.events), history)

    return run_in_flow(work, settings)


def _compare(prepared: PreparedComparison, history: History) -> dict[str, Any]:
    """Within a flow run, or after it was lost."""
    prepared, name = replace(prepared, events=history.events), prepared.dataset.name
    run_id, settings = history.run_id, prepared.settings.model_dump(mode="json")
    history.log(
        f"starts: {prepared.settings.dataset} with {', '.join(prepared.settings.oracles)}",
        f"plan: the same questions to each about {plural(len(prepared.examples), 'example')}",
    )
    for oracle in prepared.built:
        history.connect(oracle)
    try:
        comparison = run_comparison(prepared, run_id=run_id, compare=history.task(elicit), label=history.task(label))
    except AnswersPending as pending:
        suspend(history, name, prepared.store, run_id, pending)
        raise
    with prepared.events.waiting("writing the page"):
        page = write_comparison(comparison, prepared.folder, prepared.dataset, settings)
    if prepared.upload is not None:
        prepared.upload.deliver(prepared.events)
    rows = summary_rows(comparison)
    verdict = verdict_of(comparison)
    link, report = served_at(prepared.folder), "\n".join(f"- {sentence}" for sentence in verdict)
    key, title = artifact_key("comparison", name), f"Oracles compared on {name}"
    history.tell(publish, key, rows, title, link=link, report=report)
    for rater in comparison.study.raters:
        if rater.lost:
            raise OracleLost.leaving(prepared.folder, rater.stopped)
    history.log(*(f"cost: {rater.name} {in_usd(micro_of(rater.paid_usd))}" for rater in comparison.study.raters))
    stopped = next((rater.stopped for rater in comparison.study.raters if rater.stopped), "")
    if stopped:  # no oracle is lost: a budget is used up
        history.end(BUDGET, stopped, name)
    return {
        "page": str(page),
        "summary": rows,
        "verdict": verdict,
        "stopped_because": str(StopReason.BUDGET) if stopped else "done",
    }


def run_comparison(
    prepared: PreparedComparison,
    *,
    run_id: str,
    compare: CompareTask = collect_answers,
    label: LabelTask = collect_votes,
) -> OracleComparison:
    """The whole comparison as plain Python; the flow passes tasks, tests and benchmarks nothing."""
    for oracle in prepared.built:
        connect(oracle)
    prepared.check_folder()
    asking = Asking(prepared, run_id, compare, label)
    features, discovered = asking.features()
    raters = tuple(asking.rater(asked, features, discovered.get(asked.index)) for asked in prepared.oracles)
    if asking.pending:
        raise waits_for(asking.pending)
    settings, dataset = prepared.settings, prepared.dataset
    study = Study(
        dataset=dataset.name,
        digest=dataset.digest,
        total=len(dataset.examples),
        ids=tuple(example.id for example in prepared.examples),
        features=tuple((feature.name, feature.definition) for feature in features),
        origin=prepared.origin,
        raters=raters,
        truth=prepared.truth(features),
        annotators=settings.annotators,
        accuracy=settings.accuracy,
        seed=settings.seed,
        draws=settings.draws,
        asked=tuple(as_rows(prepared.questions, prepared.examples)),
        command=settings.command,
        versions={"Python": platform.python_version()} | {name: version(name) for name in VERSIONS},
        finished_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    with prepared.events.waiting("working out the statistics"):
        return compare_oracles(study)


def run_flow(prepared: PreparedComparison) -> dict[str, Any]:
    """A comparison that is prepared already, as a flow run."""
    labels = [prepared.dataset.name, *sorted({OracleSpec.parse(text).kind for text in prepared.settings.oracles})]
    work, events = partial(_compare, prepared), prepared.events
    with prepared.store:
        result: dict[str, Any] = run_as_flow(compare_flow, prepared.settings, work, *labels, events=events)
    return result
