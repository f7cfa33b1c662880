"""Enrich a growing data set: label what is new with features that are known, and let a table of labels grow."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

from prefect import flow
from prefect.client.schemas.objects import State

from twothirds.flows.discover.findings import StopReason
from twothirds.flows.endings import BUDGET
from twothirds.flows.enrich.batches import BatchLost, Labeller, Resources, Submit
from twothirds.flows.enrich.checks import LOOKED_AT, check, folder_of
from twothirds.flows.enrich.predict import Predictor
from twothirds.flows.enrich.propose import Proposals, propose
from twothirds.flows.enrich.runners import local_submit, prefect_submit
from twothirds.flows.enrich.schemas import next_table_schema
from twothirds.flows.enrich.settings import EnrichSettings
from twothirds.flows.enrich.summary import WAITING, EnrichSummary, NightOutcome, complete_history, summarise
from twothirds.flows.enrich.update import Changes, Enrichment
from twothirds.flows.enrich.values import ValueTable
from twothirds.flows.events import SILENT, Events
from twothirds.flows.oracle_specs import is_local, may_cost
from twothirds.flows.prefect_api.runs import Caller, artifact_key, flow_run, run_flow, run_name, travels
from twothirds.flows.reviewing.suspension import suspend
from twothirds.flows.run_context import UNUSABLE, RunEntry, resumed_runs, retry_time, run_context, was_unusable
from twothirds.flows.runs import attributes_of, corrected_cells
from twothirds.flows.settings import Environment, OutFolder
from twothirds.models import (
    AnswersPending,
    AnswersUnusable,
    CachedOracle,
    Feature,
    Label,
    Members,
    Oracle,
    OracleLost,
    OracleUnavailable,
    ServerAway,
    in_usd,
)
from twothirds.reports.run import TableBusy, locked
from twothirds.reports.versions import (
    GROWING,
    SUMMARY,
    Contract,
    ContractViolated,
    TableSchema,
    VersionedTable,
    read_table,
    table_version,
)
from twothirds.sources import Example, Rows, examples_in, find_rows, name_of
from twothirds.store import Store, StoreError
from twothirds.studio.web import plural
from twothirds.tasks import publish_enrichment

TICK_SECONDS = 0.5


@contextmanager
def showing_progress(work: Enrichment, total: int | None, events: Events) -> Iterator[None]:
    """A batch may take minutes, and the thread that waits for it says nothing: another one looks."""
    over = threading.Event()

    def tick() -> None:
        while not over.wait(TICK_SECONDS):
            answers, cost = work.answered
            show(work.looked_at, f"{answers:,} answers, {in_usd(cost)}")

    # Its log lines find Prefect's server by the context.
    thread = threading.Thread(target=copy_context().run, args=(tick,), name="progress", daemon=True)
    with events.counting(total, "examples looked at") as show:
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(TICK_SECONDS)


RETRIES, RETRY_SECONDS = 2, 300
VERSIONS_RESUMED = 20  # of the table, in which the runs that a run resumes are looked for


@flow(name="enrich", flow_run_name=run_name, persist_result=False)
@travels
def enrich_flow(settings: EnrichSettings) -> dict[str, Any] | State[Any]:
    """Label the examples of a data set that are new or have changed, and only those."""
    with flow_run(settings) as run:
        run.events.log(f"starts: {settings.dataset} with {settings.oracle}")
        with prefect_submit(settings, run.executor) as submit:
            summary = enrich_with(
                settings,
                run_id=run.run_id,
                submit=submit,
                events=run.events,
                on_pending=partial(suspend, run),
                resources=run.prepared,
            )
        run.events.log(*(f"skipped {left.id}: {left.reason}" for left in summary.left_out), *summary.lines())
        key, name = artifact_key("enriched", run.dataset), run.dataset
        run.executor.tell(publish_enrichment, key, name, summary.to_json(), summary.lines())
        run.tell_refusals(summary.unusable)
        if moved := [drift["feature"] for drift in summary.drift if drift["moved"]]:
            run.emit("twothirds.drift.moved", f"the share of {', '.join(moved)} has moved", features=moved)
        if summary.stopped_because == StopReason.BUDGET:
            run.end(BUDGET, summary.message)
        run.done(summary, summary.to_json())
    return run.state


nightly_flow = enrich_flow.with_options(retries=RETRIES, retry_delay_seconds=RETRY_SECONDS)


def enrich_with(
    settings: EnrichSettings,
    *,
    run_id: str | None = None,
    submit: Submit | None = None,
    events: Events = SILENT,
    on_pending: Callable[[Store, str, AnswersPending], None] = lambda *_: None,
    resources: Resources | None = None,
) -> EnrichSummary:
    """The whole enrichment as plain Python; the flow passes tasks on a cluster, benchmarks and tests nothing."""
    folder, features = check(settings)
    contract = Contract.read(Path(settings.expect)) if settings.expect else Contract()
    out = OutFolder(folder)
    with (
        locked(folder, "enrichment", TableBusy),
        nullcontext(submit) if submit else local_submit(settings.workers) as how,
        closing(resources or Resources(events)) as resources,
    ):
        if settings.out:  # under the lock, which other runs on this machine respect
            out = OutFolder.of(settings.out, SUMMARY, growing=GROWING)
        job = _Job(
            settings=settings,
            folder=folder,
            features=features,
            run_id=run_id or str(uuid4()),
            submit=how,
            resources=resources,
            events=events,
            place=out.place,
            contract=contract,
        )
        summary, changes = job.run()
        out.deliver(events)
        if isinstance(changes.stopped, AnswersPending):
            on_pending(resources.oracle_and_store(settings)[1], changes.run_id, changes.stopped)
    if isinstance(changes.failure, OracleUnavailable) and (changes.rows or summary.proposed):
        raise OracleLost.leaving(folder, str(changes.failure))
    if isinstance(changes.failure, BatchLost) and changes.failure.away:
        raise ServerAway(str(changes.failure)) from changes.failure
    if changes.failure is not None:
        raise changes.failure
    if isinstance(changes.stopped, AnswersPending):
        raise changes.stopped
    if summary.violations:
        raise ContractViolated.leaving(folder, summary.violations)
    if changes.mostly_unusable:
        raise AnswersUnusable.leaving(folder, changes.unusable.summary().lines()[0])
    return summary


@dataclass(frozen=True)
class _Job:
    """One enrichment with all that it needs."""

    settings: EnrichSettings
    folder: Path
    features: list[Feature]
    run_id: str
    submit: Submit
    resources: Resources
    events: Events
    place: str  # by which budgets know the table
    contract: Contract

    def run(self) -> tuple[EnrichSummary, Changes]:
        """Label what is missing, write the table and its summary."""
        started, settings = time.monotonic(), self.settings
        oracle, store = self.resources.oracle_and_store(settings)
        table = read_table(self.folder)
        before = table.table_schema
        complete_history(self.folder, table)
        asked = oracle.identity.to_json() | ({"exemplars": settings.exemplars} if settings.exemplars else {})
        table.define(next_table_schema(before, self.features, asked, settings))
        table.correct(corrected_cells(settings.features))
        # A flow that is tried again after a partial table makes the next version.
        run_id = f"{self.run_id}-{table.table_schema.version}"
        scopes = self._scopes(table.table_schema)
        scope = scopes[0]
        entry = RunEntry(
            flow="enrich",
            name=self.folder.name,
            scope=scope,
            dataset=name_of(settings.dataset),
            members=Members.alone(oracle),
            settings=settings,
            budget=settings.budget_micro,
            job=settings.job,
        )
        with run_context(store, run_id, entry, self.events) as context:
            run, events = context.record, context.events
            retry_unusable = retry_time(store, run_id, scopes, on_request=settings.retry_unusable)
            context.ledger.retry_unusable = retry_unusable
            self.resources.book_in(context.ledger)
            labeller = Labeller(settings, run_id, scope, self.resources, retry_unusable)
            embeddings, predictor = Environment.read().cache / "embeddings", None
            if settings.agree is not None:
                *_, first = resumed_runs(store, run_id, scopes)  # a partial table has gone into another scope since
                number = store.runs.sampling_number(first.scope)
                predictor = Predictor(settings, self.folder, embeddings, oracle.identity.to_json(), number)
            work = Enrichment(
                table,
                self.features,
                labeller,
                self.submit,
                backfill=settings.backfill,
                in_flight=2 * settings.workers,
                drop_gone=settings.drop_gone,
                predictor=predictor,
                cheap=self._cheap(labeller),
                opens_all=oracle.traits.opens_pictures,
                asks_early=not (oracle.traits.slow or oracle.traits.deterministic),
            )
            run.spending = changes = work.changes
            changes.run_id = run_id
            changes.tried_again = was_unusable(store, run_id, scopes)
            listed = find_rows(settings.dataset, settings.columns)
            events.log(*self._plan(oracle, listed, len(table)))
            if left := settings.budget_left(store):
                events.say(left)
            with showing_progress(work, listed.total, events):  # a text table says how many only when read
                work.run(settings.dataset, settings.columns)
            values = ValueTable.read(self.folder).grown(table, attributes_of(settings.features))
            if changes.complete:
                values.fill()
            for line in changes.remarks:
                events.say(line)
            if not isinstance(changes.failure, StoreError):
                changes.use_totals(store.costs.totals(run_id))
            seconds = round(time.monotonic() - started, 1)
            summary = summarise(settings, self.features, work, before, seconds, values)
            outcome = NightOutcome(self.folder, work, before, self.contract, run_id)
            summary = outcome.write(summary, values)
            if settings.propose and changes.complete and not summary.violations:
                summary = self._propose(summary, table, labeller.recorded(), changes, events)
                changes.use_totals(store.costs.totals(run_id))
                summary = summary.with_costs(changes)
                summary.write(self.folder)
            run.figures |= summary.figures()
            run.status = UNUSABLE if changes.mostly_unusable else summary.stopped_because
            run.message = "; ".join(summary.violations) or summary.message
            if changes.mostly_unusable:
                run.message = changes.unusable.summary().lines()[0]
        return summary, changes

    def _plan(self, oracle: Oracle, listed: Rows, rows: int) -> list[str]:
        """What is about to be asked, and what it costs at most; the data set is not read for it."""
        settings, new = self.settings, None if listed.total is None else max(listed.total - rows, 0)
        asked = f"{plural(len(self.features), 'feature')} with {plural(settings.votes, 'vote')} each"
        examples = "what is new" if new is None else f"about {plural(new, 'new example')}"
        then = f"; then {plural(settings.propose, 'question')} for new ones" if settings.propose else ""
        lines = [f"plan: {asked} for {examples}; the table has {plural(rows, 'row')}{then}"]
        if new is not None and may_cost(settings.oracle):
            first = next(
                (found for found in islice(examples_in(listed), LOOKED_AT) if isinstance(found, Example)), None
            )
            labels = [Label(feature, first) for feature in self.features] if first else []
            price = sum(request.bound for request in oracle.plan(labels) if request.probe is None)
            most = in_usd(new * settings.votes * price, at_most=True)
            lines.append(f"estimate: at most {most} if all examples are like the first")
        return lines

    def _propose(
        self,
        summary: EnrichSummary,
        table: VersionedTable,
        oracle: CachedOracle,
        changes: Changes,
        events: Events,
    ) -> EnrichSummary:
        """What ends it is noted as what has ended the night."""
        try:
            proposals = propose(self.settings, table, self.folder, oracle, events)
        except AnswersPending as pending:
            changes.stopped = pending
            return summary.model_copy(update={"stopped_because": WAITING, "message": str(pending)})
        except OracleUnavailable as lost:
            proposals = Proposals([], StopReason.UNAVAILABLE, str(lost))
        if proposals.stopped_because is StopReason.UNAVAILABLE:
            changes.failure = OracleUnavailable(proposals.message)
        return summary.with_proposals(proposals)

    def _cheap(self, labeller: Labeller) -> Labeller | None:
        """Who labels first, at the run's expense and within its budget."""
        if self.settings.cheap is None:
            return None
        settings = self.settings.model_copy(update={"oracle": self.settings.cheap, "votes": 1})
        return Labeller(settings, labeller.run_id, labeller.scope, self.resources, labeller.retry_unusable)

    def _scopes(self, table_schema: TableSchema) -> list[str]:
        """Of this version of the table, and of those before it: a run that is resumed may have left a partial table."""
        first = max(table_schema.version - VERSIONS_RESUMED, 0)
        return [
            self.settings.scope(self.place, table_schema.oracle, at) for at in range(table_schema.version, first, -1)
        ]


def run_enrichment(settings: EnrichSettings, events: Events = SILENT) -> EnrichSummary:
    """An enrichment as a flow run. A local model is loaded, and looks at the first pictures, while Prefect starts,
    unless there may be nothing new."""
    with closing(Resources(events)) as resources:
        here = is_local(settings.oracle) and settings.runner == "threads"  # else the processes of a cluster load it
        if here and not table_version(folder_of(settings)):
            threading.Thread(target=resources.load_ahead, args=(settings,), name="load", daemon=True).start()
        summary: EnrichSummary = run_flow(enrich_flow, settings, Caller(events, resources))
        return summary
