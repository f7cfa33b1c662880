"""What `enrich --agree 0.95` saves, of drawn faces and of short texts.

Whole runs against the lifelike server, priced by its own book. Pictures are described by the image tower that ships,
which is not the model that labels; texts by TF-IDF. *Labels wrong* is the share that the model gets wrong, most of them
where an example looks like those of the other side (tests/support/fake_openai/hardness.py). *Left empty* are labels
that `--uncertified leave` does not ask. At most a third of the price is aimed at for 2,000 examples. One order of the
examples each: another one can come out differently."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.data import common_columns, draw_faces, feature_list, write_telling_texts
from benchmarks.machine import tell
from benchmarks.results import Cell, Table
from flows.enrich.flow import enrich_with
from flows.enrich.settings import EnrichSettings
from flows.enrich.summary import EnrichSummary
from models.prices import parse_price
from sources import load_dataset
from tests.support.fake_openai import Failings, LifelikeServer

PRICE = "0.15,0.60,0.075"  # gpt-4o-mini's
FEATURES = 33
ENOUGH, AIM = 2_000, 1 / 3  # examples, from which that part of the full price is aimed at
FULL, ASK, LEAVE = "asked in full", "--agree", "--agree --uncertified leave"
QUICK = {"examples": 300}
COLUMNS = ["labels wrong", "plan", "certified", "predicted", "left empty", "examples asked", "agreement", "USD"]
COLUMNS += ["of asking in full"]


@dataclass(frozen=True)
class Kind:
    make: Callable[[Path, int], Path]
    embedder: str | None


KINDS = {
    "pictures": Kind(lambda folder, count: draw_faces(folder, count, 0), "contrastive"),
    "texts": Kind(lambda folder, count: write_telling_texts(folder, count, FEATURES, 0), None),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--examples", type=int, default=2_000)
    parser.add_argument("--agree", type=float, default=0.95)
    parser.add_argument("--noise", type=float, nargs="+", default=[0.06, 0.01], help="shares of labels that are wrong")
    parser.add_argument("--only", choices=KINDS)


def run(options: argparse.Namespace) -> list[Table]:
    return [measure(name, options) for name in KINDS if options.only in (None, name)]


def measure(name: str, options: argparse.Namespace) -> Table:
    terms = {"agree": options.agree, "embedder": KINDS[name].embedder}
    plans = {ASK: terms, LEAVE: terms | {"uncertified": "leave"}}
    with tempfile.TemporaryDirectory() as folder:
        dataset = KINDS[name].make(Path(folder), options.examples)
        [full, *cells] = enriched(dataset, Path(folder), options.noise[0], {})
        rows: list[list[Cell]] = [[f"{options.noise[0]:.0%}", FULL, *cells, full, 1.0]]
        missed = []
        for noise in options.noise:
            for plan, given in plans.items():
                tell(f"{name} {noise} {plan}")
                [usd, *cells] = enriched(dataset, Path(folder), noise, given)
                rows.append([f"{noise:.0%}", plan, *cells, usd, round(usd / full, 2)])
                if options.examples >= ENOUGH and usd > AIM * full:
                    missed.append(f"a third of the price with {noise:.0%} wrong, {plan}: {usd / full:.2f}")
    return Table(f"Predicted labels of {name}", COLUMNS, rows, [f"{options.examples:,} examples."], missed)


def enriched(dataset: Path, folder: Path, noise: float, terms: dict[str, object]) -> list[Cell]:
    """What a run costs in USD, and what it has made of the labels."""
    features, out = folder / f"{uuid4()}.csv", folder / str(uuid4())
    names = common_columns((dataset if dataset.is_dir() else dataset.parent) / "truth.csv", FEATURES)
    feature_list(features, names)
    habits = Failings(label_noise=noise)
    with LifelikeServer(load_dataset(str(dataset)), habits, price=parse_price(PRICE)) as server:
        oracle = f"openai:gpt-4o-mini?base_url={server.base_url}&price={PRICE}&retry_delay=0.05"
        places = {"oracle": oracle, "store": str(folder / f"{uuid4()}.sqlite"), "out": str(out)}
        enrich_with(EnrichSettings(dataset=str(dataset), features=str(features), **places, **terms))
        usd = round(server.summary()["usd"], 4)
        columns = [list(server.lifelike.names).index(name) for name in names]
        answers = server.lifelike.usual_labels()[:, columns].astype(np.int8)
    summary = EnrichSummary.read(out)
    if not summary.predictions:
        return [usd, None, None, None, None, None]
    [made] = summary.predictions
    certified = sum(certificate["certificate"] is not None for certificate in summary.certificates)
    shares = (made["predicted_labels"] / answers.size, made["left_labels"] / answers.size)
    asked = made["asked_examples"] / len(answers)
    percents = [f"{share:.0%}" for share in (*shares, asked)]
    return [usd, f"{certified} of {len(names)}", *percents, agreement(out, names, answers)]


def agreement(out: Path, names: list[str], answers: NDArray[np.int8]) -> Cell:
    """Of the predicted labels with what the oracle would have said."""
    labels = pd.read_parquet(out / "labels.parquet")
    right = [
        (labels[name] == answers[:, place])[labels[f"{name} (predicted in)"].notna()]
        for place, name in enumerate(names)
        if f"{name} (predicted in)" in labels
    ]
    return f"{pd.concat(right).mean():.2%}" if right else None
