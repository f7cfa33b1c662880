"""Runs as they are browsed: with a catalogue of their examples, made once and again where labels have changed."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from cachetools import LRUCache

from twothirds.reports import Run
from twothirds.reports.browse import ExampleCatalogue, Vectors, browsed_columns
from twothirds.reports.run import LIVE, Findings, LiveRun, RunError
from twothirds.sources import Columns, Dataset, DatasetError, Example, load_dataset, read_metadata, without_secrets
from twothirds.studio.catalog import OpenRun, RunCatalog
from twothirds.studio.config import VectorsOf

if TYPE_CHECKING:
    import pandas as pd

BROWSED_RUNS = 4
SAMPLED = 20  # examples by which it is seen whether vectors are stored


@dataclass(frozen=True, eq=False)
class BrowsedRun:
    """`run` is None of a discovery that has written nothing yet: its examples can be looked at, without labels."""

    key: str
    source: object  # what it was made of: another one where labels have changed
    findings: Findings
    examples: Sequence[Example | None]
    dataset: Dataset | None
    own: pd.DataFrame | None  # the data set's own columns, without secrets
    catalogue: ExampleCatalogue
    run: Run | None

    @property
    def pictured(self) -> bool:
        return any(example is not None and example.image is not None for example in self.examples)

    @property
    def textual(self) -> bool:
        return any(example is not None and example.text is not None for example in self.examples)

    @property
    def media(self) -> str:
        return f"/runs/{self.key}/media/" if self.run is not None else f"/runs/{self.key}/pictures/"


class BrowsedRuns:
    def __init__(self, run_catalog: RunCatalog, vectors_of: VectorsOf) -> None:
        self._run_catalog, self._vectors_of = run_catalog, vectors_of
        self._known: LRUCache[str, BrowsedRun] = LRUCache(BROWSED_RUNS)
        self._embedded: tuple[object, Vectors | None] = (None, None)  # of the run that was last sorted by them
        self._lock, self._reading_vectors = threading.Lock(), threading.Lock()
        self._reading: dict[str, threading.Lock] = {}  # a run that is read keeps nobody from another one

    def get(self, key: str) -> BrowsedRun | None:
        """None where there is no such run. Raises RunError where it cannot be read."""
        opened, folder = self._run_catalog.open(key), self._run_catalog.folder(key, LIVE)
        settings = _settings(LiveRun(folder / LIVE)) if opened is None and folder is not None else {}
        if opened is None and folder is None:
            return None
        with self._lock:
            reading = self._reading.setdefault(key, threading.Lock())
        with reading:
            with self._lock:
                known: BrowsedRun | None = self._known.get(key)
            made = self._finished(key, opened, known) if opened is not None else self._under_way(key, settings, known)
            with self._lock:
                self._known[key] = made
            return made

    def live(self, key: str) -> str:
        """The page of a discovery that goes on; empty if it does not."""
        folder = self._run_catalog.folder(key, LIVE)
        return f"/runs/{key}/discovery" if folder is not None and LiveRun(folder / LIVE).goes_on else ""

    def _finished(self, key: str, opened: OpenRun, before: BrowsedRun | None) -> BrowsedRun:
        if before is not None and before.source is opened:
            return before
        same = before is not None and before.dataset is opened.dataset
        own = before.own if before is not None and same else _own_columns(opened.dataset)
        return BrowsedRun(
            key=key,
            source=opened,
            findings=opened.run.findings,
            examples=opened.examples,
            dataset=opened.dataset,
            own=own,
            catalogue=self._catalogue(opened, opened.run.findings, opened.examples, own),
            run=opened.run,
        )

    def _under_way(self, key: str, settings: dict[str, Any], before: BrowsedRun | None) -> BrowsedRun:
        source = json.dumps(settings, sort_keys=True)
        if before is not None and before.source == source:
            return before
        try:
            dataset = load_dataset(str(settings["dataset"]), Columns.of(settings))
        except (DatasetError, KeyError) as error:
            raise RunError(f"the data set of the discovery cannot be read: {error}") from None
        ids = [example.id for example in dataset.examples]
        findings = Findings(ids, found=[], comparisons=[], label_costs={}, working=np.ones(len(ids), np.bool_))
        own = _own_columns(dataset)
        return BrowsedRun(
            key=key,
            source=source,
            findings=findings,
            examples=dataset.examples,
            dataset=dataset,
            own=own,
            catalogue=self._catalogue(source, findings, dataset.examples, own),
            run=None,
        )

    def _catalogue(
        self, source: object, findings: Findings, examples: Sequence[Example | None], own: pd.DataFrame | None
    ) -> ExampleCatalogue:
        texts = [example.text if example else None for example in examples]
        columns = browsed_columns(own, findings.attributes, findings.ids)
        digests = [example.digest if example else "" for example in examples]

        def vectors() -> Vectors | None:
            with self._reading_vectors:
                if self._embedded[0] is not source:
                    self._embedded = (source, self._vectors_of(digests))
                return self._embedded[1]

        embedded = self._vectors_of(digests[:SAMPLED]) is not None
        return ExampleCatalogue(findings, texts, columns, vectors if embedded else None)


def _settings(live: LiveRun) -> dict[str, Any]:
    """Nothing where the file cannot be read."""
    try:
        found: dict[str, Any] = live.begun.get("settings", {})
    except (OSError, ValueError):
        return {}
    return found


def _own_columns(dataset: Dataset | None) -> pd.DataFrame | None:
    """What addresses in it hold of secrets is nobody's business here: whoever is invited sees it."""
    try:
        table = read_metadata(dataset) if dataset is not None else None
    except DatasetError:
        return None
    return None if table is None else table.map(_public)


def _public(cell: Any) -> Any:
    return without_secrets(cell) if isinstance(cell, str) and "://" in cell else cell
