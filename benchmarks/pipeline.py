"""What the pipeline adds to the oracle's own time, and how long a fully cached repetition takes.

The bare loop asks the same oracle the same questions, 16 at a time, with no store, no budget and no Prefect."""

from __future__ import annotations

import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.machine import heading
from discovery.strategies import make_strategy
from flows.discover import _prepared, discover_flow
from flows.history import send_history
from flows.local_server import prefect_api
from flows.loop import Limits, Loop
from flows.preparation import Prepared, prepare
from flows.settings import DiscoverSettings, prefect_environment, state_folder
from models.voting import Panel

EXAMPLES, FEATURES, VOTES, SEED = 100, 20, 5, 0
ORACLE = "simulated:heterogeneous?latency=0.05&width=16&flip=0.1"


def write_world(folder: Path) -> None:
    """Independent features with probability one half, more than are asked for."""
    rng = np.random.default_rng(SEED)
    ids = [f"e{number}" for number in range(EXAMPLES)]
    truth = pd.DataFrame(
        rng.integers(0, 2, (EXAMPLES, 60)), columns=[f"trait {chr(65 + i // 26)}{chr(65 + i % 26)}" for i in range(60)]
    )
    truth.insert(0, "id", ids)
    pd.DataFrame({"id": ids, "text": [f"example {i}" for i in ids]}).to_csv(folder / "world.csv", index=False)
    truth.to_csv(folder / "truth.csv", index=False)


def bare(prepared: Prepared) -> tuple[float, int]:
    settings = prepared.settings
    calls = 0

    def count(_: object) -> None:
        nonlocal calls
        calls += 1

    panel = Panel(prepared.oracle, prepared.compared, settings.votes, count)
    strategy = make_strategy(settings.strategy, EXAMPLES, np.random.default_rng(settings.seed))
    loop = Loop(
        strategy,
        prepared.compared,
        Limits(settings.queries),
        partial(Panel.compare, panel),
        partial(Panel.label, panel),
    )
    began = time.perf_counter()
    loop.run()
    return time.perf_counter() - began, calls


def whole(prepared: Prepared) -> float:
    token = _prepared.set(prepared)
    try:
        began = time.perf_counter()
        discover_flow(prepared.settings)
        return time.perf_counter() - began
    finally:
        _prepared.reset(token)


def main() -> None:
    with tempfile.TemporaryDirectory() as name, prefect_api(state_folder(), prefect_environment()):
        folder = Path(name)
        write_world(folder)
        settings = DiscoverSettings(
            dataset=str(folder / "world.csv"),
            oracle=ORACLE,
            strategy="adaptive-triple",
            queries=FEATURES,
            votes=VOTES,
            seed=SEED,
            store=str(folder / "store.sqlite"),
            out=str(folder / "run"),
        )
        prepared = prepare(settings)
        alone, calls = bare(prepared)
        piped = whole(prepared)
        cached = whole(prepared)
        send_history()
    print(heading("python -m benchmarks.pipeline", SEED))
    print(f"{EXAMPLES} examples, {FEATURES} queries, up to {VOTES} votes, {calls:,} calls of 50 ms, 16 at a time.\n")
    print("| | seconds | per call |")
    print("|---|---:|---:|")
    for label, seconds in (("bare loop", alone), ("whole pipeline", piped), ("fully cached repetition", cached)):
        print(f"| {label} | {seconds:.2f} | {1000 * seconds / calls:.2f} ms |")
    print(f"\nThe pipeline adds {100 * (piped / alone - 1):.1f} % to the bare loop.")


if __name__ == "__main__":
    main()
