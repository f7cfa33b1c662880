"""What a comparison of two oracles takes beyond their own time: 1,000 examples × 30 features × 5 votes.

The oracles' own time is that of asking both directly, with no store, no budget and no statistics. While an oracle takes
its time, answers are stored in parallel; where it answers at once, storing them takes the time."""

from __future__ import annotations

import resource
import tempfile
import time
from pathlib import Path
from uuid import uuid4

import numpy as np

from benchmarks.cases import write_world
from benchmarks.machine import heading
from flows.compare.flow import run_comparison
from flows.compare.preparation import PreparedComparison, prepare_comparison
from flows.compare.settings import CompareSettings
from models.oracle import Feature
from models.voting import Poll, SheetWriter
from reports.compare.comparison import OracleComparison, compare_oracles
from reports.compare.exports import write_comparison

EXAMPLES, FEATURES, VOTES, SEED = 1_000, 30, 5, 0
QUESTIONS = EXAMPLES * FEATURES * VOTES
LATENCY, WIDTH = 0.016, 16  # 1,000 answers a second: more than any service gives one user
SLOWLY = f"&latency={LATENCY}&width={WIDTH}"
MODEL, PEOPLE = "simulated?flip=0.1&seed=1", "simulated?flip=0.2&seed=2&price=0.01"


def prepared_for(folder: Path, name: str, oracles: tuple[str, str]) -> PreparedComparison:
    settings = CompareSettings(
        dataset=str(folder / "world.csv"),
        oracles=oracles,
        people=oracles[1],
        features=str(folder / "features.csv"),
        votes=str(VOTES),
        comparisons=0,
        store=str(folder / f"{name}.sqlite"),
        out=str(folder / name),
        seed=SEED,
    )
    return prepare_comparison(settings)


def own_time(prepared: PreparedComparison, names: list[str]) -> float:
    features = tuple(Feature(name) for name in names)
    began = time.perf_counter()
    for asked in prepared.oracles:
        writer = SheetWriter(features, [example.id for example in prepared.examples], VOTES)
        Poll(asked.oracle, prepared.examples, VOTES, writer.write).label(features)
    return time.perf_counter() - began


def whole(prepared: PreparedComparison) -> tuple[float, OracleComparison]:
    began = time.perf_counter()
    comparison = run_comparison(prepared, run_id=str(uuid4()))
    write_comparison(comparison, prepared.folder, prepared.dataset, {})
    return time.perf_counter() - began, comparison


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        names = write_world(folder, (np.random.default_rng(SEED).random((EXAMPLES, FEATURES)) < 0.35).astype(np.int8))
        (folder / "features.csv").write_text("\n".join(["name", *names]))
        slow = prepared_for(folder, "slow", (MODEL + SLOWLY, PEOPLE + SLOWLY))
        waited = 2 * QUESTIONS * LATENCY / WIDTH  # what the oracles need at least
        with_slow, comparison = whole(slow)
        began = time.perf_counter()
        compare_oracles(comparison.study)
        statistics = time.perf_counter() - began
        again, _ = whole(slow)
        at_once = prepared_for(folder, "at-once", (MODEL, PEOPLE))
        worked = [time.process_time()]
        alone = own_time(at_once, names)
        worked.append(time.process_time())
        with_fast, _ = whole(at_once)
        worked.append(time.process_time())
        written = folder / "at-once"
        replayed = prepared_for(
            folder, "replayed", (f"recorded:{written / 'votes-1.csv'}", f"recorded:{written / 'votes-2.csv'}")
        )
        reading, (with_recorded, _) = own_time(replayed, names), whole(replayed)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(heading("python -m benchmarks.compare", SEED))
    print(
        f"Two oracles, {EXAMPLES:,} examples × {FEATURES} features × {VOTES} votes each; most memory {memory:.0f} MB.\n"
    )
    print("| the oracles answer | their own time, s | whole comparison, s | beyond, s |\n|---|---|---|---|")
    print(f"| {WIDTH / LATENCY:,.0f} a second | {waited:.0f} | {with_slow:.0f} | **{with_slow - waited:.0f}** |")
    print(f"| at once | {alone:.0f} | {with_fast:.0f} | {with_fast - alone:.0f} |")
    own, all_of_it = worked[1] - worked[0], worked[2] - worked[1]
    print(f"| at once, processor time | {own:.0f} | {all_of_it:.0f} | {all_of_it - own:.0f} |")
    print(f"| recorded votes | {reading:.0f} | {with_recorded:.0f} | {with_recorded - reading:.0f} |")
    print(f"\nOf the whole, statistics {statistics:.1f} s. Again, every answer from the store: {again:.0f} s.")


if __name__ == "__main__":
    main()
