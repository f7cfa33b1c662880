"""Labels per second of a local vision-language model, one question at a time and in batches of 16.

    python -m benchmarks.speed.local_vlm [--pictures 48] [--sizes tiny small]

The models are LLaVAs with random weights: what is measured is the way through the oracle (pictures, templates, tokens,
batches, shared prefixes), not how well a model sees. The tiny one shows the overhead that a batch shares. The time of a
larger one on a CPU is arithmetic, which a batch does not save and a shared prefix does; a GPU would gain from both.
Seconds are those of one CPU thread, so that other programs on the machine do not count."""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.machine import heading

TARGET = 4.0  # times the throughput of one question at a time, for the tiny model
SIZES = {"tiny": (48, 2), "small": (256, 4), "medium": (512, 8)}  # hidden size and layers of the language model
ROUNDS = 9
WAYS: tuple[dict[str, Any], ...] = ({"batch": 1}, {"batch": 16}, {"batch": 16, "share_prefix": False})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--pictures", type=int, default=48)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["tiny", "small"])
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported
    print(heading("python -m benchmarks.speed.local_vlm"))
    with tempfile.TemporaryDirectory() as folder:
        slow = [
            f"{size}, {order}: {ratio:.1f}"
            for size in options.sizes
            for order, ratio in measure(Path(folder), size, options.pictures).items()
            if size == "tiny" and ratio < TARGET
        ]
    if slow:
        raise SystemExit(f"batch 16 is less than {TARGET:.0f} times batch 1: {'; '.join(slow)}")


def measure(folder: Path, size: str, count: int) -> dict[str, float]:
    """Prints a table for one size of model; returns how many times faster batch 16 is, by the order of questions."""
    from tests.support.tiny_models import save_tiny_llava

    hidden, layers = SIZES[size]
    model = save_tiny_llava(folder / size, hidden=hidden, layers=layers)
    features = sixteen_features()
    orders: dict[str, Callable[[list[Any]], list[Any]]] = {
        "one feature, many pictures": lambda shown: labels(features[:1], shown),
        "three votes on each picture": lambda shown: labels(features[:1], shown[: count // 3], votes=3),
        "sixteen features of each picture": lambda shown: labels(features, shown[: count // 16]),
    }
    ratios = {}
    for order, questions in orders.items():
        rounds = [questions(pictures(folder, count, seed)) for seed in range(ROUNDS + 1)]
        one, many, plain = labels_per_second(model, rounds)
        ratios[order] = many / one
        print(
            f"{size:7} {order:33} batch 1: {one:7.1f}/s   batch 16: {many:7.1f}/s ({many / one:4.1f} times; "
            f"{plain / one:4.1f} without shared prefixes)",
            flush=True,
        )
    return ratios


def labels(features: list[Any], examples: list[Any], votes: int = 1) -> list[Any]:
    from models.oracle import Label

    return [Label(feature, example, vote) for example in examples for feature in features for vote in range(votes)]


def labels_per_second(model: Path, rounds: list[list[Any]]) -> list[float]:
    """Per CPU second, one figure for each of WAYS: the median of all rounds but the first.

    The first loads the model and tries what it can share. Each round begins with another way, so that a machine that
    slows down does so for all, and no round has a picture of an earlier one, so that none is still in memory."""
    from models.local.oracle import LocalVlmConfig, LocalVlmOracle

    oracles = [LocalVlmOracle(LocalVlmConfig(model=str(model), least_mass=0.0, **way)) for way in WAYS]
    seconds: list[list[float]] = [[] for _ in WAYS]
    for number, questions in enumerate(rounds):
        for turn in range(len(WAYS)):
            way = (number + turn) % len(WAYS)
            started = time.process_time()
            answered = sum(1 for _ in oracles[way].ask(questions))
            seconds[way].append(time.process_time() - started)
            assert answered == len(questions)
    return [len(rounds[0]) / median(taken[1:]) for taken in seconds]


def pictures(folder: Path, count: int, seed: int) -> list[Any]:
    import numpy as np
    from PIL import Image

    from sources.dataset import picture_at

    rng = np.random.default_rng(seed)
    examples: list[Any] = []
    for number in range(count):
        path = folder / f"{seed}-{number}.png"
        Image.fromarray(rng.integers(0, 256, (64, 64, 3), dtype=np.uint8)).save(path)
        examples.append(picture_at(path))
    return examples


def sixteen_features() -> list[Any]:
    from models.oracle import Feature

    colours, things = ("red", "green", "blue", "white"), ("hat", "shirt", "background", "scarf")
    return [Feature(f"{c} {t}", f"There is a {t} and it is {c}.") for c in colours for t in things]


if __name__ == "__main__":
    main()
