"""The settings of a rediscovery: one model for the command line and the form in Prefect.

Propose new features: compare examples that the features of a table leave unresolved, and write down what is new."""

from __future__ import annotations

import csv
import re
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import numpy as np
from prefect import flow
from prefect.runtime import flow_run
from pydantic import BaseModel, ConfigDict, Field

from discovery.questions import Comparison, Kind, Labels
from discovery.strategies.adaptive import adaptive_triple
from discovery.twins import find_twin
from flows.cli.progress import display
from flows.discover.loop import Finding, Limits, Loop, Progress, StopReason
from flows.discover.settings import SUBSET
from flows.enrich.batches import opened
from flows.prefect_api import run_with_api
from flows.settings import DatasetText, OracleText, StoreText
from models.oracle import MICRO, Money, digest_of
from models.recorded import Recorded
from models.voting import Panel
from reports.label_table import GrowingTable, read_table
from reports.run.csv_cells import defuse
from reports.run.folder import RunError, replace_file
from sources.dataset import Example
from sources.find import name_of
from sources.load import iter_examples
from store.ledger.runs import ActiveRun
from tasks.elicit import elicit
from tasks.label import label
from tasks.publish import publish


class RediscoverSettings(BaseModel):
    """Everything that one rediscovery is told."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    dataset: DatasetText = Field(
        description="a folder of images, a CSV, JSONL or Parquet file, or an fsspec URL of these"
    )
    table: str = Field(description="the folder in which enrich keeps its table")
    oracle: OracleText = Field(description="who answers, as in discover")
    queries: int = Field(20, ge=1, description="comparisons to ask at most")
    votes: int = Field(1, ge=1, le=99, description="independent votes per label; the majority counts")
    examples: int = Field(SUBSET, ge=3, description="compare a random subset of this size")
    seed: int = Field(0, ge=0, description="seed of every random choice")
    budget: Annotated[Decimal, Field(gt=0, decimal_places=6)] | None = Field(None, description="USD that it may cost")
    store: StoreText | None = Field(
        None, description="URL or path of the store (default: TWOTHIRDS_STORE, or the user's own)"
    )

    @property
    def budget_micro(self) -> Money | None:
        return None if self.budget is None else int(self.budget * MICRO)


PROPOSALS = "proposals.csv"
COLUMNS = ("name", "definition", "share", "question", "examples")


def _flow_run_name() -> str:
    settings = RediscoverSettings.model_validate(flow_run.parameters["settings"])
    return f"{name_of(settings.dataset)}-{settings.oracle.partition('?')[0]}"


@flow(name="rediscover", flow_run_name=_flow_run_name, persist_result=False)
def rediscover_flow(settings: RediscoverSettings) -> list[dict[str, Any]]:
    """Propose features that tell apart what the known ones do not."""
    rows = rediscover_with(settings, run_id=str(flow_run.id), compare=elicit, label=label)
    name = name_of(settings.dataset)
    publish(f"proposals-{re.sub(r'[^a-z0-9]+', '-', name.lower())}", rows, f"Proposed features of {name}")
    return rows


def rediscover_with(
    settings: RediscoverSettings, *, run_id: str | None = None, compare: Any = Panel.compare, label: Any = Panel.label
) -> list[dict[str, Any]]:
    """The proposals, which proposals.csv beside the table holds too: nothing else is changed."""
    folder = Path(settings.table)
    table = read_table(folder)
    if not table.meaning.columns:
        raise RunError(f"{folder} holds no table: label the data set with `python -m flows enrich` first")
    examples, known = _sample(settings, table)
    run, recorded = _begun(settings, table, folder, run_id or str(uuid4()))
    panel = Panel(recorded, examples, settings.votes)
    strategy = adaptive_triple(len(examples), np.random.default_rng([settings.seed, table.meaning.version]))
    for name, labels in known.items():  # any question will do: what counts is what the feature tells apart
        strategy.learn(Comparison(Kind.TWO_OF_THREE, (0, 1, 2)), name, labels)
    loop = Loop(strategy, examples, Limits(settings.queries), partial(compare, panel), partial(label, panel))
    progress = _ran(loop, run, recorded, settings.queries)
    rows = [_row(finding, examples) for finding in _new(progress.findings, known)]
    replace_file(folder / PROPOSALS, lambda file: _write(file, rows))
    progress.raise_if_lost(folder / PROPOSALS)
    return rows


def _begun(settings: RediscoverSettings, table: GrowingTable, folder: Path, run_id: str) -> tuple[ActiveRun, Recorded]:
    oracle, store = opened(settings.dataset, settings.oracle, settings.seed, settings.store, settings.budget_micro)
    scope = digest_of(["rediscover", str(folder.resolve()), oracle.identity.to_json(), table.meaning.version])
    run = store.runs.begin(
        run_id,
        scope,
        name=folder.name,
        flow="rediscover",
        dataset=name_of(settings.dataset),
        oracle=str(oracle.identity),
        settings=settings.model_dump(mode="json"),
    )
    recorded = Recorded(oracle, store, run_id=run_id, scope=scope, budget=settings.budget_micro)
    run.spending = recorded
    return run, recorded


def _ran(loop: Loop, run: ActiveRun, recorded: Recorded, queries: int) -> Progress:
    """Run the loop to its end."""
    with run:
        with display().counting(queries, "queries"):
            progress = loop.run(lambda now, _: display().update(now.queries, f"{len(now.findings)} proposals"))
        run.status = f"stopped: {progress.stopped}"
    if progress.message and progress.stopped is not StopReason.UNAVAILABLE:
        display().say(progress.message)
    display().say(f"{progress.queries} questions, {recorded.cost / MICRO:.4f} USD")
    return progress


def _sample(settings: RediscoverSettings, table: GrowingTable) -> tuple[list[Example], dict[str, Labels]]:
    """Examples that the table has labelled, drawn at random in one pass, and what it says of them."""
    rng = np.random.default_rng(settings.seed)
    chosen: list[Example] = []
    seen = 0
    for found in iter_examples(settings.dataset, known=lambda digest: table.row_with(digest) is not None):
        if not isinstance(found, Example) or table.row(found.id) is None:
            continue
        seen += 1
        place = len(chosen) if len(chosen) < settings.examples else int(rng.integers(seen))
        if place < settings.examples:
            chosen[place : place + 1] = [found]
    if len(chosen) < 3:
        raise RunError(f"{settings.table} has labelled {len(chosen)} examples of {settings.dataset}: enrich it first")
    rows = [row for example in chosen if (row := table.row(example.id)) is not None]
    return chosen, {name: table.column_labels(name)[rows] for name in table.meaning.names}


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


def run_flow(settings: RediscoverSettings) -> list[dict[str, Any]]:
    state = run_with_api(lambda: rediscover_flow(settings, return_state=True), publish.name, name_of(settings.dataset))
    rows: list[dict[str, Any]] = state.result()
    return rows
