"""What ten million images with fifty features take: calls and dollars from the price tables, hours by calculation.

Calls and dollars are what `estimate` gives for four of the shipped faces, scaled to the number of images. Nothing is
sent. Hours are calls divided by the requests that a provider allows in a minute. `--processor` is the milliseconds of a
core for each label that `python -m benchmarks enrichment` measures."""

from __future__ import annotations

import argparse

from benchmarks.machine import ROOT
from benchmarks.results import Table
from twothirds.models.openai.abilities import Abilities
from twothirds.models.openai.config import DECISIONS_LIMIT, OpenAIConfig
from twothirds.models.openai.pace import Pace
from twothirds.models.openai.tokens import Pricing
from twothirds.models.oracle import MICRO, Feature, Label
from twothirds.sources.load import load_dataset

MODELS = ("gpt-4o-mini", "gpt-4.1-mini", "gpt-4.1-nano")
SAMPLE_PICTURES = 4  # whose cost is forecast; all of a data set cost about the same
FACES = ROOT / "datasets" / "faces"
QUICK = dict[str, int]()  # it is quick


def configs(model: str, features: int) -> dict[str, OpenAIConfig]:
    together = min(features, DECISIONS_LIMIT)
    batches = OpenAIConfig(model, labels_per_request=together, provider_batch=True)
    return {
        "one call per label": OpenAIConfig(model, grouping="none"),
        "20 features per call": OpenAIConfig(model, labels_per_request=20),
        "all features in one call (the default up to 60)": OpenAIConfig(model, labels_per_request=together),
        "the same by the provider's batches": batches,
    }


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--images", type=int, default=10_000_000)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--processor", type=float, default=0.2, help="milliseconds of a core per label")
    parser.add_argument("--requests", type=int, default=10_000, help="that the provider allows in a minute")


def run(options: argparse.Namespace) -> list[Table]:
    examples = load_dataset(str(FACES)).examples[:SAMPLE_PICTURES]
    features = [
        Feature(f"feature {n}", f"The picture shows what feature {n} is about.") for n in range(options.features)
    ]
    questions = [Label(feature, example) for example in examples for feature in features]
    rows = []
    for model in MODELS:
        for name, config in configs(model, options.features).items():
            pricing = Pricing.of(config, Abilities(format="json_schema"))
            requests = list(pricing.requests(questions, Pace(config.concurrency, is_free=False)))
            calls = len(requests) * options.images // SAMPLE_PICTURES
            cost = sum(request.usual for request in requests)
            dollars = round(cost / MICRO * options.images / SAMPLE_PICTURES)
            hours = "up to 24 per batch" if config.provider_batch else round(calls / options.requests / 60)
            rows.append([model, name, calls, dollars, hours])
    labels = options.images * options.features
    core_hours = labels * options.processor / 1000 / 3600
    notes = [
        f"{options.images:,} images, {options.features} features, one vote each. Our own work at {options.processor} "
        f"ms per label: {core_hours:,.0f} hours of one core."
    ]
    columns = ["model", "labels per call", "calls", "USD", "hours at the provider's limit"]
    return [Table("Many images, calculated", columns, rows, notes)]
