"""How good the labels of a weak real model are: SmolLM2-135M-Instruct, which tests/install_smollm2.sh fetches.

Its labels are compared with giving every example the same one, and the errors of its votes with each other: votes by
three wordings, as `vlm:` casts them, and votes drawn at a temperature, as by a server that samples. n votes are worth
n / (1 + (n − 1) φ) independent ones."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from benchmarks.cases import at_least_one
from benchmarks.machine import ROOT, tell
from benchmarks.people import majority_error, percent, wrong_votes
from benchmarks.results import Table
from discovery import UNKNOWN
from discovery.statistics import ERRORS_ALIKE, Estimate, Resamples, error_columns, estimates, wilson

MODEL = ROOT / ".venv" / "smollm2"
QUICK = {"examples": 5}
WORDINGS = 3
DRAWN = 9  # votes of each label at a temperature
RESAMPLES = 1_000
DEFINITIONS = {  # of columns of datasets/zoo
    "feathers": "The animal has feathers.",
    "hair": "The animal has hair or fur.",
    "milk": "The animal gives milk to its young.",
    "airborne": "The animal flies.",
    "aquatic": "The animal lives in water.",
    "predator": "The animal hunts other animals.",
}
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ModelVotes:
    """The model's probability of yes for each label: features × examples × wordings, NaN where it says neither."""

    features: list[str]
    chances: Floats
    truth: NDArray[np.int8]  # features × examples

    @property
    def usual(self) -> NDArray[np.int8]:
        """Features × examples × wordings: votes as `vlm:` casts them."""
        return np.where(np.isnan(self.chances), UNKNOWN, self.chances > 0.5).astype(np.int8)

    def drawn(self, temperature: float, wordings: int, votes: int = DRAWN) -> NDArray[np.int8]:
        """Votes that are drawn by the probability of yes, in so many wordings by turns."""
        turns = np.arange(votes) % wordings
        chances = np.clip(self.chances[..., turns], 1e-9, 1 - 1e-9)
        yes = 1 / (1 + ((1 - chances) / chances) ** (1 / temperature))
        votes_cast = np.random.default_rng(0).random(yes.shape) < yes
        return np.where(np.isnan(chances), UNKNOWN, votes_cast).astype(np.int8)


def votes_of(model: str, dataset: str, examples: int) -> ModelVotes:
    from models.local import LocalVlmConfig, LocalVlmOracle
    from models.oracle import Feature, Label
    from sources import load_dataset

    data = load_dataset(dataset)
    if data.truth is None:
        raise SystemExit(f"{dataset} has no truth.csv: give a data set that has one")
    names = [name for name in data.truth.columns if name in DEFINITIONS] or list(data.truth.columns)[: len(DEFINITIONS)]
    features = [Feature(name, DEFINITIONS.get(name, "")) for name in names]
    rows = np.random.default_rng(0).permutation(len(data.examples))[:examples]
    oracle = LocalVlmOracle(LocalVlmConfig(model=model, dtype="float32", batch=8))
    asked = [
        Label(feature, data.examples[row], vote) for row in rows for feature in features for vote in range(WORDINGS)
    ]
    chances = {
        (answer.question.feature, answer.question.example.id, answer.question.voter): answer.probability
        for answer in oracle.ask(asked)
        if isinstance(answer.question, Label)
    }
    found = [chances[label.feature, label.example.id, label.voter] for label in asked]
    shape = len(rows), len(features), WORDINGS
    cells = (
        np.array([np.nan if chance is None else chance for chance in found], float).reshape(shape).transpose(1, 0, 2)
    )
    columns = [list(data.truth.columns).index(name) for name in names]
    return ModelVotes(names, cells, data.truth.matrix[rows][:, columns].T.astype(np.int8))


def labels_table(model: ModelVotes) -> Table:
    """Of the majority of the three wordings; ranks by the mean probability."""
    rows = []
    for name, votes, chances, true in zip(model.features, model.usual, model.chances, model.truth, strict=True):
        yes, no = (votes == 1).sum(axis=1), (votes == 0).sum(axis=1)
        known = (yes != no) & (true != UNKNOWN)
        label, fact = (yes > no)[known], true[known] == 1
        right, n = int((label == fact).sum()), int(known.sum())
        low, high = wilson(right, n)
        balanced = np.mean([(label == fact)[fact == value].mean() for value in (True, False)])
        ranked = roc_auc_score(fact, np.nanmean(chances[known], axis=1))
        shares = [f"{fact.mean():.0%}", f"{label.mean():.0%}", f"{right / n:.0%} ({low:.0%} to {high:.0%})"]
        blind = f"{max(fact.mean(), 1 - fact.mean()):.0%}"
        rows.append([name, n, *shares, blind, round(float(balanced), 2), round(float(ranked), 2)])
    columns = ["feature", "labels", "true", "says yes", "right", "right without looking", "balanced accuracy", "AUC"]
    return Table("Labels of a weak model", columns, rows)


def votes_table(model: ModelVotes) -> Table:
    ways = {
        "three wordings, its likelier answer": model.usual,
        "one wording, drawn at temperature 1": model.drawn(1.0, 1),
        "three wordings, drawn at temperature 1": model.drawn(1.0, WORDINGS),
        "three wordings, drawn at temperature 0.5": model.drawn(0.5, WORDINGS),
    }
    rows = []
    for name, votes in ways.items():
        wrong = wrong_votes(votes.reshape(-1, votes.shape[-1]), model.truth.ravel())
        common = in_common(votes, model.truth)
        interval = f" ({common.low:.2f} to {common.high:.2f})" if common.low is not None else ""
        phi = "not defined" if common.value is None else f"{common.value:.2f}{interval}"
        worth = None if common.value is None else round(3 / (1 + 2 * common.value), 1)
        rows.append([name, *(percent(majority_error(wrong, count)) for count in (1, 3, 5)), phi, worth])
    columns = ["votes", "one is wrong", "majority of 3", "majority of 5", "errors in common (φ)", "three are worth"]
    return Table("Votes of a weak model", columns, rows)


def in_common(votes: NDArray[np.int8], truth: NDArray[np.int8]) -> Estimate:
    """As `compare` counts them: the mean over features, with an interval over examples."""
    columns = np.moveaxis(error_columns(votes, truth), 0, 1)
    resamples = Resamples(truth.shape[1], 0, RESAMPLES)
    return estimates([ERRORS_ALIKE], columns, resamples)[1][ERRORS_ALIKE.name]


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", nargs="?", type=Path, default=MODEL, help="the folder of a language model")
    parser.add_argument("--dataset", default=str(ROOT / "datasets" / "zoo"), help="of texts, with a truth.csv")
    parser.add_argument("--examples", type=at_least_one, default=40)


def run(options: argparse.Namespace) -> list[Table]:
    if not (options.model / "config.json").exists():
        tell("skipped, for the model is not here: run tests/install_smollm2.sh, or name the folder of another one")
        return []
    votes = votes_of(str(options.model), options.dataset, options.examples)
    return [labels_table(votes), votes_table(votes)]
