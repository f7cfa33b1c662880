"""What labels cost, by the book of a lifelike server that counts tokens by OpenAI's rules.

Drawn faces of 160 × 160 pixels and as many short texts, 33 features, one vote, prices of gpt-4o-mini. All tokens,
pictures and dollars are those of the server's own book, with its 3 % of unusable replies and 2 % of failed requests.
Labels feature by feature, as they travel while features are found, are asked for a tenth of the pictures and
multiplied: every picture costs the same, 8,500 tokens. All other rows are whole runs. The share in the target is of
comparisons and labels together."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from benchmarks.cases import at_least_one
from benchmarks.data import common_columns, draw_faces, feature_list, write_texts
from benchmarks.machine import ROOT, tell
from benchmarks.results import Cell, Table
from flows.discover.flow import run_discovery
from flows.discover.preparation import prepare
from flows.discover.settings import DiscoverSettings
from flows.enrich.flow import enrich_with
from flows.enrich.settings import EnrichSettings
from models.oracle import Compare
from models.prices import parse_price
from sources import load_dataset
from tests.support.fake_openai import LifelikeServer

PRICE = "0.15,0.60,0.075"  # gpt-4o-mini's
FEATURES = 33
ENOUGH = 2_000  # examples: of fewer the working set is too large a part for a tenth of the price
SAMPLED = 10  # one picture in so many is labelled feature by feature
ZOO = ROOT / "datasets" / "zoo"
QUICK = {"examples": 100}
COLUMNS = ["run", "labels", "requests", "tokens in", "of these cached", "tokens out", "tokens per label"]
COLUMNS += ["sends per picture", "USD", "target"]


@dataclass
class Cost:
    """One row of the table, by the server's book."""

    run: str
    labels: int
    book: dict[str, Any]
    sends: float | None = None  # of a picture, on average
    target: str = ""
    met: bool = True

    def row(self) -> list[Cell]:
        book = self.book
        tokens = book["prompt_tokens"] + book["completion_tokens"]
        return [
            self.run,
            self.labels,
            book["charged_requests"],
            book["prompt_tokens"],
            book["cached_tokens"],
            book["completion_tokens"],
            round(tokens / self.labels, 1),
            None if self.sends is None else round(self.sends, 2),
            round(book["usd"], 2),
            f"{self.target}: {'met' if self.met else 'missed'}" if self.target else None,
        ]


@dataclass
class Bench:
    """Where data sets and stores are, and what a label costs feature by feature."""

    folder: Path
    examples: int
    seed: int
    pictures: Path
    texts: Path
    per_label: float = 0.0  # USD, feature by feature

    @contextmanager
    def served(self, dataset: Path) -> Iterator[tuple[LifelikeServer, dict[str, str]]]:
        """A fresh server with an empty book, and the oracle and the store to ask it with."""
        with LifelikeServer(load_dataset(str(dataset)), price=parse_price(PRICE), seed=self.seed) as server:
            oracle = f"openai:gpt-4o-mini?base_url={server.base_url}&price={PRICE}&retry_delay=0.05"
            yield server, {"oracle": oracle, "store": str(self.folder / f"{uuid4()}.sqlite")}

    def enriched(self, dataset: Path, names: list[str], options: str = "") -> LifelikeServer:
        features = self.folder / f"{uuid4()}.csv"
        feature_list(features, names)
        with self.served(dataset) as (server, given):
            given["oracle"] += options
            out = str(self.folder / str(uuid4()))
            enrich_with(EnrichSettings(dataset=str(dataset), features=str(features), out=out, **given))
        return server


def by_feature(bench: Bench) -> Cost:
    """Every picture once for each feature, as labels travel in the course of a discovery."""
    pictures = draw_faces(bench.folder / "sample", max(bench.examples // SAMPLED, 20), bench.seed)
    names = common_columns(pictures / "truth.csv", FEATURES)
    server = bench.enriched(pictures, names, "&grouping=feature")
    book, labels = server.summary(), len(server.lifelike.truth) * len(names)
    bench.per_label = book["usd"] / labels
    return Cost(
        "feature by feature, a tenth of the pictures", labels, book, float(np.mean(list(server.sends.values())))
    )


def by_default(bench: Bench) -> Cost:
    with bench.served(bench.pictures) as (server, given):
        out = str(bench.folder / "discovered")
        settings = DiscoverSettings(dataset=str(bench.pictures), seed=bench.seed, out=out, **given)
        outcome = run_discovery(prepare(settings), run_id=str(uuid4()))
    book, features = server.summary(), len(outcome.progress.findings)
    answers = [answer for _, answer in outcome.progress.asked if isinstance(answer.question, Compare)]
    comparing = sum(answer.cost for answer in answers) / 1e6
    share = book["usd"] / (comparing + bench.per_label * bench.examples * features)
    remaining = sorted(set(range(bench.examples)) - set(outcome.rows))
    sends = float(np.mean([server.sends[row] for row in remaining])) if remaining else None
    aim = " (at most 1/10)" if bench.examples >= ENOUGH else ""
    target = f"1/{1 / share:.1f} of feature by feature{aim}, at most 1.3 sends outside the working set"
    met = (sends or 0) <= 1.3 and (share <= 0.1 or not aim)
    name = f"discover by default, {features} features, {len(outcome.rows)} compared"
    return Cost(name, bench.examples * features, book, sends, target, met)


def enriching(bench: Bench) -> Cost:
    names = common_columns(bench.pictures / "truth.csv", FEATURES)
    server = bench.enriched(bench.pictures, names)
    sends = float(np.mean([server.sends[row] for row in range(bench.examples)]))
    labels = bench.examples * len(names)
    return Cost(f"enrich, {len(names)} features", labels, server.summary(), sends, "at most 1.1 sends", sends <= 1.1)


def short_texts(bench: Bench) -> Cost:
    names = common_columns(bench.texts.parent / "truth.csv", FEATURES)
    return _texts(bench, "short texts, 33 features", bench.texts, names)


def zoo(bench: Bench) -> Cost:
    return _texts(bench, "zoo, 20 features", ZOO / "animals.csv", common_columns(ZOO / "truth.csv", 20))


def _texts(bench: Bench, run: str, dataset: Path, names: list[str]) -> Cost:
    server = bench.enriched(dataset, names)
    book, labels = server.summary(), len(server.lifelike.truth) * len(names)
    per_label = (book["prompt_tokens"] + book["completion_tokens"]) / labels
    return Cost(run, labels, book, None, "at most 14 tokens per label", per_label <= 14)


CASES: list[Callable[[Bench], Cost]] = [by_feature, by_default, enriching, short_texts, zoo]


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--examples", type=at_least_one, default=2_000)
    parser.add_argument("--seed", type=int, default=0)


def run(options: argparse.Namespace) -> list[Table]:
    costs = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pictures = draw_faces(folder, options.examples, options.seed)
        texts = write_texts(folder, options.examples, FEATURES, options.seed)
        bench = Bench(folder, options.examples, options.seed, pictures, texts)
        for case in CASES:
            tell(case.__name__)
            costs.append(case(bench))
    missed = [f"{cost.run}: {cost.target}" for cost in costs if not cost.met]
    title = "Labels of drawn faces and of short texts"
    return [Table(title, COLUMNS, [cost.row() for cost in costs], [f"{options.examples:,} examples."], missed)]
