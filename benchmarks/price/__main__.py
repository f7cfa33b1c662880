"""What labels cost, by the book of a lifelike server that counts tokens by OpenAI's rules.

    python -m benchmarks.price                     2,000 drawn faces and 2,000 short texts, 33 features, one vote
    python -m benchmarks.price --examples 200      smaller

Labels feature by feature are asked for a tenth of the pictures and multiplied: every picture costs the same. All other
figures are of whole runs. The exit status is 1 where a target is missed."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from benchmarks.cases import at_least_one, table
from benchmarks.machine import heading
from benchmarks.price.data import common_columns, draw_faces, feature_list, write_texts
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
ZOO = Path(__file__).parents[2] / "datasets" / "zoo"


@dataclass
class Result:
    """One line of the table, by the server's book."""

    what: str
    labels: int
    book: dict[str, Any]
    usd: float
    sends: float | None = None  # of a picture, on average
    target: str = ""
    met: bool = True

    def cells(self) -> list[str]:
        book = self.book
        tokens = book["prompt_tokens"] + book["completion_tokens"]
        return [
            self.what,
            f"{self.labels:,}",
            f"{book['charged_requests']:,}",
            f"{book['prompt_tokens']:,}",
            f"{book['cached_tokens']:,}",
            f"{book['completion_tokens']:,}",
            f"{tokens / self.labels:.1f}",
            "" if self.sends is None else f"{self.sends:.2f}",
            f"{self.usd:.2f}",
            f"{self.target}: {'met' if self.met else 'missed'}" if self.target else "",
        ]


NOTE = """
All tokens, pictures and dollars are those of the server's own book, with its 3 % of unusable replies and 2 % of failed
requests. Labels feature by feature, as they travel while features are found, are measured on a tenth of the pictures
and multiplied; the share is of comparisons and labels together. What is paid for are pictures, 8,500 tokens each."""
HEAD = ["what", "labels", "requests", "tokens in", "of these cached", "tokens out", "tokens per label"]
HEAD += ["sends per picture", "USD", "target"]


@dataclass
class Bench:
    """Where data sets and stores are, and what was measured before."""

    folder: Path
    examples: int
    seed: int
    pictures: Path
    texts: Path
    per_label: float = 0.0  # USD, feature by feature
    results: list[Result] = field(default_factory=list)

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


def by_feature(bench: Bench) -> Result:
    """Every picture once for each feature, as labels travel in the course of a discovery."""
    some = draw_faces(bench.folder / "some", max(bench.examples // SAMPLED, 20), bench.seed)
    names = common_columns(some / "truth.csv", FEATURES)
    server = bench.enriched(some, names, "&grouping=feature")
    book, labels = server.summary(), len(server.lifelike.truth) * len(names)
    bench.per_label = book["usd"] / labels
    sends = float(np.mean(list(server.sends.values())))
    return Result("feature by feature, a tenth of the pictures", labels, book, book["usd"], sends)


def by_default(bench: Bench) -> Result:
    with bench.served(bench.pictures) as (server, given):
        out = str(bench.folder / "discovered")
        settings = DiscoverSettings(dataset=str(bench.pictures), seed=bench.seed, out=out, **given)
        outcome = run_discovery(prepare(settings), run_id=str(uuid4()))
    book, found = server.summary(), len(outcome.progress.findings)
    asked = [answer for _, answer in outcome.progress.asked if isinstance(answer.question, Compare)]
    comparing = sum(answer.cost for answer in asked) / 1e6
    share = book["usd"] / (comparing + bench.per_label * bench.examples * found)
    rest = sorted(set(range(bench.examples)) - set(outcome.rows))
    sends = float(np.mean([server.sends[row] for row in rest]))
    wanted = " (at most 1/10)" if bench.examples >= ENOUGH else ""
    target = f"1/{1 / share:.1f} of feature by feature{wanted}, at most 1.3 sends outside the working set"
    what = f"discover by default, {found} features, {len(outcome.rows)} compared"
    met = sends <= 1.3 and (share <= 0.1 or not wanted)
    return Result(what, bench.examples * found, book, book["usd"], sends, target, met)


def enriching(bench: Bench) -> Result:
    names = common_columns(bench.pictures / "truth.csv", FEATURES)
    server = bench.enriched(bench.pictures, names)
    book, sends = server.summary(), float(np.mean([server.sends[row] for row in range(bench.examples)]))
    labels = bench.examples * len(names)
    return Result(f"enrich, {len(names)} features", labels, book, book["usd"], sends, "at most 1.1 sends", sends <= 1.1)


def short_texts(bench: Bench) -> Result:
    return _texts(bench, "short texts, 33 features", bench.texts, common_columns(bench.texts.parent / "truth.csv", 33))


def zoo(bench: Bench) -> Result:
    return _texts(bench, "zoo, 20 features", ZOO / "animals.csv", common_columns(ZOO / "truth.csv", 20))


def _texts(bench: Bench, what: str, dataset: Path, names: list[str]) -> Result:
    server = bench.enriched(dataset, names)
    book, labels = server.summary(), len(server.lifelike.truth) * len(names)
    per_label = (book["prompt_tokens"] + book["completion_tokens"]) / labels
    return Result(what, labels, book, book["usd"], None, "at most 14 tokens per label", per_label <= 14)


CASES: list[Callable[[Bench], Result]] = [by_feature, by_default, enriching, short_texts, zoo]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.price", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--examples", type=at_least_one, default=2_000)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pictures = draw_faces(folder, chosen.examples, chosen.seed)
        texts = write_texts(folder, chosen.examples, FEATURES, chosen.seed)
        bench = Bench(folder, chosen.examples, chosen.seed, pictures, texts)
        for case in CASES:
            print(case.__name__, file=sys.stderr, flush=True)
            bench.results.append(case(bench))
    print(heading(f"python -m benchmarks.price --examples {chosen.examples}", chosen.seed))
    print(
        f"{chosen.examples:,} drawn faces (160 × 160 pixels) and as many short texts, one vote, prices of gpt-4o-mini\n"
    )
    print(table(HEAD, [result.cells() for result in bench.results]))
    print(NOTE)
    return 0 if all(result.met for result in bench.results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
