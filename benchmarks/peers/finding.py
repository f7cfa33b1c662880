"""Features found for the same money, by our discovery and by other ways to find them."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.peers.asking import Purse
from benchmarks.peers.job import MODEL, PRICE
from benchmarks.peers.styles import STYLES, FoundFeature
from discovery import UNKNOWN, matches_with_truth
from flows.discover.flow import run_discovery
from flows.discover.preparation import prepare
from flows.discover.settings import DiscoverSettings
from models.prices import parse_price
from sources import Dataset, load_dataset
from tests.support.fake_openai import WidelyReadServer

ENOUGH_KNOWN = 0.8  # of the examples: a feature with fewer labels is not counted
COMMON = (0.05, 0.95)  # shares between which an attribute of the truth is counted


@dataclass(frozen=True)
class Yield:
    found: int  # attributes of the truth that labels of a feature agree with
    of: int
    named: int  # features
    usd: float  # by the server's book


def counted(labels: NDArray[np.int8], dataset: Dataset) -> tuple[int, int]:
    """Attributes that some feature matches with a balanced accuracy of 0.9, and how many there are."""
    assert dataset.truth is not None
    truth = np.where(dataset.truth.matrix == UNKNOWN, 0, dataset.truth.matrix).T.astype(np.int8)
    shares = truth.mean(axis=1)
    truth = truth[(shares >= COMMON[0]) & (shares <= COMMON[1])]
    known = labels[(labels != UNKNOWN).mean(axis=1) >= ENOUGH_KNOWN] if labels.size else labels
    return (matches_with_truth(known, truth).matched if known.size else 0), len(truth)


def found_by(name: str, spec: str, budget: float, seed: int) -> Yield:
    """What one way finds in a data set; `name` is twothirds, or one of the styles."""
    dataset = load_dataset(spec)
    with WidelyReadServer(dataset, price=parse_price(PRICE), seed=seed) as server:
        find = ours if name in OPTIONS else style
        result = find(server, dataset, name, budget, seed)
        found, of = counted(result.labels, dataset)
        return Yield(found, of, len(result.names), server.summary()["usd"])


def style(server: WidelyReadServer, dataset: Dataset, name: str, budget: float, seed: int) -> FoundFeature:
    purse = Purse(server.base_url, budget)
    return STYLES[name](purse, dataset.examples, np.random.default_rng(seed))


OPTIONS: dict[str, dict[str, Any]] = {
    "twothirds": {},
    "twothirds, 20 questions": {"queries": 20},
    "twothirds, all labels at the end": {"label_every": 35},
}


def ours(server: WidelyReadServer, dataset: Dataset, name: str, budget: float, seed: int) -> FoundFeature:
    oracle = f"openai:{MODEL}?base_url={server.base_url}&price={PRICE}&retry_delay=0.05"
    with tempfile.TemporaryDirectory() as folder:
        settings = DiscoverSettings(
            dataset=dataset.spec,
            oracle=oracle,
            seed=seed,
            budget=Decimal(str(budget)),
            store=f"{folder}/store.sqlite",
            out=f"{folder}/run",
            **OPTIONS[name],
        )
        run_discovery(prepare(settings), run_id="run")
        table = pd.read_parquet(Path(folder) / "run" / "labels.parquet").set_index("id")
    values = table.reindex([example.id for example in dataset.examples]).to_numpy(dtype=np.float64, na_value=np.nan).T
    return FoundFeature(list(table.columns), np.where(np.isnan(values), UNKNOWN, values).astype(np.int8))
