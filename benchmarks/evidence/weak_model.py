"""How good the labels of a weak model are: `python -m benchmarks.evidence.weak_model FOLDER`.

FOLDER is where make test-slow has put the model. Its labels are compared with giving every example the same one, and
the errors of its votes with each other: votes by three wordings, as `vlm:` casts them, and votes drawn at a
temperature, as by a server that samples."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from benchmarks.cases import ROOT, at_least_one, table
from benchmarks.evidence.vote_errors import Crowd, errors_of, seen_majority
from benchmarks.machine import heading
from discovery import UNKNOWN
from discovery.statistics import ERRORS_ALIKE, Estimate, Resamples, error_columns, estimates, wilson

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
        said = np.random.default_rng(0).random(yes.shape) < yes
        return np.where(np.isnan(chances), UNKNOWN, said).astype(np.int8)


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
    asked = [Label(one, data.examples[row], vote) for row in rows for one in features for vote in range(WORDINGS)]
    chances = {
        (answer.question.feature, answer.question.example.id, answer.question.voter): answer.probability
        for answer in oracle.ask(asked)
        if isinstance(answer.question, Label)
    }
    found = [chances[one.feature, one.example.id, one.voter] for one in asked]
    shape = len(rows), len(features), WORDINGS
    cells = np.array([np.nan if one is None else one for one in found], float).reshape(shape).transpose(1, 0, 2)
    columns = [list(data.truth.columns).index(name) for name in names]
    return ModelVotes(names, cells, data.truth.matrix[rows][:, columns].T.astype(np.int8))


def labels_table(model: ModelVotes) -> str:
    """Of the majority of the three wordings; ranks by the mean probability."""
    rows = []
    for name, votes, chances, true in zip(model.features, model.usual, model.chances, model.truth, strict=True):
        yes, no = (votes == 1).sum(1), (votes == 0).sum(1)
        known = (yes != no) & (true != UNKNOWN)
        said, fact = (yes > no)[known], true[known] == 1
        right, n = int((said == fact).sum()), int(known.sum())
        blind = max(fact.mean(), 1 - fact.mean())
        low, high = wilson(right, n)
        sides = [(said == fact)[fact == value].mean() for value in (True, False)]
        ranked = roc_auc_score(fact, np.nanmean(chances[known], 1))
        shares = (f"{fact.mean():.0%}", f"{said.mean():.0%}", f"{right / n:.0%} ({low:.0%} to {high:.0%})")
        rows.append([name, str(n), *shares, f"{blind:.0%}", f"{np.mean(sides):.2f}", f"{ranked:.2f}"])
    columns = ["feature", "labels", "true", "says yes", "right", "right without looking", "balanced accuracy", "AUC"]
    return table(columns, rows)


def votes_table(model: ModelVotes) -> str:
    ways = {
        "three wordings, its likelier answer": model.usual,
        "one wording, drawn at temperature 1": model.drawn(1.0, 1),
        "three wordings, drawn at temperature 1": model.drawn(1.0, WORDINGS),
        "three wordings, drawn at temperature 0.5": model.drawn(0.5, WORDINGS),
    }
    rows = []
    for words, votes in ways.items():
        crowd = Crowd(words, votes.reshape(-1, votes.shape[-1]), model.truth.ravel())
        one, shared = errors_of(crowd), in_common(votes, model.truth)
        phi, most = shared.value, votes.shape[-1]
        interval = f" ({shared.low:.2f} to {shared.high:.2f})" if shared.low is not None else ""
        alike = "not defined" if phi is None else f"{phi:.2f}{interval}"
        worth = "" if phi is None else f"{3 / (1 + 2 * phi):.1f}"
        wrong = [f"{seen_majority(crowd, n):.1%}" if n <= most else "" for n in (1, 3, 5)]
        fitted = f"flip={one.flip:.2f}&shared={one.shared:.2f}&yes_bias={one.yes_bias:.2f}"
        rows.append([words, *wrong, alike, worth, fitted])
    heads = ["votes", "one is wrong", "majority of 3", "majority of 5", "errors in common (φ)", "three are worth"]
    return table([*heads, "errors within yes and within no"], rows)


def in_common(votes: NDArray[np.int8], truth: NDArray[np.int8]) -> Estimate:
    """As `compare` counts them: the mean over features, with an interval over examples."""
    columns = np.moveaxis(error_columns(votes, truth), 0, 1)
    resamples = Resamples(truth.shape[1], 0, RESAMPLES)
    return estimates([ERRORS_ALIKE], columns, resamples)[1][ERRORS_ALIKE.name]


def main(arguments: Sequence[str] | None = None) -> None:
    about = (__doc__ or "").split("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.evidence.weak_model", description=about)
    parser.add_argument("model", help="the folder of a language model, as tests/install_smollm2.sh writes one")
    parser.add_argument("--dataset", default=str(ROOT / "datasets" / "zoo"), help="of texts, with a truth.csv")
    parser.add_argument("--examples", type=at_least_one, default=40)
    options = parser.parse_args(arguments)
    model = votes_of(options.model, options.dataset, options.examples)
    print(heading(f"python -m benchmarks.evidence.weak_model FOLDER --examples {options.examples}", seed=0))
    print(f"{labels_table(model)}\n\n{votes_table(model)}")


if __name__ == "__main__":
    main()
