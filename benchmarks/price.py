"""What labels cost, by the book of a lifelike server that counts tokens by OpenAI's rules.

Drawn faces of 160 × 160 pixels and as many short texts, 33 features, one vote, prices of gpt-4o-mini. All tokens,
pictures and dollars are those of the server's own book, with its 3 % of unusable replies and 2 % of failed requests.
Labels feature by feature, as they travel while features are found, are asked for a tenth of the pictures and
multiplied: every picture costs the same, 8,500 tokens. All other rows are whole runs. The share in the target is of
comparisons and labels together.

Questions about three faces are asked with each picture by itself and with all on one numbered sheet, which the server
reads from its pixels. *Right* is the share of the answers in which those that are said to have the feature do, by the
truth, and the others do not; the server errs in 6 % of what it looks at either way."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args
from uuid import uuid4

import numpy as np

from benchmarks.cases import at_least_one
from benchmarks.data import common_columns, draw_faces, feature_list, write_texts
from benchmarks.machine import ROOT, tell
from benchmarks.results import Cell, Table
from tests.support.asking import CheckedMeter, ask, planned
from tests.support.fake_openai import LifelikeServer
from twothirds.discovery import Kind
from twothirds.flows.discover.preparation import prepare
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.flows.enrich.flow import enrich_with
from twothirds.flows.enrich.settings import EnrichSettings
from twothirds.models.openai import OpenAIConfig, OpenAIOracle
from twothirds.models.openai.config import Sheet
from twothirds.models.oracle import Compare
from twothirds.models.prices import parse_price
from twothirds.sources import load_dataset

PRICE = "0.15,0.60,0.075"  # gpt-4o-mini's
FEATURES = 33
ENOUGH = 2_000  # examples: of fewer the working set is too large a part for a tenth of the price
SAMPLED = 10  # one picture in so many is labelled feature by feature
ZOO = ROOT / "datasets" / "zoo"
QUICK = {"examples": 100, "questions": 20}
QUESTIONS = ["pictures", "questions", "requests", "tokens in", "USD", "USD expected", "USD at most", "named", "right"]
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
    return Cost(run, labels, book, None, "at most 10 tokens per label", per_label <= 10)


def asked_with(bench: Bench, sheet: Sheet, count: int) -> list[Cell]:
    """What so many questions about three pictures cost, by the server's book and by the estimate ahead."""
    dataset, price = load_dataset(str(bench.pictures)), parse_price(PRICE)
    rng = np.random.default_rng([bench.seed, 4])
    chosen = [rng.choice(len(dataset.examples), 3, replace=False).tolist() for _ in range(count)]
    rows_of = {Compare(Kind.TWO_OF_THREE, tuple(dataset.examples[row] for row in rows)): rows for rows in chosen}
    with LifelikeServer(dataset, price=price, seed=bench.seed) as server:
        config = OpenAIConfig("gpt-4o-mini", server.base_url, price=price, sheet=sheet, retry_delay=0.05)
        with OpenAIOracle(config) as oracle:
            list(oracle.send(planned(oracle, rows_of)[:1], CheckedMeter()))  # the probe
            before, requests = server.summary(), planned(oracle, rows_of)
            likely, most = (sum(getattr(request, name) for request in requests) for name in ("usual", "limit"))
            answers = list(ask(oracle, rows_of))
        book, right = server.summary(), list[bool]()
        for answer in answers:
            column = None if answer.feature is None else server.lifelike.column_of(answer.feature.name)
            if column is not None and isinstance(answer.question, Compare):
                truth = server.lifelike.truth[rows_of[answer.question], column]
                right.append(set(answer.shown) == set(np.flatnonzero(truth)))
    sent, tokens, usd = (book[name] - before[name] for name in ("charged_requests", "prompt_tokens", "usd"))
    money = [round(amount, 4) for amount in (usd, likely / 1e6, most / 1e6)]
    share = f"{np.mean(right):.0%}" if right else None
    return ["on a sheet" if sheet == "auto" else "each by itself", count, sent, tokens, *money, len(right), share]


CASES: list[Callable[[Bench], Cost]] = [by_feature, by_default, enriching, short_texts, zoo]


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--examples", type=at_least_one, default=2_000)
    parser.add_argument("--questions", type=at_least_one, default=100, help="about three pictures each")
    parser.add_argument("--only-questions", action="store_true")
    parser.add_argument("--seed", type=int, default=0)


def run(options: argparse.Namespace) -> list[Table]:
    costs = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pictures = draw_faces(folder, options.examples, options.seed)
        texts = write_texts(folder, options.examples, FEATURES, options.seed)
        bench = Bench(folder, options.examples, options.seed, pictures, texts)
        for case in () if options.only_questions else CASES:
            tell(case.__name__)
            costs.append(case(bench))
        tell("questions")
        questions = [asked_with(bench, sheet, options.questions) for sheet in get_args(Sheet)]
    missed = [f"{cost.run}: {cost.target}" for cost in costs if not cost.met]
    notes = [f"{options.examples:,} examples."]
    title = "Labels of drawn faces and of short texts"
    return [
        *([] if options.only_questions else [Table(title, COLUMNS, [cost.row() for cost in costs], notes, missed)]),
        Table("Questions about three drawn faces", QUESTIONS, questions),
    ]
