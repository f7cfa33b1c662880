"""Compare oracles: the same questions to each, and a page that says where they differ, who is right, what it costs."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
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
from twothirds.flows.prefect_api.executor import TaskExecutor
from twothirds.flows.prefect_api.runs import Caller, FlowRun, artifact_key, flow_run, run_flow, run_name, travels
from twothirds.flows.reviewing.suspension import suspend
from twothirds.flows.settings import micro_of, served_at
from twothirds.models import AnswersPending, OracleLost, collect_answers, collect_votes, in_usd
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
@travels
def compare_flow(settings: CompareSettings) -> dict[str, Any] | State[Any]:
    """Put the same questions to several oracles and say where they differ, who is right, and what each costs."""
    with flow_run(settings) as run:
        prepared: PreparedComparison = run.prepared or prepare_comparison(settings, run.events)
        prepared = replace(prepared, events=run.events)
        run.events.log(
            f"starts: {settings.dataset} with {', '.join(settings.oracles)}",
            f"plan: the same questions to each about {plural(len(prepared.examples), 'example')}",
        )
        comparison = _asked(prepared, run)
        page = _page(comparison, prepared)
        rows, verdict = summary_rows(comparison), verdict_of(comparison)
        _publish(rows, verdict, prepared, run.executor)
        stopped = _ended(comparison, prepared, run)
        result = {
            "page": str(page),
            "summary": rows,
            "verdict": verdict,
            "stopped_because": str(StopReason.BUDGET) if stopped else "done",
        }
        run.done(result, result)
    return run.state


def _asked(prepared: PreparedComparison, run: FlowRun) -> OracleComparison:
    compare, labelling = partial(run.executor.call, elicit), partial(run.executor.call, label)
    try:
        return run_comparison(prepared, run_id=run.run_id, compare=compare, label=labelling)
    except AnswersPending as pending:
        suspend(run, prepared.store, run.run_id, pending)
        raise


def _page(comparison: OracleComparison, prepared: PreparedComparison) -> Path:
    with prepared.events.waiting("writing the page"):
        settings = prepared.settings.model_dump(mode="json")
        page = write_comparison(comparison, prepared.folder, prepared.dataset, settings)
    if prepared.upload is not None:
        prepared.upload.deliver(prepared.events)
    return page


def _publish(
    rows: list[dict[str, Any]], verdict: Sequence[str], prepared: PreparedComparison, executor: TaskExecutor
) -> None:
    name, link = prepared.dataset.name, served_at(prepared.folder)
    report, key = "\n".join(f"- {sentence}" for sentence in verdict), artifact_key("comparison", name)
    executor.tell(publish, key, rows, f"Oracles compared on {name}", link=link, report=report)


def _ended(comparison: OracleComparison, prepared: PreparedComparison, run: FlowRun) -> str:
    """Why an oracle was not asked everything: a budget is used up. Raises OracleLost."""
    raters = comparison.study.raters
    for rater in raters:
        if rater.lost:
            raise OracleLost.leaving(prepared.folder, rater.stopped)
    run.events.log(*(f"cost: {rater.name} {in_usd(micro_of(rater.paid_usd))}" for rater in raters))
    stopped = next((rater.stopped for rater in raters if rater.stopped), "")
    if stopped:
        run.end(BUDGET, stopped)
    return stopped


def run_comparison(
    prepared: PreparedComparison,
    *,
    run_id: str,
    compare: CompareTask = collect_answers,
    label: LabelTask = collect_votes,
) -> OracleComparison:
    """The whole comparison as plain Python; the flow passes tasks, tests and benchmarks nothing."""
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


def run_prepared(prepared: PreparedComparison) -> dict[str, Any]:
    """A comparison that is prepared already, as a flow run."""
    kinds = sorted({OracleSpec.parse(text).kind for text in prepared.settings.oracles})
    with prepared.store:
        result: dict[str, Any] = run_flow(compare_flow, prepared.settings, Caller(prepared.events, prepared), *kinds)
    return result
