"""How much of the truth a discovery finds: `python -m benchmarks.evidence.recovery`.

The data sets that ship with a truth, 35 questions. A crowd that knows the truth says what the method finds at best; the
model that ships was trained on the same kind of drawings as `faces`, which is no test of a model."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.cases import at_least_one, table
from benchmarks.machine import heading
from discovery import UNKNOWN, interesting_and_distinct
from flows.discover import DiscoverSettings, prepare, run_discovery
from reports import Run
from sources import load_dataset

RUNS = (
    ("datasets/zoo", "simulated"),
    ("datasets/faces", "simulated"),
    ("datasets/emoji", "simulated"),
    ("datasets/faces", "simulated?flip=0.1"),
    ("datasets/faces", "contrastive"),
)


def counted(dataset: str) -> int:
    """Attributes of the truth that are interesting and distinct, the most frequent first."""
    truth = load_dataset(dataset).truth
    assert truth is not None
    columns = np.where(truth.matrix == UNKNOWN, 0, truth.matrix).T.astype(np.int8)
    return sum(interesting_and_distinct(columns[np.argsort(-columns.sum(1), kind="stable")]))


def found(dataset: str, oracle: str, seed: int) -> tuple[int, int, float]:
    """Features that count, attributes of the truth that features match, and the mean balanced accuracy of these."""
    with tempfile.TemporaryDirectory() as folder:
        settings = DiscoverSettings(
            dataset=dataset, oracle=oracle, seed=seed, store=f"{folder}/store.sqlite", out=f"{folder}/run"
        )
        run_discovery(prepare(settings), run_id="run")
        summary = Run(Path(folder) / "run").summary
        truth = summary.truth
        assert truth is not None
        return summary.interesting_distinct, truth.matched, truth.mean_balanced_accuracy or 0.0


def main(arguments: Sequence[str] | None = None) -> None:
    about = (__doc__ or "").split("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.evidence.recovery", description=about)
    parser.add_argument("--seeds", type=at_least_one, default=5)
    options = parser.parse_args(arguments)
    print(heading(f"python -m benchmarks.evidence.recovery --seeds {options.seeds}"))
    rows = []
    for dataset, oracle in RUNS:
        results = np.array([found(dataset, oracle, seed) for seed in range(options.seeds)])
        spread = results.std(0, ddof=1) / np.sqrt(len(results)) if len(results) > 1 else np.zeros(3)
        figures = [f"{mean:.1f} ± {error:.1f}" for mean, error in zip(results.mean(0)[:2], spread[:2], strict=True)]
        rows.append([dataset, oracle, *figures, f"{results[:, 2].mean():.3f}", str(counted(dataset))])
    columns = ["data", "oracle", "features that count", "attributes matched", "balanced accuracy of these", "there are"]
    print(table(columns, rows))


if __name__ == "__main__":
    main()
