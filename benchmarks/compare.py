"""What a comparison of two oracles takes beyond their own time: 1,000 examples × 30 features × 5 votes.

The oracles' own time is that of asking both directly, with no store, no budget and no statistics."""

from __future__ import annotations

import resource
import tempfile
import time
from pathlib import Path
from uuid import uuid4

import numpy as np
import pandas as pd

from benchmarks.machine import heading
from flows.compare import run_comparison
from flows.compare_preparation import PreparedComparison, prepare_comparison
from flows.compare_settings import CompareSettings
from models.oracle import Feature
from models.polling import Poll, SheetWriter
from reports.compare_exports import write_comparison
from reports.comparison import compare_oracles

EXAMPLES, FEATURES, VOTES, SEED = 1_000, 30, 5, 0
MODEL, PEOPLE = "simulated?flip=0.1&seed=1", "simulated?flip=0.2&seed=2&price=0.01"


def write_world(folder: Path) -> list[str]:
    rng = np.random.default_rng(SEED)
    ids = [f"e{number}" for number in range(EXAMPLES)]
    names = [f"trait {chr(65 + place // 26)}{chr(65 + place % 26)}" for place in range(FEATURES)]
    truth = pd.DataFrame((rng.random((EXAMPLES, FEATURES)) < 0.35).astype(int), columns=names)
    truth.insert(0, "id", ids)
    pd.DataFrame({"id": ids, "text": [f"example {name}" for name in ids]}).to_csv(folder / "world.csv", index=False)
    truth.to_csv(folder / "truth.csv", index=False)
    pd.DataFrame({"name": names}).to_csv(folder / "features.csv", index=False)
    return names


def own_time(prepared: PreparedComparison, names: list[str]) -> float:
    features = tuple(Feature(name) for name in names)
    began = time.perf_counter()
    for asked in prepared.oracles:
        writer = SheetWriter(features, [example.id for example in prepared.examples], VOTES)
        Poll(asked.oracle, prepared.examples, VOTES, writer.write).label(features)
    return time.perf_counter() - began


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        names = write_world(folder)
        settings = CompareSettings(
            dataset=str(folder / "world.csv"),
            oracles=(MODEL, PEOPLE),
            people=PEOPLE,
            features=str(folder / "features.csv"),
            votes=str(VOTES),
            store=str(folder / "store.sqlite"),
            out=str(folder / "out"),
            seed=SEED,
        )
        prepared = prepare_comparison(settings)
        alone = own_time(prepared, names)
        began = time.perf_counter()
        comparison = run_comparison(prepared, run_id=str(uuid4()))
        asked = time.perf_counter() - began
        began = time.perf_counter()
        compare_oracles(comparison.study)
        statistics = time.perf_counter() - began
        began = time.perf_counter()
        write_comparison(comparison, prepared.folder, prepared.dataset, {})
        written = time.perf_counter() - began
        began = time.perf_counter()
        run_comparison(prepared, run_id=str(uuid4()))
        again = time.perf_counter() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(heading("python -m benchmarks.compare", SEED))
    print("| two oracles, 300,000 votes | seconds |\n|---|---|")
    print(f"| the oracles alone | {alone:.1f} |")
    print(f"| asking and keeping every answer, statistics included | {asked:.1f} |")
    print(f"| of these, the statistics | {statistics:.1f} |")
    print(f"| page and tables | {written:.1f} |")
    print(f"| **beyond the oracles' own time** | **{asked + written - alone:.1f}** |")
    print(f"| the same again, every answer from the store | {again:.1f} |")
    print(f"\nMost memory: {memory:.0f} MB.")


if __name__ == "__main__":
    main()
