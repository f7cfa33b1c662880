"""Labels per second of a local vision-language model, one question at a time and in batches of 16.

    python -m benchmarks.local_vlm [--pictures 48] [--sizes tiny small]

The models are LLaVAs with random weights: what is measured is the way through the oracle (pictures, templates, tokens,
batches, shared prefixes), not how well a model sees. The tiny one shows the overhead that a batch shares. The time of a
larger one on a CPU is arithmetic, which a batch does not save and a shared prefix does; a GPU would gain from both.
Seconds are those of one CPU thread, so that other programs on the machine do not count."""

from __future__ import annotations

import argparse
import hashlib
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.machine import heading

WANTED = 4.0  # times the throughput of one question at a time, for the tiny model
SIZES = {"tiny": (48, 2), "small": (256, 4), "medium": (512, 8)}  # hidden size and layers of the language model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--pictures", type=int, default=48)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["tiny", "small"])
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported
    print(heading("python -m benchmarks.local_vlm"))
    with tempfile.TemporaryDirectory() as folder:
        slow = [
            f"{size}, {order}: {ratio:.1f}"
            for size in options.sizes
            for order, ratio in measure(Path(folder), size, options.pictures).items()
            if size == "tiny" and ratio < WANTED
        ]
    if slow:
        raise SystemExit(f"batch 16 is less than {WANTED:.0f} times batch 1: {'; '.join(slow)}")


def measure(folder: Path, size: str, count: int) -> dict[str, float]:
    """Prints a table for one size of model; returns how many times faster batch 16 is, by the order of questions."""
    from tests.tiny_models import save_tiny_llava

    hidden, layers = SIZES[size]
    model = save_tiny_llava(folder / size, hidden=hidden, layers=layers)
    examples, features = pictures(folder, count), sixteen_features()
    orders = {
        "one feature, many pictures": labels(features[:1], examples),
        "three votes on each picture": labels(features[:1], examples[: count // 3], votes=3),
        "sixteen features of each picture": labels(features, examples[: count // 16]),
    }
    ratios = {}
    for order, questions in orders.items():
        one = labels_per_second(model, questions, batch=1)
        many = labels_per_second(model, questions, batch=16)
        plain = labels_per_second(model, questions, batch=16, share_prefix=False)
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


def labels_per_second(model: Path, questions: list[Any], *, rounds: int = 5, **options: Any) -> float:
    """Per CPU second, the best of several rounds after one that loads the model and tries what it can share."""
    from models.local_vlm import LocalVlmConfig, LocalVlmOracle

    oracle = LocalVlmOracle(LocalVlmConfig(model=str(model), least_mass=0.0, **options))
    seconds = []
    for _ in range(rounds + 1):
        started = time.process_time()
        answered = sum(1 for _ in oracle.ask(questions))
        seconds.append(time.process_time() - started)
        assert answered == len(questions)
    return len(questions) / min(seconds[1:])


def pictures(folder: Path, count: int) -> list[Any]:
    import numpy as np
    from PIL import Image

    from sources.example import Example

    rng = np.random.default_rng(0)
    examples: list[Any] = []
    for number in range(count):
        path = folder / f"{number}.png"
        Image.fromarray(rng.integers(0, 256, (64, 64, 3), dtype=np.uint8)).save(path)
        examples.append(Example(str(number), hashlib.sha256(path.read_bytes()).hexdigest(), image=str(path)))
    return examples


def sixteen_features() -> list[Any]:
    from models.oracle import Feature

    colours, things = ("red", "green", "blue", "white"), ("hat", "shirt", "background", "scarf")
    return [Feature(f"{c} {t}", f"There is a {t} and it is {c}.") for c in colours for t in things]


if __name__ == "__main__":
    main()
