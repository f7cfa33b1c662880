"""How often predicted labels agree less than promised, over many draws of the samples.

    python -m benchmarks.price.certificate [--seeds 200] [--agree 0.95] [--delta 0.05] [--faces 1500] [--texts TABLE]
        [--embedder MODEL] [--only NAME] [--certify each|together] [--jobs 2]
    python -m benchmarks.price.certificate --cpu 2000,20000

Three kinds of data: faces drawn at random, described by their pixels (not by the model that ships); a made-up one with
features of 3 %, 10 % and 40 %; and texts with a truth beside them, given by path, with TF-IDF and, where a sentence
model is given, with its vectors. The oracle is the truth with a share of wrong answers that is the same in every draw.
A draw shuffles the pool; examples, vectors and the oracle stay. The promise is about all draws: in how few of them a
feature is certified although its predicted labels agree less than they should. That is counted of all draws of all
features, and for the predicted labels of a draw together of all draws, with the exact 95 % interval. What is certified
together is promised of the whole draw; rarer answers are counted so too then, and single features to inform."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from time import process_time

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from benchmarks.machine import heading
from discovery.statistics import Promise
from models.predicted import LabelPool, embedder_of, label_pool
from models.predicted.pixels import picture_vectors
from sources import load_dataset

SEED = 0
MADE_UP, MADE_SIZE = 4_000, 24
FACE_FEATURES = ("glasses", "facial hair", "headwear", "smile", "black hair", "jacket", "long hair", "pink background")


@dataclass(frozen=True, eq=False)
class Case:
    name: str
    vectors: NDArray[np.float32]
    oracle: NDArray[np.int8]  # its labels
    whole_rows: bool
    leave: bool = False  # what cannot be certified


@dataclass(frozen=True)
class Draw:
    """Of one draw: how many features were certified, how many of these broke which promise, and what was asked."""

    certified: int
    disagreed: int
    lost: int
    overall: bool  # all predicted labels together agree less than promised
    asked: float  # share of the labels
    agreement: float  # of the predicted labels


def draw(case: Case, promise: Promise, seed: int) -> Draw:
    size, features = case.oracle.shape
    pool = LabelPool(case.vectors, np.random.default_rng([SEED, seed]).permutation(size), features, case.whole_rows)

    def ask(cells: NDArray[np.bool_]) -> NDArray[np.int8]:
        return np.where(cells, case.oracle, np.int8(-1)).astype(np.int8)

    result = label_pool(pool, ask, promise, leave=case.leave)
    right, predicted = result.labels == case.oracle, result.predicted
    disagreed = lost = all_lost = all_rarer = 0
    for feature in np.flatnonzero(predicted.any(axis=0)).tolist():
        here = predicted[:, feature]
        disagreed += bool(right[here, feature].mean() < promise.agree)
        certificate = result.certificates[feature]
        rarer = case.oracle[:, feature] == (certificate.rarer if certificate else 1)
        missed = int((here & rarer & ~right[:, feature]).sum())
        lost += missed > (1 - promise.found) * rarer.sum()
        all_lost, all_rarer = all_lost + missed, all_rarer + int(rarer.sum())
    if promise.together:
        lost = int(all_lost > (1 - promise.found) * all_rarer)
    agreement = float(right[predicted].mean()) if predicted.any() else float("nan")
    return Draw(
        int(predicted.any(axis=0).sum()), disagreed, lost, agreement < promise.agree, result.asked.mean(), agreement
    )


def made_up() -> Iterator[Case]:
    rng = np.random.default_rng(SEED)
    vectors = rng.standard_normal((MADE_UP, MADE_SIZE))
    odds = vectors[:, :3] * 3 + rng.logistic(0, 0.25, (MADE_UP, 3))
    cuts = [np.quantile(odds[:, place], 1 - share) for place, share in enumerate((0.03, 0.1, 0.4))]
    unit = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    yield Case("made up, 3 %, 10 %, 40 %", unit, (odds > cuts).astype(np.int8), whole_rows=False)
    noise = rng.integers(0, 2, (MADE_UP, 3)).astype(np.int8)
    yield Case("nothing to learn", unit, noise, whole_rows=False)


def drawn_faces(count: int, noise: float) -> Iterator[Case]:
    from benchmarks.faces_model.draw import render, truth_matrix
    from benchmarks.faces_model.face import sample
    from benchmarks.faces_model.truth import ATTRIBUTES

    rng = np.random.default_rng(SEED)
    faces = [sample(rng) for _ in range(count)]
    columns = [list(ATTRIBUTES).index(name) for name in FACE_FEATURES]
    truth = truth_matrix(faces)[:, columns]
    vectors = picture_vectors(Image.fromarray(one) for one in render(faces, "faces"))
    wrong = truth ^ (rng.random(truth.shape) < noise)
    yield Case("drawn faces, features alone", vectors, wrong.astype(np.int8), whole_rows=False)
    yield Case("drawn faces, whole examples", vectors, wrong.astype(np.int8), whole_rows=True)
    left = "drawn faces, whole examples, uncertified left out"
    yield Case(left, vectors, wrong.astype(np.int8), whole_rows=True, leave=True)


def texts(spec: str, embedder: str | None, noise: float) -> Iterator[Case]:
    dataset = load_dataset(spec)
    if dataset.truth is None:
        sys.exit(f"{spec} has no truth.csv: give a data set with one")
    rng = np.random.default_rng(SEED)
    labels = dataset.truth.matrix.astype(np.int8) ^ (rng.random(dataset.truth.matrix.shape) < noise)
    for model in (None, embedder) if embedder else (None,):
        vectors = embedder_of(model, dataset.examples, None).vectors(dataset.examples)
        name = f"{dataset.name}, {'a sentence model' if model else 'TF-IDF'}"
        yield Case(name, vectors, labels.astype(np.int8), whole_rows=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--agree", type=float, default=0.95)
    parser.add_argument("--delta", type=float, default=0.05)
    parser.add_argument("--noise", type=float, default=0.005, help="share of the oracle's answers that are wrong")
    parser.add_argument("--faces", type=int, default=1_500)
    parser.add_argument("--texts", help="a table of texts with truth.csv beside it")
    parser.add_argument("--embedder", help="a sentence model, by path")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="data whose name holds this")
    parser.add_argument("--cpu", type=lambda text: [int(size) for size in text.split(",")], help="sizes, instead")
    parser.add_argument("--certify", choices=("together", "each"), default="each")
    options = parser.parse_args()
    promise = Promise(options.agree, options.delta, together=options.certify == "together")
    if options.cpu:
        processor_time(options.cpu, promise)
        return
    given = " --texts TABLE" * bool(options.texts) + " --embedder MODEL" * bool(options.embedder)
    only = f" --only {options.only!r}" * bool(options.only)
    command = (
        f"python -m benchmarks.price.certificate --seeds {options.seeds} --agree {options.agree} "
        f"--delta {options.delta} --certify {options.certify}"
    )
    print(heading(f"{command} --noise {options.noise} --faces {options.faces}{given}{only}", SEED))
    head = ["data", "certified per draw", "agree too little", "rarer answer lost", "whole draw too little", "asked"]
    print(f"| {' | '.join([*head, 'agreement'])} |\n{'|---' * (len(head) + 1)}|", flush=True)
    cases = [*made_up(), *(drawn_faces(options.faces, options.noise) if options.faces else ())]
    if options.texts:
        cases += texts(options.texts, options.embedder, options.noise)
    for case in (case for case in cases if options.only in case.name):
        with ProcessPoolExecutor(options.jobs) as pool:
            draws = list(pool.map(partial(draw, case, promise), range(options.seeds), chunksize=4))
        print(_row(case, draws, together=promise.together), flush=True)


def processor_time(sizes: list[int], promise: Promise) -> None:
    """Of learning, certifying and predicting 33 features from vectors of 256 numbers, without embedding or asking."""
    print(heading(f"python -m benchmarks.price.certificate --cpu {','.join(map(str, sizes))}", SEED))
    print("| examples | processor seconds | asked |\n|---|---|---|", flush=True)
    for size in sizes:
        rng = np.random.default_rng(SEED)
        vectors = rng.standard_normal((size, 256)) * np.geomspace(1, 0.02, 256)
        odds = vectors[:, :33] / vectors[:, :33].std(axis=0) * 3 + rng.logistic(0, 0.25, (size, 33))
        unit = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
        case = Case(str(size), unit, (odds > np.quantile(odds, 0.7, axis=0)).astype(np.int8), whole_rows=False)
        start = process_time()
        made = draw(case, promise, SEED)
        print(f"| {size:,} | {process_time() - start:.1f} | {made.asked:.0%} |", flush=True)


def _row(case: Case, draws: list[Draw], *, together: bool) -> str:
    certified = sum(one.certified for one in draws)
    tried = len(draws) * case.oracle.shape[1]
    agreement = [one.agreement for one in draws if one.certified]
    cells = [
        f"{case.name} ({len(case.oracle):,} × {case.oracle.shape[1]})",
        f"{certified / len(draws):.1f} of {case.oracle.shape[1]}",
        _share(sum(one.disagreed for one in draws), tried),
        _share(sum(one.lost for one in draws), len(draws) if together else tried),
        _share(sum(one.overall for one in draws), len(draws)),
        f"{np.mean([one.asked for one in draws]):.1%}",
        f"{np.mean(agreement):.2%}" if agreement else "nothing predicted",
    ]
    return f"| {' | '.join(cells)} |"


def _share(broken: int, trials: int) -> str:
    """With the exact interval of Clopper and Pearson."""
    from scipy.stats import beta

    if not trials:
        return "none"
    low = float(beta.ppf(0.025, broken, trials - broken + 1)) if broken else 0.0
    high = float(beta.ppf(0.975, broken + 1, trials - broken)) if broken < trials else 1.0
    return f"{broken} of {trials:,} = {broken / trials:.1%} ({low:.1%} to {high:.1%})"


if __name__ == "__main__":
    main()
