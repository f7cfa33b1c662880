"""Propose new features: compare examples that the features of a table leave unresolved, and write down what is new."""

from __future__ import annotations

import csv
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
from prefect import flow
from prefect.client.schemas.objects import State

from twothirds.discovery import Labels, find_twin
from twothirds.discovery.strategies import adaptive_triple
from twothirds.flows.discover.findings import Finding, StopReason
from twothirds.flows.discover.loop import Asker, Limits, Loop
from twothirds.flows.discover.settings import SUBSET, WORKING_SET
from twothirds.flows.endings import BUDGET
from twothirds.flows.enrich.batches import open_oracle
from twothirds.flows.enrich.flow import table_folder
from twothirds.flows.enrich.settings import RediscoverSettings
from twothirds.flows.events import SILENT, Events
from twothirds.flows.prefect_api.runs import Caller, artifact_key, flow_run, run_flow, run_name, travels
from twothirds.flows.reviewing.suspension import suspend
from twothirds.flows.run_context import RunEntry, run_context
from twothirds.models import (
    AnswersPending,
    LabelBatch,
    Members,
    Oracle,
    collect_answers,
    collect_votes,
    digest_of,
    in_usd,
)
from twothirds.reports.run import RunError, defuse, replace_file
from twothirds.reports.versions import VersionedTable, read_table
from twothirds.sources import Example, iter_examples, name_of
from twothirds.store import Store
from twothirds.tasks import elicit, label, publish

PROPOSALS = "proposals.csv"
TOGETHER = 4  # questions whose features are labelled together, where that costs less
COLUMNS = ("name", "definition", "share", "question", "examples")


@flow(name="rediscover", flow_run_name=run_name, persist_result=False)
@travels
def rediscover_flow(settings: RediscoverSettings) -> dict[str, Any] | State[Any]:
    """Propose features that tell apart what the known ones do not."""
    with flow_run(settings) as run:
        run.events.log(f"starts: {settings.dataset} with {settings.oracle}", f"plan: {settings.queries} queries")
        found = rediscover_with(
            settings,
            run_id=run.run_id,
            compare=partial(run.executor.call, elicit),
            label=partial(run.executor.call, label),
            events=run.events,
            on_pending=partial(suspend, run),
        )
        title = f"Proposed features of {run.dataset}"
        run.executor.tell(publish, artifact_key("proposals", run.dataset), found.rows, title)
        if found.stopped_because == StopReason.BUDGET:
            run.end(BUDGET, found.message)
        run.done(found, {"proposals": found.rows})
    return run.state


class Rediscovered(NamedTuple):
    rows: list[dict[str, Any]]
    stopped_because: str
    message: str


def rediscover_with(
    settings: RediscoverSettings,
    *,
    run_id: str | None = None,
    compare: Any = collect_answers,
    label: Any = collect_votes,
    events: Events = SILENT,
    on_pending: Callable[[Store, str, AnswersPending], None] = lambda *_: None,
) -> Rediscovered:
    """The proposals, which proposals.csv beside the table holds too: nothing else is changed."""
    out = table_folder(settings.table)
    folder = out.path
    table = read_table(folder)
    oracle, store = open_oracle(settings, events)
    examples, known = sample_of(settings, table, oracle)
    scope = digest_of(["rediscover", out.place, oracle.identity.to_json(), table.table_schema.version])
    entry = RunEntry(
        flow="rediscover",
        name=folder.name,
        scope=scope,
        dataset=name_of(settings.dataset),
        members=Members.alone(oracle),
        settings=settings,
        budget=settings.budget_micro,
        retry_unusable=settings.retry_unusable,
    )
    with run_context(store, run_id or str(uuid4()), entry, events) as context:
        crowd = context.crowd
        strategy = adaptive_triple(len(examples), np.random.default_rng([settings.seed, table.table_schema.version]))
        for feature, labels in known.items():
            strategy.know(feature, labels)
        asker = Asker(
            partial(compare, crowd),
            lambda features: label(crowd, LabelBatch(examples, features, settings.votes)),
        )
        loop = Loop(strategy, examples, limits_of(settings, oracle), asker, events=context.events)
        try:
            progress = loop.run()
        except AnswersPending as pending:
            on_pending(store, context.run_id, pending)
            raise
        context.end(f"stopped: {progress.stopped}", progress.message)
    if progress.message and progress.stopped is not StopReason.UNAVAILABLE:
        events.say(progress.message)
    events.say(f"{progress.queries} questions, {in_usd(context.ledger.cost)}")
    rows = [_row(finding, examples) for finding in _new(progress.findings, known)]
    replace_file(folder / PROPOSALS, lambda file: _write(file, rows))
    out.deliver(events, PROPOSALS)
    progress.raise_if_lost(folder / PROPOSALS)
    return Rediscovered(rows, str(progress.stopped), progress.message)


def limits_of(settings: RediscoverSettings, oracle: Oracle) -> Limits:
    return Limits(settings.queries, labels_after=TOGETHER if oracle.traits.shares_rows else 1)


def sample_of(
    settings: RediscoverSettings, table: VersionedTable, oracle: Oracle
) -> tuple[list[Example], dict[str, Labels]]:
    """Examples that the table has labelled, drawn at random in one pass, and what it says of them."""
    if not table.table_schema.columns:
        raise RunError(f"{settings.table} holds no table: label the data set with `twothirds enrich` first")
    rng = np.random.default_rng(settings.seed)
    size = settings.examples or (WORKING_SET if oracle.traits.shares_rows else SUBSET)
    chosen: list[Example] = []
    seen = 0
    for found in iter_examples(
        settings.dataset, settings.columns, known=lambda digest: table.row_with(digest) is not None
    ):
        if not isinstance(found, Example) or table.row(found.id) is None:
            continue
        seen += 1
        place = len(chosen) if len(chosen) < size else int(rng.integers(seen))
        if place < size:
            chosen[place : place + 1] = [found]
    if len(chosen) < 3:
        raise RunError(f"{settings.table} has labelled {len(chosen)} examples of {settings.dataset}: enrich it first")
    rows = [row for example in chosen if (row := table.row(example.id)) is not None]
    return chosen, {name: table.column_labels(name)[rows] for name in table.table_schema.names}


def _new(findings: list[Finding], known: dict[str, Labels]) -> list[Finding]:
    """Findings that are no feature of the table under another name, nor its opposite."""
    names, labels = list(known), list(known.values())
    new = []
    for finding in findings:
        if find_twin(finding.feature.name, finding.labels, names, labels) is None:
            new.append(finding)
            names.append(finding.feature.name)
            labels.append(finding.labels)
    return new


def _row(finding: Finding, examples: list[Example]) -> dict[str, Any]:
    known = int((finding.labels >= 0).sum())
    return {
        "name": finding.feature.name,
        "definition": finding.feature.definition,
        "share": round(int((finding.labels == 1).sum()) / max(known, 1), 4),
        "question": finding.comparison.kind.value,
        "examples": " ".join(examples[row].id for row in finding.comparison.examples),
    }


def _write(file: Any, rows: list[dict[str, Any]]) -> None:
    writer = csv.DictWriter(file, COLUMNS)
    writer.writeheader()
    writer.writerows({key: defuse(value) for key, value in row.items()} for row in rows)


def run_rediscovery(settings: RediscoverSettings, events: Events = SILENT) -> Rediscovered:
    """A rediscovery as a flow run."""
    found: Rediscovered = run_flow(rediscover_flow, settings, Caller(events))
    return found
