"""What `enrich --agree 0.95` saves, of drawn faces and of short texts.

Whole runs against the lifelike server, priced by its own book. Pictures are described by the image tower that ships,
which is not the model that labels; texts by TF-IDF. *Labels wrong* is the share that the model gets wrong, most of them
where an example looks like those of the other side (tests/support/fake_openai/hardness.py). *Left empty* are labels
that `--uncertified leave` does not ask. At most a third of the price is aimed at for 2,000 examples. One order of the
examples each: another one can come out differently.

With `--draws` the same labels are predicted so often, each time with another random number: at most 5 % of draws may
end with less agreement than was promised. *Too often wrong* is made up: labels that can be learned and of which 5.5 %
are turned over, scattered or all labels of an example, or those of the 6 % of the examples that come last in the order
that whoever wrote the data could foresee, without the random number that the store keeps."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks.data import common_columns, draw_faces, feature_list, write_telling_texts
from benchmarks.machine import tell
from benchmarks.results import Cell, Table
from tests.support.fake_openai import Failings, LifelikeServer
from twothirds.discovery import UNKNOWN
from twothirds.discovery.statistics import Promise
from twothirds.flows.enrich.flow import enrich_with
from twothirds.flows.enrich.settings import EnrichSettings
from twothirds.flows.enrich.summary import EnrichSummary
from twothirds.models.predicted import LabelPool, embedder_of, label_pool, random_order
from twothirds.models.prices import parse_price
from twothirds.reports.label_table import LabelTable, Source
from twothirds.sources import Example, load_dataset

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


PROMISE = Promise(0.95)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--draws", type=int, default=0, help="how often the same labels are predicted; then only this")
    parser.add_argument("--examples", type=int, default=2_000)
    parser.add_argument("--agree", type=float, default=0.95)
    parser.add_argument("--noise", type=float, nargs="+", default=[0.06, 0.01], help="shares of labels that are wrong")
    parser.add_argument("--only", choices=KINDS)


def run(options: argparse.Namespace) -> list[Table]:
    if options.draws:
        return [drawn(options.draws)]
    return [measure(name, options) for name in KINDS if options.only in (None, name)]


@dataclass(frozen=True)
class World:
    """Examples with what the oracle says of them, which it says again whenever it is asked."""

    name: str
    examples: Sequence[Example]
    vectors: NDArray[np.float32]
    answers: NDArray[np.int8]
    whole_rows: bool = False


def drawn(draws: int) -> Table:
    rows: list[list[Cell]] = []
    missed = []
    for world in worlds():
        tell(world.name)
        outcomes = [predicted_once(world, number) for number in range(draws)]
        asked, agreed, single = (np.array(values) for values in zip(*outcomes, strict=True))
        some, broken = ~np.isnan(agreed), int((agreed < PROMISE.agree).sum())
        lowest = f"{np.nanmin(agreed):.2%}" if some.any() else None
        size = f"{world.answers.shape[0]:,} × {world.answers.shape[1]}"
        low = f"{single[some].mean():.0%}" if some.any() else None
        rows.append([world.name, size, draws, int(some.sum()), broken, f"{asked.mean():.1%}", lowest, low])
        if broken > PROMISE.delta * draws:
            missed.append(f"at most {PROMISE.delta:.0%} of the draws with a broken promise, {world.name}: {broken}")
    columns = ["labels", "examples × features", "draws", "with a certificate", "of them broken", "labels asked"]
    columns += ["lowest agreement", "features below the promise of all"]
    return Table("How often the promise is broken", columns, rows, [], missed)


def predicted_once(world: World, number: int) -> tuple[float, float, float]:
    """The share of labels that was asked, the agreement of the others, and the share of features that agree less."""
    asked = np.zeros(world.answers.shape, np.bool_)

    def ask(cells: NDArray[np.bool_]) -> NDArray[np.int8]:
        asked[cells] = True
        return np.where(cells, world.answers, np.int8(UNKNOWN)).astype(np.int8)

    order = random_order(world.examples, seed=0, number=str(number))
    pool = LabelPool(world.vectors, order, world.answers.shape[1], world.whole_rows)
    result = label_pool(pool, ask, PROMISE)
    cells = result.predicted
    if not cells.any():
        return 1.0, float("nan"), float("nan")
    right = result.labels == world.answers
    of_each = [right[cells[:, column], column].mean() for column in np.flatnonzero(cells.any(axis=0))]
    return float(asked.mean()), float(right[cells].mean()), float(np.mean(np.array(of_each) < PROMISE.agree))


def worlds() -> Iterator[World]:
    examples = [Example(f"e{number}", f"{number:064x}") for number in range(4_000)]
    vectors, answers = made_up(len(examples), 3, 0)
    rng = np.random.default_rng(1)
    yield World("made up, 3 % wrong", examples, vectors, answers ^ (rng.random(answers.shape) < 0.03))
    yield World("too often wrong: scattered", examples, vectors, answers ^ (rng.random(answers.shape) < 0.055))
    yield World("too often wrong: whole examples", examples, vectors, answers ^ (rng.random((4_000, 1)) < 0.055))
    last = np.zeros((len(examples), 1), np.bool_)
    last[random_order(examples, seed=0, number="")[-240:]] = True
    yield World("too often wrong: last in the order that can be foreseen", examples, vectors, answers ^ last)
    with tempfile.TemporaryDirectory() as folder:
        for name, kind in KINDS.items():
            dataset = kind.make(Path(folder), 1_500)
            data = load_dataset(str(dataset))
            vectors = embedder_of(kind.embedder, data.examples, None).vectors(data.examples)
            names = common_columns((dataset if dataset.is_dir() else dataset.parent) / "truth.csv", 8)
            with LifelikeServer(data, Failings(label_noise=0.03)) as server:
                columns = [list(server.lifelike.names).index(wanted) for wanted in names]
                answers = server.lifelike.usual_labels()[:, columns].astype(np.int8)
            yield World(f"{name}, 3 % wrong", data.examples, vectors, answers, whole_rows=name == "pictures")


def made_up(count: int, features: int, seed: int) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
    """Vectors, and labels by directions of them."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((count, 24))
    scores = vectors[:, :features] + 0.3 * vectors[:, features : 2 * features]
    labels = scores > np.quantile(scores, 0.65, axis=0)
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32), labels.astype(np.int8)


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
    table = LabelTable.from_arrow(pq.read_table(out / "labels.parquet"))
    places = {feature.name: place for place, feature in enumerate(table.features)}
    order = [places[name] for name in names]
    right = (table.value[order] == answers.T)[table.source[order] == Source.PREDICTED]
    return f"{right.mean():.2%}" if right.size else None
