"""What `enrich --agree 0.95` saves, of drawn faces and of short texts.

    python -m benchmarks.price.predicting [--examples 2000] [--large 20000] [--agree 0.95] [--noise 0.06,0.01]
        [--certify together|each]

Whole runs are made against the lifelike server and priced by its own book. What is *calculated* makes samples,
classifiers and certificates on as many examples, vectors and answers, and multiplies what it asks by what a picture or
a label has cost in the whole runs. Pictures are described by the image tower that ships, which is not the model that
labels; texts by TF-IDF. `noise` is the share of labels that the model gets wrong, most of them where an example looks
like those of the other side in what the server sees of it (tests/support/fake_openai/hardness.py)."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.cases import table
from benchmarks.machine import heading
from benchmarks.price.data import common_columns, draw_faces, feature_list, write_telling_texts
from discovery.statistics import Promise
from flows.enrich.flow import enrich_with
from flows.enrich.settings import EnrichSettings
from flows.enrich.summary import EnrichSummary
from models.predicted import LabelPool, embedder_of, label_pool
from models.prices import parse_price
from sources import load_dataset
from tests.support.fake_openai import Habits, LifelikeServer
from tests.support.fake_openai.lifelike import LifelikeMind

PRICE = "0.15,0.60,0.075"  # gpt-4o-mini's
FEATURES = 33
AT_MOST = {2_000: 3, 20_000: 10}  # examples, and the part of the full price that is aimed at
FULL, ASK, LEAVE = "asked in full", "--agree", "--agree --uncertified leave"
HEAD = ["data", "examples", "labels wrong", "features beyond it", "plan", "certified", "predicted", "left empty"]
HEAD += ["examples asked", "agreement", "USD", "of asking in full"]


@dataclass(frozen=True)
class Kind:
    name: str
    make: Callable[[Path, int], Path]
    embedder: str | None
    whole_rows: bool
    runs: tuple[str, ...]  # plans that are whole runs; the others are calculated

    def columns(self, dataset: Path) -> list[str]:
        return common_columns((dataset if dataset.is_dir() else dataset.parent) / "truth.csv", FEATURES)


PLANS = (FULL, ASK, LEAVE)
KINDS = (
    Kind("pictures", lambda folder, count: draw_faces(folder, count, 0), "contrastive", True, (FULL, LEAVE)),
    Kind(
        "texts", lambda folder, count: write_telling_texts(folder, count, FEATURES, 0), None, False, (FULL, ASK, LEAVE)
    ),
)


@dataclass(frozen=True)
class Made:
    """What a run or a calculation has made of the labels; shares are of all."""

    certified: int
    predicted: float
    left: float
    examples: float  # share that was asked
    agreement: float | None
    usd: float


@dataclass
class Bench:
    folder: Path
    agree: float
    certify: str
    price: dict[tuple[str, str], float] = field(default_factory=dict)  # of a picture or label, by data and plan

    def rows(self, kind: Kind, count: int, noises: list[float], *, calculate: bool) -> Iterator[list[str]]:
        path = kind.make(Path(tempfile.mkdtemp(dir=self.folder)), count)
        dataset, names = load_dataset(str(path)), kind.columns(path)
        vectors = embedder_of(kind.embedder, dataset.examples, None).vectors(dataset.examples)
        for number, noise in enumerate(noises):
            mind = LifelikeMind(dataset, Habits(label_noise=noise))
            columns = [list(mind.names).index(name) for name in names]
            answers = mind.usual_labels()[:, columns].astype(np.int8)
            hard = int(((answers != mind.truth[:, columns]).mean(axis=0) > 1 - self.agree).sum())
            for plan in PLANS:
                if plan == FULL and (number or calculate):
                    continue  # it costs the same
                print(kind.name, count, noise, plan, file=sys.stderr, flush=True)
                runs = plan in kind.runs and not calculate
                made = (
                    self._run(kind, path, names, noise, plan, answers)
                    if runs
                    else self._calculated(kind, vectors, answers, plan)
                )
                full = self.price[kind.name, FULL] * (count if kind.whole_rows else answers.size)
                about = [kind.name, f"{count:,}", f"{noise:.0%}", str(hard), plan if runs else f"{plan}, calculated"]
                yield [*about, *_cells(made, len(names), made.usd / full, AT_MOST.get(count) if plan != FULL else None)]

    def _run(
        self, kind: Kind, path: Path, names: list[str], noise: float, plan: str, answers: NDArray[np.int8]
    ) -> Made:
        features, out = self.folder / f"{uuid4()}.csv", self.folder / str(uuid4())
        feature_list(features, names)
        given = {} if plan == FULL else {"agree": self.agree, "certify": self.certify, "embedder": kind.embedder}
        given |= {"uncertified": "leave"} if plan == LEAVE else {}
        habits = Habits(label_noise=noise)
        with LifelikeServer(load_dataset(str(path)), habits, price=parse_price(PRICE)) as server:
            oracle = f"openai:gpt-4o-mini?base_url={server.base_url}&price={PRICE}&retry_delay=0.05"
            terms = {"oracle": oracle, "store": str(self.folder / f"{uuid4()}.sqlite"), "out": str(out)}
            enrich_with(EnrichSettings(dataset=str(path), features=str(features), **terms, **given))
            usd = server.summary()["usd"]
            asked = len(server.sends) if kind.whole_rows else server.labels_asked
        self.price[kind.name, plan] = usd / asked
        summary, size = EnrichSummary.read(out), answers.size
        if not summary.predictions:
            return Made(0, 0.0, 0.0, 1.0, None, usd)
        (made,) = summary.predictions
        certified = sum(one["certificate"] is not None for one in summary.certificates)
        shares = made["predicted_labels"] / size, made["left_labels"] / size, made["asked_examples"] / len(answers)
        return Made(certified, *shares, _agreement(out, names, answers), usd)

    def _calculated(self, kind: Kind, vectors: NDArray[np.float32], answers: NDArray[np.int8], plan: str) -> Made:
        order = np.random.default_rng(0).permutation(len(answers))
        pool = LabelPool(vectors, order, answers.shape[1], kind.whole_rows)

        def ask(cells: NDArray[np.bool_]) -> NDArray[np.int8]:
            return np.where(cells, answers, np.int8(-1)).astype(np.int8)

        made = label_pool(pool, ask, Promise(self.agree, together=self.certify == "together"), leave=plan == LEAVE)
        asked = made.asked.any(axis=1).sum() if kind.whole_rows else made.asked.sum()
        usd = float(asked) * self.price.get((kind.name, plan), self.price[kind.name, FULL])
        right = (made.labels == answers)[made.predicted]
        shares = float(made.predicted.mean()), float(made.left.mean()), float(made.asked.any(axis=1).mean())
        certified = sum(one is not None for one in made.certificates)
        return Made(certified, *shares, float(right.mean()) if right.size else None, usd)


def _cells(made: Made, features: int, share: float, aim: int | None) -> list[str]:
    agreement = "" if made.agreement is None else f"{made.agreement:.2%}"
    aimed = f" (at most 1/{aim}: {'met' if share <= 1 / aim else 'missed'})" if aim else ""
    shares = [f"{part:.0%}" for part in (made.predicted, made.left, made.examples)]
    return [f"{made.certified} of {features}", *shares, agreement, f"{made.usd:.2f}", f"{share:.2f}{aimed}"]


def _agreement(out: Path, names: list[str], answers: NDArray[np.int8]) -> float | None:
    labels = pd.read_parquet(out / "labels.parquet")
    right = [
        (labels[name] == answers[:, place])[labels[f"{name} (predicted in)"].notna()]
        for place, name in enumerate(names)
        if f"{name} (predicted in)" in labels
    ]
    return float(pd.concat(right).mean()) if right else None


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.price.predicting")
    parser.add_argument("--examples", type=int, default=2_000)
    parser.add_argument("--large", type=int, default=20_000, help="calculated only; 0 for none")
    parser.add_argument("--agree", type=float, default=0.95)
    parser.add_argument("--certify", choices=("each", "together"), default="together")
    parser.add_argument("--noise", default="0.06,0.01")
    parser.add_argument("--only", default="", help="pictures or texts")
    chosen = parser.parse_args(arguments)
    noises = [float(text) for text in chosen.noise.split(",")]
    print(heading(f"python -m benchmarks.price.predicting {' '.join(arguments)}".strip(), 0))
    print(f"\n{table(HEAD, [])}", flush=True)
    missed = False
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(Path(name), chosen.agree, chosen.certify)
        for kind in (kind for kind in KINDS if chosen.only in kind.name):
            for count in (chosen.examples, chosen.large):
                for row in bench.rows(kind, count, noises, calculate=count != chosen.examples) if count else ():
                    print("| " + " | ".join(row) + " |", flush=True)
                    missed |= "missed" in row[-1]
    return int(missed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
