"""What the pipeline adds to the oracle's own time, and how long a fully cached repetition takes.

The bare loop asks the same oracle the same questions, 16 at a time, with no store, no budget and no Prefect. Both are
timed in turn, several times, and the medians are compared. The pipeline's time is that of the flow run in Prefect's
own record, from its start to its end; its report and its artifacts are part of it."""

from __future__ import annotations

import tempfile
import time
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
from prefect import get_client

from benchmarks.cases import write_world
from benchmarks.machine import heading
from discovery.strategies import make_strategy
from flows.discover.flow import _discover, discover_flow
from flows.discover.loop import Limits, Loop
from flows.discover.preparation import Prepared, prepare
from flows.discover.settings import DiscoverSettings
from flows.prefect_api.connection import prefect_api
from flows.prefect_api.environment import state_folder
from flows.prefect_api.history import History, send_history
from flows.prefect_api.runs import start_prepared
from models.voting import Panel

EXAMPLES, FEATURES, VOTES, SEED = 100, 20, 5, 0
REPETITIONS = 3
ORACLE = "simulated:heterogeneous?latency=0.05&width=16&flip=0.1"


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
    state = start_prepared(discover_flow, prepared.settings, partial(_discover, prepared, History()))
    state.result()
    run_id = state.state_details.flow_run_id
    assert run_id is not None
    with get_client(sync_client=True) as client:
        return client.read_flow_run(run_id).total_run_time.total_seconds()


def in_folder(folder: Path, name: str) -> Prepared:
    return prepare(
        DiscoverSettings(
            dataset=str(folder / "world.csv"),
            oracle=ORACLE,
            strategy="adaptive-triple",
            queries=FEATURES,
            votes=VOTES,
            seed=SEED,
            store=str(folder / f"{name}.sqlite"),
            out=str(folder / name),
        )
    )


def main() -> None:
    seconds: dict[str, list[float]] = {"bare loop": [], "whole pipeline": [], "fully cached repetition": []}
    with tempfile.TemporaryDirectory() as name, prefect_api(state_folder(), idle=0):
        folder = Path(name)
        write_world(folder, np.random.default_rng(SEED).integers(0, 2, (EXAMPLES, 60)).astype(np.int8))
        for repetition in range(REPETITIONS):
            prepared = in_folder(folder, f"run-{repetition}")
            alone, calls = bare(prepared)
            for timed, once in zip(seconds.values(), (alone, whole(prepared), whole(prepared)), strict=True):
                timed.append(once)
        send_history()
    print(heading("python -m benchmarks.speed.pipeline", SEED))
    print(
        f"{EXAMPLES} examples, {FEATURES} queries, up to {VOTES} votes, {calls:,} calls of 50 ms, 16 at a time; "
        f"median of {REPETITIONS}.\n"
    )
    print("| | seconds | per call | each time |")
    print("|---|---:|---:|---|")
    for label, taken in seconds.items():
        each = ", ".join(f"{one:.2f}" for one in taken)
        print(f"| {label} | {median(taken):.2f} | {1000 * median(taken) / calls:.2f} ms | {each} |")
    more = median(seconds["whole pipeline"]) / median(seconds["bare loop"]) - 1
    print(f"\nThe pipeline adds {100 * more:.1f} % to the bare loop.")


if __name__ == "__main__":
    main()
