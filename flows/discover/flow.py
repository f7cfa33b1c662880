"""Discover features: the adaptive loop as a Prefect flow, and the same from Python in one call."""

from __future__ import annotations

import asyncio
import contextvars
import re
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import partial
from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.runtime import flow_run

from flows.cli.progress import display
from flows.discover.loop import Finding, Limits, Loop, Progress, StopReason, label_rest
from flows.discover.outcome import Outcome
from flows.discover.preparation import Prepared, prepare
from flows.discover.settings import DiscoverSettings
from flows.prefect_api import run_with_api
from flows.reviewing.suspension import raise_if_waiting, suspended, wait_for_people
from models.oracle import MICRO, AnswersPending, Compare, Feature
from models.people.human import Patient
from models.people.mixed import recorded_by
from models.recorded import Recorded
from models.sentences import sentence_closeness
from models.voting import Elicited, Labelled, Panel
from reports.page.history import picture_of
from reports.run.folder import Run
from sources.find import name_of
from tasks.elicit import elicit
from tasks.label import label
from tasks.publish import ProgressArtifact, announce_feature, publish

__all__ = ["Run", "discover", "discover_flow"]


_prepared: ContextVar[Prepared | None] = ContextVar("prepared", default=None)


def _flow_run_name() -> str:
    settings = DiscoverSettings.model_validate(flow_run.parameters["settings"])
    return f"{name_of(settings.dataset)}-{settings.oracle.partition('?')[0]}-seed{settings.seed}"


@flow(name="discover", flow_run_name=_flow_run_name, persist_result=False)
def discover_flow(settings: DiscoverSettings) -> dict[str, Any] | State[Any]:
    """Discover named features in a data set and label every example with them."""
    prepared = _prepared.get() or prepare(settings)
    artifact = ProgressArtifact(f"{settings.queries} queries on {prepared.dataset.name}")
    name = prepared.dataset.name

    def publish_round(progress: Progress, found: list[Finding]) -> None:
        artifact.update(progress.queries / settings.queries, _detail(progress))
        for finding in found:
            announce_feature(name, finding.feature.name, {"positives": int((finding.labels == 1).sum())})

    run_id = str(flow_run.id)
    try:
        outcome = run_discovery(prepared, run_id=run_id, compare=elicit, label=label, on_round=publish_round)
    except AnswersPending as pending:
        return suspended(prepared.store, run_id, pending)
    artifact.update(1.0, _detail(outcome.progress))
    with display().waiting("writing the report"):
        run = Run(prepared.folder)
        page = run.report(dataset=prepared.dataset)
    key = f"features-{re.sub(r'[^a-z0-9]+', '-', name.lower())}"
    publish(key, outcome.features(), f"Features of {name}", picture=picture_of(run), link=page.path.resolve().as_uri())
    outcome.progress.raise_if_lost(prepared.folder)
    return outcome.summary()


def run_discovery(
    prepared: Prepared,
    *,
    run_id: str,
    compare: Callable[[Panel, list[Compare]], Elicited] = Panel.compare,
    label: Callable[[Panel, list[Feature]], Labelled] = Panel.label,
    on_round: Callable[[Progress, list[Finding]], None] = lambda *_: None,
) -> Outcome:
    """The whole discovery as plain Python; the flow hands in tasks, tests and benchmarks hand in nothing."""
    settings, store = prepared.settings, prepared.store
    started = time.monotonic()
    run = store.runs.begin(
        run_id,
        prepared.scope,
        name=prepared.folder.name,
        flow="discover",
        dataset=prepared.dataset.name,
        oracle=str(prepared.oracle.identity),
        settings=settings.model_dump(mode="json"),
    )
    book = partial(Recorded, store=store, run_id=run_id, scope=prepared.scope, budget=settings.budget_micro)
    recorded = run.spending = recorded_by(prepared.oracle, book)
    run.pending = AnswersPending
    asked = Patient(recorded, partial(wait_for_people, store.queue)) if settings.wait else recorded
    panel = Panel(asked, prepared.compared, settings.votes)
    strategy = settings.make_strategy(len(prepared.compared))
    limits = Limits(settings.queries, settings.batch, settings.target_g, settings.nones, settings.voters)
    asking = (partial(compare, panel), partial(label, panel))
    loop = Loop(strategy, prepared.compared, limits, *asking, sentence_closeness())

    def show(progress: Progress, found: list[Finding]) -> None:
        display().update(progress.queries, f"{_detail(progress)}, {recorded.cost / MICRO:.4f} USD")
        on_round(progress, found)

    with run:
        with display().counting(settings.queries, "queries"):
            progress = loop.run(show)
        rest = label_rest(prepared, asked, progress, label) if settings.label_rest else []
        if progress.message and progress.stopped is not StopReason.UNAVAILABLE:  # that one is raised in the end
            display().say(progress.message)
        took, now = round(time.monotonic() - started, 1), datetime.now(UTC).isoformat(timespec="seconds")
        outcome = Outcome(settings, prepared.dataset, prepared.rows, recorded, progress, run_id, took, now, rest)
        outcome.write(prepared.folder)
        run.status = f"stopped: {progress.stopped}"
        return outcome


def _detail(progress: Progress) -> str:
    return (
        f"{len(progress.findings)} features, {progress.interesting_distinct} interesting and distinct, "
        f"g {progress.g:.3f}, unresolved {progress.unresolved:.1%}"
    )


def run_flow(prepared: Prepared) -> Run:
    """The flow against the API it is pointed at, a server that is kept, or one of its own for as long as it runs."""
    token = _prepared.set(prepared)
    try:
        state = run_with_api(
            lambda: discover_flow(prepared.settings, return_state=True),
            publish.name,
            prepared.dataset.name,
            prepared.oracle.identity.kind,
        )
    finally:
        _prepared.reset(token)
    raise_if_waiting(state)
    state.result()
    return Run(prepared.folder)


def discover(dataset: str, **settings: Any) -> Run:
    """Discover features from Python: `run = discover("datasets/faces", oracle="simulated")`, then `run.features` and
    `run.labels`. Works in a script and inside a running event loop (a notebook); no server need be started."""
    prepared = prepare(DiscoverSettings(dataset=dataset, **settings))
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run_flow(prepared)
    context = contextvars.copy_context()
    failure: list[BaseException] = []

    def work() -> None:
        try:
            context.run(run_flow, prepared)
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return Run(prepared.folder)
