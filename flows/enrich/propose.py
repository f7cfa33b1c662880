"""Propose new features: compare examples that the features of a table leave unresolved, and write down what is new."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from twothirds.discovery import Labels, find_twin
from twothirds.discovery.strategies import adaptive_triple
from twothirds.flows.discover.findings import Finding, StopReason
from twothirds.flows.discover.loop import Asker, Limits, Loop
from twothirds.flows.discover.settings import SUBSET, WORKING_SET
from twothirds.flows.enrich.settings import EnrichSettings
from twothirds.flows.events import Events
from twothirds.models import CachedOracle, LabelBatch, Oracle, collect_answers, collect_votes
from twothirds.reports.run import defuse, replace_file
from twothirds.reports.versions import VersionedTable
from twothirds.sources import Example, iter_examples

PROPOSALS = "proposals.csv"
TOGETHER = 4  # questions whose features are labelled together, where that costs less
FEWEST = 3  # examples that can be compared
COLUMNS = ("name", "definition", "share", "question", "examples")


@dataclass(frozen=True)
class Proposals:
    rows: list[dict[str, Any]]
    stopped_because: StopReason
    message: str  # why it ended early


def propose(
    settings: EnrichSettings, table: VersionedTable, folder: Path, oracle: CachedOracle, events: Events
) -> Proposals:
    """Ask about examples that the table has labelled, and write proposals.csv beside it: nothing else is changed.
    Raises AnswersPending where people have yet to answer."""
    examples = sample_of(settings, oracle.oracle, table)
    if len(examples) < FEWEST:
        return Proposals([], StopReason.EXHAUSTED, f"{len(examples)} labelled examples are too few to compare")
    rows = [row for example in examples if (row := table.row(example.id)) is not None]
    known = {name: table.column_labels(name)[rows] for name in table.table_schema.names}
    strategy = adaptive_triple(len(examples), np.random.default_rng([settings.seed, table.table_schema.version]))
    for feature, labels in known.items():
        strategy.know(feature, labels)
    asker = Asker(
        partial(collect_answers, oracle),
        lambda features: collect_votes(oracle, LabelBatch(examples, features, settings.votes)),
    )
    progress = Loop(strategy, examples, limits_of(settings, oracle.oracle), asker, events=events).run()
    found = [_row(finding, examples) for finding in _new(progress.findings, known)]
    replace_file(folder / PROPOSALS, lambda file: _write(file, found))
    return Proposals(found, progress.stopped or StopReason.EXHAUSTED, progress.message)


def limits_of(settings: EnrichSettings, oracle: Oracle) -> Limits:
    return Limits(settings.propose or 0, labels_after=TOGETHER if oracle.traits.shares_rows else 1)


def sample_of(settings: EnrichSettings, oracle: Oracle, table: VersionedTable | None = None) -> list[Example]:
    """Drawn at random in one pass, of those that the table has labelled where one is given."""
    rng, size = np.random.default_rng(settings.seed), WORKING_SET if oracle.traits.shares_rows else SUBSET
    chosen: list[Example] = []
    seen = 0
    for found in iter_examples(
        settings.dataset,
        settings.columns,
        known=lambda digest: table is not None and table.row_with(digest) is not None,
    ):
        if not isinstance(found, Example) or (table is not None and table.row(found.id) is None):
            continue
        seen += 1
        place = len(chosen) if len(chosen) < size else int(rng.integers(seen))
        if place < size:
            chosen[place : place + 1] = [found]
    return chosen


def _new(findings: Sequence[Finding], known: dict[str, Labels]) -> list[Finding]:
    """Findings that are no feature of the table under another name, nor its opposite."""
    names, labels = list(known), list(known.values())
    new = []
    for finding in findings:
        if find_twin(finding.feature.name, finding.labels, names, labels) is None:
            new.append(finding)
            names.append(finding.feature.name)
            labels.append(finding.labels)
    return new


def _row(finding: Finding, examples: Sequence[Example]) -> dict[str, Any]:
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
