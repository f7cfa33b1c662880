"""Compare oracles: the same questions to each, and a page that says where they differ, who is right, what it costs."""

from __future__ import annotations

import platform
import re
from contextvars import ContextVar
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.runtime import flow_run

from flows.cli.progress import display
from flows.compare.ask_oracles import Asking, CompareTask, LabelTask, plain_compare, plain_label, waits_for
from flows.compare.preparation import PreparedComparison, prepare_comparison
from flows.compare.settings import CompareSettings
from flows.oracle_specs import OracleSpec
from flows.prefect_api import run_with_api
from flows.reviewing.suspension import raise_if_waiting, suspended
from models.oracle import AnswersPending, OracleLost, connect
from reports.compare.comparison import OracleComparison, compare_oracles
from reports.compare.exports import summary_rows, write_comparison
from reports.compare.study import Study
from reports.compare.verdict import verdict_of
from reports.run.files import check_writable
from sources.find import name_of
from tasks.elicit import elicit
from tasks.label import label
from tasks.probe import probed
from tasks.publish import publish

VERSIONS = ("numpy", "scipy", "prefect")

_prepared: ContextVar[PreparedComparison | None] = ContextVar("prepared_comparison", default=None)


def _flow_run_name() -> str:
    settings = CompareSettings.model_validate(flow_run.parameters["settings"])
    return f"{name_of(settings.dataset)}-{len(settings.oracles)}-oracles-seed{settings.seed}"


@flow(name="compare", flow_run_name=_flow_run_name, persist_result=False)
def compare_flow(settings: CompareSettings) -> dict[str, Any] | State[Any]:
    """Put the same questions to several oracles and say where they differ, who is right, and what each costs."""
    prepared = _prepared.get() or prepare_comparison(settings)
    run_id = str(flow_run.id)
    for oracle in prepared.built:
        probed(oracle)
    try:
        comparison = run_comparison(prepared, run_id=run_id, compare=elicit, label=label)
    except AnswersPending as pending:
        return suspended(prepared.store, run_id, pending)
    with display().waiting("writing the page"):
        page = write_comparison(comparison, prepared.folder, prepared.dataset, settings.model_dump(mode="json"))
    name = prepared.dataset.name
    key = f"comparison-{re.sub(r'[^a-z0-9]+', '-', name.lower())}"
    publish(key, summary_rows(comparison), f"Oracles compared on {name}", link=page.resolve().as_uri())
    for one in comparison.study.contenders:
        if one.lost:
            raise OracleLost.leaving(prepared.folder, one.stopped)
    return {"page": str(page), "summary": summary_rows(comparison), "verdict": verdict_of(comparison)}


def run_comparison(
    prepared: PreparedComparison, *, run_id: str, compare: CompareTask = plain_compare, label: LabelTask = plain_label
) -> OracleComparison:
    """The whole comparison as plain Python; the flow hands in tasks, tests and benchmarks hand in nothing."""
    for oracle in prepared.built:
        connect(oracle)
    check_writable(prepared.folder)
    asking = Asking(prepared, run_id, compare, label)
    features, discovered = asking.features()
    contenders = tuple(asking.contender(asked, features, discovered.get(asked.place)) for asked in prepared.oracles)
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
        contenders=contenders,
        truth=prepared.truth(features),
        annotators=settings.annotators,
        accuracy=settings.accuracy,
        seed=settings.seed,
        draws=settings.draws,
        triples=tuple(prepared.triples),
        command=settings.command,
        versions={"Python": platform.python_version()} | {name: version(name) for name in VERSIONS},
        finished_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    with display().waiting("working out the statistics"):
        return compare_oracles(study)


def run_flow(prepared: PreparedComparison) -> dict[str, Any]:
    """The flow against the API it is pointed at, a server that is kept, or one of its own for as long as it runs."""
    token = _prepared.set(prepared)
    kinds = sorted({OracleSpec.parse(text).kind for text in prepared.settings.oracles})
    try:
        state = run_with_api(
            lambda: compare_flow(prepared.settings, return_state=True), publish.name, prepared.dataset.name, *kinds
        )
    finally:
        _prepared.reset(token)
    raise_if_waiting(state)
    result: dict[str, Any] = state.result()
    return result
