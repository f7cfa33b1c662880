"""What the killed processes do: a discovery of 20 questions, all of it but Prefect."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from flows.discover import run_discovery
from flows.preparation import Prepared
from flows.settings import DiscoverSettings
from models.oracle import Answer, Compare, Feature, Oracle, Question, QuestionKeys
from models.voting import Elicited, Labelled, Panel
from sources.dataset import Dataset, Truth
from store import Store
from tests.crash.boundaries import Hook
from tests.crash.provider import PaidOracle
from tests.made import crowd_of, random_truth, texts

EXAMPLES, TRAITS, QUERIES, BATCH = 6, 4, 20, 10
TRUTH = random_truth(EXAMPLES, TRAITS, seed=3)
pd.DataFrame({"warm": [1]}).to_parquet(os.devnull)  # what a run imports late, its children need not import each
RESULTS = ("labels.csv", "labels.parquet", "features.csv", "answers.jsonl")


class Acknowledged:
    """An oracle whose every answer is written down, outside the store, at the moment it is handed over."""

    def __init__(self, oracle: Oracle, book: int, attempt: int) -> None:
        self._oracle = oracle
        self._book = book
        self._attempt = attempt
        self._keys = QuestionKeys(oracle.identity)
        self.identity, self.width, self.estimate = oracle.identity, oracle.width, oracle.estimate

    def ask(self, questions: Iterable[Question]) -> Iterator[Answer]:
        for answer in self._oracle.ask(questions):
            os.write(self._book, f"{self._attempt} {self._keys.of(answer.question)} {answer.verdict.value}\n".encode())
            yield answer


def forgetful(job: dict[str, Any], hook: Hook) -> dict[str, Any]:
    """The same on a store that does not write down what is sent: a control, which must be found out."""
    Store.sent = lambda _store, _owner, keys: set(keys)  # type: ignore[method-assign, assignment]
    claim = Store.claim
    Store.claim = lambda *about, **terms: claim(*about, **terms | {"sending": 0})  # type: ignore[method-assign]
    return discover(job, hook)


def discover(job: dict[str, Any], hook: Hook) -> dict[str, Any]:
    """Discover, and label; the result is in the run folder."""
    folder = Path(job["folder"])
    crowd = crowd_of(TRUTH, seed=1, flip=0.1)
    oracle = PaidOracle(crowd, job["port"], job["attempt"], hook)
    settings = DiscoverSettings(dataset="made", oracle="provider", queries=QUERIES, batch=BATCH, seed=5)
    columns = tuple(f"feature {number}" for number in range(TRAITS))
    dataset = Dataset("made", "made", texts(EXAMPLES), (), Truth(columns, np.asarray(TRUTH)), "made")
    book = os.open(folder / "acknowledged", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def acknowledging(panel: Panel) -> Panel:
        if not isinstance(panel.oracle, Acknowledged):
            panel.oracle = Acknowledged(panel.oracle, book, job["attempt"])
        return panel

    def compare(panel: Panel, questions: list[Compare]) -> Elicited:
        return acknowledging(panel).compare(questions)

    def label(panel: Panel, features: list[Feature]) -> Labelled:
        return acknowledging(panel).label(features)

    with Store.open(job["store"], patience=job.get("patience", 20.0)) as store:
        prepared = Prepared(settings, dataset, oracle, store, folder / "run")
        prepared.folder.mkdir(exist_ok=True)
        outcome = run_discovery(prepared, run_id=f"attempt {job['attempt']}", compare=compare, label=label)
    return {"queries": outcome.progress.queries, "features": len(outcome.progress.findings)}
