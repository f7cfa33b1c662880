"""What exemplars bring: labels of a data set with truth by a model, with none to K examples shown beside each feature.

    python -m benchmarks.discovery.exemplars --oracle vlm:MODEL --dataset datasets/zoo

Of each attribute two examples that have it and one that lacks it are drawn, as an answer to a comparison names them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

import numpy as np

from discovery import Kind
from flows.oracles import build_oracle
from flows.settings import Environment, open_store
from models import Compare, Feature, Label, Oracle, connect, exemplars_of
from models.oracle import Answer, Verdict
from sources import Dataset, Example, load_dataset

FEWEST = 0.1  # share of the examples on either side of an attribute
Cells = list[tuple[Label, bool]]


def cells(dataset: Dataset, see: int, examples: int, attributes: int, seed: int) -> Iterator[Cells]:
    """Of each attribute some labels and what is true, half of them yes; never of an exemplar."""
    truth = dataset.truth
    assert truth is not None
    shares = (truth.matrix == 1).mean(axis=0)
    columns = [column for column in range(len(shares)) if FEWEST <= shares[column] <= 1 - FEWEST][:attributes]
    for column in columns:
        rng = np.random.default_rng([seed, column])  # the same for every number of exemplars
        having, lacking = (rng.permutation(np.flatnonzero(truth.matrix[:, column] == value)) for value in (1, 0))
        triple = Compare(Kind.TWO_OF_THREE, tuple(dataset.examples[row] for row in (*having[:2], lacking[0])))
        feature = Feature(truth.columns[column], "", exemplars_of(triple, (0, 1)), see)
        rows = [*having[2 : 2 + examples // 2].tolist(), *lacking[1 : 1 + examples // 2].tolist()]
        yield [(Label(feature, dataset.examples[row]), bool(truth.matrix[row, column])) for row in rows]


def measured(oracle: Oracle, asked: Cells) -> tuple[float, float, float]:
    """Balanced accuracy, area under the curve (NaN without probabilities), and the share that was answered."""
    truths: dict[tuple[Feature, Example], bool] = {(label.feature, label.example): true for label, true in asked}
    said: list[tuple[Answer, bool]] = []
    for answer in oracle.ask([label for label, _ in asked]):
        question = answer.question
        assert isinstance(question, Label)
        if answer.verdict in (Verdict.YES, Verdict.NO):
            said.append((answer, truths[question.feature, question.example]))
    right = [
        [(answer.verdict is Verdict.YES) == true for answer, true in said if true == side] for side in (True, False)
    ]
    balanced = float(np.mean([np.mean(side) if side else 0.0 for side in right]))
    chances = [[answer.probability for answer, true in said if true == side] for side in (True, False)]
    if not all(chances) or any(chance is None for side in chances for chance in side):
        return balanced, float("nan"), len(said) / len(asked)
    yes, no = (np.array(side, float) for side in chances)
    above = (yes[:, None] > no[None, :]).mean() + 0.5 * (yes[:, None] == no[None, :]).mean()
    return balanced, float(above), len(said) / len(asked)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--oracle", required=True)
    parser.add_argument("--dataset", default="datasets/zoo")
    parser.add_argument("--see", type=int, nargs="+", default=[0, 1, 2, 3])
    parser.add_argument("--examples", type=int, default=20, help="of each attribute")
    parser.add_argument("--attributes", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--store", default="sqlite:///:memory:")
    options = parser.parse_args()
    dataset = load_dataset(options.dataset)
    oracle = build_oracle(options.oracle, dataset, options.seed, Environment.read(), open_store(options.store))
    connect(oracle)
    print(f"{options.oracle.partition('?')[0]}, {dataset.name}, {options.examples} labels of each attribute\n")
    print("| exemplars | attributes | balanced accuracy | AUC | answered |\n|---|---|---|---|---|")
    for see in options.see:
        found = []
        for asked in cells(dataset, see, options.examples, options.attributes, options.seed):
            found.append(measured(oracle, asked))
            print(f"{see} exemplars, {len(found)} attributes", file=sys.stderr, end="\r")
        balanced, area, answered = np.mean(found, axis=0)
        spread = np.std(found, axis=0)[0] / np.sqrt(len(found))
        print(f"| {see} | {len(found)} | {balanced:.3f} ± {spread:.3f} | {area:.3f} | {answered:.0%} |", flush=True)


if __name__ == "__main__":
    main()
