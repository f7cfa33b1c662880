"""What the columns of the next version of a table mean, and when that forbids mixing new labels with old ones.

What a person sees of an enrichment while it works: examples, and the answers that have come so far.

Enrich a growing data set: label what is new with features that are known, and let a table of labels grow."""

from __future__ import annotations

import json
import math
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any
from uuid import uuid4

from prefect import flow
from prefect.runtime import flow_run

from flows.cli.progress import display
from flows.enrich.batches import Labeller, default_folder, oracle_and_store
from flows.enrich.parts import join_parts, locked, missing_parts, write_part
from flows.enrich.runners import local_submit, prefect_submit, task_runner
from flows.enrich.settings import EnrichSettings
from flows.enrich.summary import joined, summarise, told
from flows.enrich.update import Changes, Enrichment, Submit
from flows.feature_lists import read_features
from flows.prefect_api import run_with_api
from models.oracle import MICRO, AnswersPending, BudgetExhausted, Feature, Oracle, OracleLost, OracleUnavailable
from models.recorded import taken_over
from reports.drawing.number_formats import plural
from reports.label_table import Column, Meaning, read_table, write_table
from reports.run.files import RunError, check_writable, replace_file
from sources.find import find_rows, name_of
from store import Store, StoreError
from tasks.publish import publish_enrichment


def next_meaning(old: Meaning, features: list[Feature], identity: dict[str, Any], settings: EnrichSettings) -> Meaning:
    """The meaning of the version to come."""
    version = old.version + 1
    if old.columns and (old.oracle, old.votes) != (identity, settings.votes):
        _require_backfill(settings, f"{old.oracle.get('kind')}:{old.oracle.get('model')}", old.votes)
        return Meaning(version, tuple(Column(f.name, f.definition, 0) for f in features), identity, settings.votes)
    given = {feature.name: feature for feature in features}
    columns = [_continued(column, given.get(column.name), settings) for column in old.columns]
    # Rows of before count as asked for a new feature only if it is filled in for them.
    since = 0 if settings.backfill or not old.columns else version
    columns += [Column(f.name, f.definition, since) for f in features if f.name not in old.names]
    return Meaning(version, tuple(columns), identity, settings.votes)


def _continued(column: Column, feature: Feature | None, settings: EnrichSettings) -> Column:
    """A column of before: as it was, filled in for old rows, or asked again under another definition."""
    if feature is None:
        return column
    if feature.definition != column.definition and not settings.backfill:
        raise RunError(
            f"feature {column.name!r} is defined otherwise than in the table: ask it again with --backfill, "
            "rename it, or give another --out"
        )
    return Column(column.name, feature.definition, 0 if settings.backfill else column.since)


def _require_backfill(settings: EnrichSettings, oracle: str, votes: int) -> None:
    if not settings.backfill:
        raise RunError(
            f"the table was labelled by {oracle} with {plural(votes, 'vote')}, and {settings.oracle} with "
            f"{plural(settings.votes, 'vote')} is another voter: ask everything again with --backfill, "
            "or give another --out"
        )


TICK_SECONDS = 0.5


@contextmanager
def showing_progress(work: Enrichment, total: int | None) -> Iterator[None]:
    """A batch may take minutes, and the thread that waits for it says nothing: another one looks."""
    shown, over = display(), threading.Event()

    def tick() -> None:
        while not over.wait(TICK_SECONDS):
            answers, cost = work.answered
            shown.update(work.looked_at, f"{answers:,} answers, {cost / MICRO:.4f} USD")

    thread = threading.Thread(target=tick, name="progress", daemon=True)
    with shown.counting(total, "examples looked at"):
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(TICK_SECONDS)


SUMMARY = "enrich.json"
RETRIES, RETRY_SECONDS = 2, 300


def _flow_run_name() -> str:
    settings = EnrichSettings.model_validate(flow_run.parameters["settings"])
    part = f"-part-{settings.shard.replace('/', '-of-')}" if settings.shard else ""
    return f"{name_of(settings.dataset)}-{settings.oracle.partition('?')[0]}{part}"


@flow(name="enrich", flow_run_name=_flow_run_name, persist_result=False)
def enrich_flow(settings: EnrichSettings) -> dict[str, Any]:
    """Label the examples of a data set that are new or have changed, and only those."""
    with prefect_submit(settings) as submit:
        summary = enrich_with(settings, run_id=str(flow_run.id), submit=submit)
    key = f"enriched-{re.sub(r'[^a-z0-9]+', '-', name_of(settings.dataset).lower())}"
    publish_enrichment(key, name_of(settings.dataset), summary, told(summary))
    return summary


nightly_flow = enrich_flow.with_options(retries=RETRIES, retry_delay_seconds=RETRY_SECONDS)


def enrich_with(settings: EnrichSettings, *, run_id: str | None = None, submit: Submit | None = None) -> dict[str, Any]:
    """The whole enrichment as plain Python; the flow hands in tasks on a cluster, benchmarks and tests nothing."""
    folder, features = check(settings)
    # Parts are labelled side by side, and each writes a file of its own.
    alone = nullcontext() if settings.part[1] > 1 else locked(folder, wait=False)
    with alone, nullcontext(submit) if submit else local_submit(settings.workers) as how:
        summary, changes = _label_and_write(settings, folder, features, run_id or str(uuid4()), how)
    if isinstance(changes.failure, OracleUnavailable) and settings.part[1] > 1:
        raise OracleLost(
            f"{changes.failure}; part {settings.shard} is not complete and the table is as it was: "
            "the same command goes on, and what was answered is not paid for again"
        )
    if isinstance(changes.failure, OracleUnavailable) and changes.rows:
        raise OracleLost.leaving(folder, str(changes.failure))
    if changes.failure is not None:
        raise changes.failure
    if isinstance(changes.stopped, AnswersPending):
        raise changes.stopped
    return summary


def check(settings: EnrichSettings) -> tuple[Path, list[Feature]]:
    """Where the table is and which features are asked; raises what bad input deserves before anything is started."""
    folder = Path(settings.out) if settings.out else default_folder(settings.dataset)
    check_writable(folder)
    features = read_features(settings.features)
    find_rows(settings.dataset)
    task_runner(settings)
    return folder, features


def _label_and_write(
    settings: EnrichSettings, folder: Path, features: list[Feature], run_id: str, submit: Submit
) -> tuple[dict[str, Any], Changes]:
    started = time.monotonic()
    oracle, store = oracle_and_store(settings)
    table = read_table(folder)
    before = table.meaning
    table.define(next_meaning(before, features, oracle.identity.to_json(), settings))
    run_id = f"{run_id}-{table.meaning.version}"  # a flow that is tried again after a partial table makes the next one
    scope = _begun(settings, folder, table.meaning, oracle, store, run_id)
    work = Enrichment(
        table,
        features,
        Labeller(settings, run_id, scope),
        submit,
        backfill=settings.backfill,
        under_way=2 * settings.workers,
    )
    work.changes.cost = taken_over(oracle, store, run_id, settings.budget_micro)
    status = "failed"
    try:
        total = find_rows(settings.dataset).total or len(table) or None  # a text table says so only when it was read
        with showing_progress(work, total and math.ceil(total / settings.part[1])):
            changes = work.run(settings.dataset, settings.part)
        if not isinstance(changes.failure, StoreError):
            changes.take_from_books(store.totals(run_id))
        summary = summarise(settings, features, work, changes, before, round(time.monotonic() - started, 1))
        summary = _write(folder, settings, work, before, summary)
        status = summary["stopped_because"]
    finally:
        store.end_run(run_id, status, {"paid_calls": work.changes.paid_calls, "cost": work.changes.cost})
    return summary, changes


def _begun(settings: EnrichSettings, folder: Path, meaning: Meaning, oracle: Oracle, store: Store, run_id: str) -> str:
    """Enter the run in the store; the scope to which its budget is counted."""
    scope = settings.scope(str(folder.resolve()), meaning.oracle, meaning.version)
    store.begin_run(
        run_id,
        scope,
        name=folder.name,
        flow="enrich",
        dataset=name_of(settings.dataset),
        oracle=str(oracle.identity),
        settings=settings.model_dump(mode="json"),
    )
    return scope


def _write(
    folder: Path,
    settings: EnrichSettings,
    work: Enrichment,
    before: Meaning,
    summary: dict[str, Any],
) -> dict[str, Any]:
    """The table where something has changed, and the summary. Of a part: the part, and when it is the last one all."""
    table, changes, part = work.table, work.changes, settings.part
    if part[1] > 1:
        if changes.complete or isinstance(changes.stopped, BudgetExhausted):
            write_part(folder, table, changes.rows, summary, part)
        with locked(folder, wait=True):
            if missing := missing_parts(folder, table.meaning, part[1]):
                return summary | {"waits_for": missing}
            summary = joined(*join_parts(folder, table.meaning, part[1]))
            _write_summary(folder, summary)
        return summary
    if changes.rows or (changes.complete and not before.means_the_same_as(table.meaning)):
        write_table(folder, table)
    else:
        summary |= {"version": before.version}
    _write_summary(folder, summary)
    return summary


def _write_summary(folder: Path, summary: dict[str, Any]) -> None:
    replace_file(folder / SUMMARY, lambda file: file.write(json.dumps(summary, indent=2, ensure_ascii=False) + "\n"))


def run_flow(settings: EnrichSettings) -> dict[str, Any]:
    """The flow against the API it is pointed at, a server that is kept, or one of its own for as long as it runs."""
    state = run_with_api(
        lambda: enrich_flow(settings, return_state=True), publish_enrichment.name, name_of(settings.dataset)
    )
    result: dict[str, Any] = state.result()
    return result


def enrich(dataset: str, **settings: Any) -> dict[str, Any]:
    """Enrich from Python: `enrich("faces", features="runs/faces", oracle="contrastive")` returns the summary."""
    return run_flow(EnrichSettings(dataset=dataset, **settings))
