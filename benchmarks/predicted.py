"""What `enrich --agree 0.95` saves, of drawn faces and of short texts.

Whole runs are made against the lifelike server and priced by its own book. What is *calculated* makes samples,
classifiers and certificates on as many examples, vectors and answers, and multiplies what it asks by what a picture or
a label has cost in the whole runs. Pictures are described by the image tower that ships, which is not the model that
labels; texts by TF-IDF. *Labels wrong* is the share that the model gets wrong, most of them where an example looks
like those of the other side (tests/support/fake_openai/hardness.py). *Left empty* are labels that
`--uncertified leave` does not ask. One order of the examples each: another one can come out differently."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.data import common_columns, draw_faces, feature_list, write_telling_texts
from benchmarks.machine import tell
from benchmarks.results import Cell, Table
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
QUICK = {"examples": 300, "large": 0}
COLUMNS = ["data", "examples", "labels wrong", "features beyond it", "plan", "certified", "predicted", "left empty"]
COLUMNS += ["examples asked", "agreement", "USD", "of asking in full", "target"]
MISSED = "missed"


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

    def rows(self, kind: Kind, count: int, noises: list[float], *, calculate: bool) -> Iterator[list[Cell]]:
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
                tell(f"{kind.name} {count} {noise} {plan}")
                runs = plan in kind.runs and not calculate
                made = (
                    self._run(kind, path, names, noise, plan, answers)
                    if runs
                    else self._calculated(kind, vectors, answers, plan)
                )
                full = self.price[kind.name, FULL] * (count if kind.whole_rows else answers.size)
                case = [kind.name, count, f"{noise:.0%}", hard, plan if runs else f"{plan}, calculated"]
                yield [*case, *_cells(made, len(names), made.usd / full, AT_MOST.get(count) if plan != FULL else None)]

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
        return Made(
            certified=certified,
            predicted=made["predicted_labels"] / size,
            left=made["left_labels"] / size,
            examples=made["asked_examples"] / len(answers),
            agreement=_agreement(out, names, answers),
            usd=usd,
        )

    def _calculated(self, kind: Kind, vectors: NDArray[np.float32], answers: NDArray[np.int8], plan: str) -> Made:
        order = np.random.default_rng(0).permutation(len(answers))
        pool = LabelPool(vectors, order, answers.shape[1], kind.whole_rows)

        def ask(cells: NDArray[np.bool_]) -> NDArray[np.int8]:
            return np.where(cells, answers, np.int8(-1)).astype(np.int8)

        made = label_pool(pool, ask, Promise(self.agree, together=self.certify == "together"), leave=plan == LEAVE)
        asked = made.asked.any(axis=1).sum() if kind.whole_rows else made.asked.sum()
        usd = float(asked) * self.price.get((kind.name, plan), self.price[kind.name, FULL])
        right = (made.labels == answers)[made.predicted]
        return Made(
            certified=sum(certificate is not None for certificate in made.certificates),
            predicted=float(made.predicted.mean()),
            left=float(made.left.mean()),
            examples=float(made.asked.any(axis=1).mean()),
            agreement=float(right.mean()) if right.size else None,
            usd=usd,
        )


def _cells(made: Made, features: int, share: float, aim: int | None) -> list[Cell]:
    agreement = None if made.agreement is None else f"{made.agreement:.2%}"
    target = f"at most 1/{aim}: {'met' if share <= 1 / aim else MISSED}" if aim else None
    shares = [f"{part:.0%}" for part in (made.predicted, made.left, made.examples)]
    return [f"{made.certified} of {features}", *shares, agreement, round(made.usd, 2), round(share, 2), target]


def _agreement(out: Path, names: list[str], answers: NDArray[np.int8]) -> float | None:
    labels = pd.read_parquet(out / "labels.parquet")
    right = [
        (labels[name] == answers[:, place])[labels[f"{name} (predicted in)"].notna()]
        for place, name in enumerate(names)
        if f"{name} (predicted in)" in labels
    ]
    return float(pd.concat(right).mean()) if right else None


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--examples", type=int, default=2_000)
    parser.add_argument("--large", type=int, default=20_000, help="calculated only; 0 for none")
    parser.add_argument("--agree", type=float, default=0.95)
    parser.add_argument("--certify", choices=("each", "together"), default="together")
    parser.add_argument("--noise", default="0.06,0.01", help="shares of labels that are wrong")
    parser.add_argument("--only", choices=[kind.name for kind in KINDS])


def run(options: argparse.Namespace) -> list[Table]:
    noises = [float(text) for text in options.noise.split(",")]
    tables = []
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(Path(name), options.agree, options.certify)
        for kind in KINDS:
            if options.only not in (None, kind.name):
                continue
            rows = [*bench.rows(kind, options.examples, noises, calculate=False)]
            rows += bench.rows(kind, options.large, noises, calculate=True) if options.large else ()
            missed = [f"{row[1]:,} examples, {row[2]} wrong, {row[4]}" for row in rows if str(row[-1]).endswith(MISSED)]
            tables.append(Table(f"Predicted labels of {kind.name}", COLUMNS, rows, [], missed))
    return tables
