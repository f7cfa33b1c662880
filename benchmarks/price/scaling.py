"""What ten million images with fifty features take: calls and dollars from the price tables, hours by calculation.

    python -m benchmarks.price.scaling [--images 10000000] [--features 50] [--processor 0.2] [--requests 10000]

`--processor` is the milliseconds of one core per label that `benchmarks.enrichment` measures, `--requests` what the
provider allows in a minute. Nothing is sent."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from benchmarks.machine import heading
from models.openai.bounds import Bounds
from models.openai.config import DECISIONS_LIMIT, OpenAIConfig
from models.openai.probe import Abilities
from models.oracle import MICRO, NOTHING_MEASURED, Feature, Label
from sources.load import load_dataset

MODELS = ("gpt-4o-mini", "gpt-4.1-mini", "gpt-4.1-nano")
SAMPLE_PICTURES = 4  # whose cost is forecast; all of a data set cost about the same
FACES = Path(__file__).parents[2] / "datasets" / "faces"


@dataclass(frozen=True)
class Way:
    name: str
    config: OpenAIConfig


def ways(model: str, features: int) -> list[Way]:
    together = min(features, DECISIONS_LIMIT)
    return [
        Way("one call per label", OpenAIConfig(model, grouping="none")),
        Way("20 features per call", OpenAIConfig(model, labels_per_request=20)),
        Way("all features in one call (the default up to 60)", OpenAIConfig(model, labels_per_request=together)),
        Way(
            "the same by the provider's batches",
            OpenAIConfig(model, labels_per_request=together, provider_batch=True),
        ),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--images", type=int, default=10_000_000)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--processor", type=float, default=0.2, help="milliseconds of a core per label")
    parser.add_argument("--requests", type=int, default=10_000, help="that the provider allows in a minute")
    options = parser.parse_args()
    examples = load_dataset(str(FACES)).examples[:SAMPLE_PICTURES]
    features = [
        Feature(f"feature {n}", f"The picture shows what feature {n} is about.") for n in range(options.features)
    ]
    questions = [Label(feature, example) for example in examples for feature in features]
    print(heading("python -m benchmarks.price.scaling"))
    print(f"{options.images:,} images, {options.features} features, one vote each.\n")
    print("| model | labels per call | calls | USD | hours at the provider's limit |\n|---|---|---:|---:|---:|")
    for model in MODELS:
        for way in ways(model, options.features):
            forecast = Bounds.of(way.config, Abilities(format="json_schema")).forecast(
                questions, NOTHING_MEASURED, len(questions)
            )
            calls = forecast.requests * options.images // SAMPLE_PICTURES
            dollars = forecast.cost / MICRO * options.images / SAMPLE_PICTURES
            hours = "up to 24 per batch" if way.config.provider_batch else f"{calls / options.requests / 60:,.0f}"
            print(f"| {model} | {way.name} | {calls:,} | {dollars:,.0f} | {hours} |")
    labels = options.images * options.features
    core_hours = labels * options.processor / 1000 / 3600
    print(f"\nOur own work at {options.processor} ms per label: {core_hours:,.0f} hours of one core.")


if __name__ == "__main__":
    main()
