"""Comparisons made to order: a world of texts with truth, and the settings that compare oracles on it."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from twothirds.flows.compare.flow import run_comparison
from twothirds.flows.compare.preparation import PreparedComparison, prepare_comparison
from twothirds.flows.compare.settings import CompareSettings
from twothirds.reports.compare.comparison import OracleComparison

FEATURES = ("hat", "glasses", "beard")
Votes = Iterable[tuple[str, str, str, int]]


def make_world(folder: Path, n: int = 60, features: Sequence[str] = FEATURES, seed: int = 0, truth: bool = True) -> str:
    """A table of texts; returns the data set as a person would type it."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    ids = [f"e{number}" for number in range(n)]
    _write(folder / "world.csv", ("id", "text"), ((name, f"the text of {name}") for name in ids))
    if truth:
        cells = (rng.random((n, len(features))) < 0.4).astype(int)
        _write(folder / "truth.csv", ("id", *features), ((name, *row) for name, row in zip(ids, cells, strict=True)))
    return str(folder / "world.csv")


def write_votes(path: Path, votes: Votes) -> str:
    """The oracle that replays them."""
    _write(path, ("example", "feature", "worker", "label"), votes)
    return f"recorded:{path}"


def prepared(folder: Path, dataset: str, *oracles: str, **settings: Any) -> PreparedComparison:
    chosen = {"store": str(folder / "store.sqlite"), "out": str(folder / "out"), "comparisons": 4, "draws": 200}
    return prepare_comparison(CompareSettings(dataset=dataset, oracles=oracles, **chosen | settings))


def compared(folder: Path, dataset: str, *oracles: str, **settings: Any) -> OracleComparison:
    return run_comparison(prepared(folder, dataset, *oracles, **settings), run_id=str(uuid4()))


def feature_list(path: Path, names: Sequence[str] = FEATURES) -> str:
    _write(path, ("name", "definition"), ((name, f"about {name}") for name in names))
    return str(path)


def _write(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(rows)
