"""How good the shipped model is on held-out faces: python -m benchmarks.faces_model.evaluate"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.faces_model.draw import DRAWN_SIZE, png, truth_matrix
from benchmarks.faces_model.face import Face, held_out_faces
from benchmarks.faces_model.truth import ATTRIBUTES
from tests.support.asking import ask
from twothirds.discovery import Kind
from twothirds.models.contrastive import SHIPPED, ContrastiveOracle
from twothirds.models.oracle import Compare, Feature, Label, Verdict
from twothirds.sources import Example, picture_at

BINS = 15
TRIPLES, KNOWN = 500, 10


@dataclass(frozen=True)
class Figures:
    """Per phrase in the order of ATTRIBUTES, on the name and on the paraphrase that was never trained."""

    named: NDArray[np.float64]  # balanced accuracies
    paraphrased: NDArray[np.float64]
    calibration_error: float
    answered: int  # of the triples, those for which a feature was named
    right: int  # of these, those where it truly holds for exactly two of three

    @property
    def precision(self) -> float:
        return self.right / max(1, self.answered)


def held_out_paraphrases() -> dict[str, str]:
    """One way to say each phrase that the model is never trained on."""
    items = json.loads((SHIPPED / "vocabulary.json").read_text(encoding="utf-8"))
    return {item["name"]: item["held_out"] for item in items}


def as_examples(faces: Sequence[Face], folder: Path) -> list[Example]:
    examples = []
    for number, face in enumerate(faces):
        path = folder / f"{number:05d}.png"
        path.write_bytes(png(face, DRAWN_SIZE))
        examples.append(picture_at(path, str(number)))
    return examples


def evaluate(oracle: ContrastiveOracle, faces: Sequence[Face], triples: int = TRIPLES, seed: int = 0) -> Figures:
    """Through the oracle, as a run asks: pictures as files, phrases as features."""
    truth = truth_matrix(faces)
    with tempfile.TemporaryDirectory() as folder:
        examples = as_examples(faces, Path(folder))
        named = probabilities(oracle, examples, list(ATTRIBUTES))
        other_words = held_out_paraphrases()
        paraphrased = probabilities(oracle, examples, [other_words[name] for name in ATTRIBUTES])
        answered, right = _triples(oracle, examples, truth, triples, np.random.default_rng(seed))
    return Figures(
        balanced_accuracy(named > 0.5, truth),
        balanced_accuracy(paraphrased > 0.5, truth),
        calibration_error(named, truth),
        answered,
        right,
    )


def probabilities(oracle: ContrastiveOracle, examples: Sequence[Example], names: Sequence[str]) -> NDArray[np.float64]:
    table = np.full((len(examples), len(names)), np.nan)
    places = {
        Label(Feature(name), example): (row, column)
        for row, example in enumerate(examples)
        for column, name in enumerate(names)
    }
    for answer in ask(oracle, places):
        if answer.probability is not None and isinstance(answer.question, Label):
            table[places[answer.question]] = answer.probability
    return table


def balanced_accuracy(predicted: NDArray[np.bool_], truth: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Per column; a column with one class only counts that one."""
    hits = np.stack([(predicted & truth).sum(0), (~predicted & ~truth).sum(0)]).astype(float)
    totals = np.stack([truth.sum(0), (~truth).sum(0)]).astype(float)
    rates = np.divide(hits, totals, out=np.full_like(hits, np.nan), where=totals > 0)
    mean: NDArray[np.float64] = np.nanmean(rates, axis=0)
    return mean


def calibration_error(probability: NDArray[np.float64], truth: NDArray[np.bool_]) -> float:
    """Expected calibration error: mean gap of stated and true share over equal bins, weighted by their size."""
    bins = np.minimum((probability * BINS).astype(int), BINS - 1)
    gaps = [
        abs(probability[bins == number].mean() - truth[bins == number].mean()) * (bins == number).mean()
        for number in range(BINS)
        if (bins == number).any()
    ]
    return float(sum(gaps))


def _triples(
    oracle: ContrastiveOracle,
    examples: Sequence[Example],
    truth: NDArray[np.bool_],
    count: int,
    rng: np.random.Generator,
) -> tuple[int, int]:
    names = list(ATTRIBUTES)
    answered = right = 0
    for _ in range(count):
        rows = rng.choice(len(examples), 3, replace=False)
        known = tuple(names[column] for column in rng.choice(len(names), KNOWN, replace=False))
        question = Compare(Kind.TWO_OF_THREE, tuple(examples[row] for row in rows), known=known)
        for answer in ask(oracle, [question]):
            if answer.verdict is Verdict.FEATURE and answer.feature is not None:
                answered += 1
                right += int(truth[rows, names.index(answer.feature.name)].sum() == 2)
    return answered, right


def report(figures: Figures, faces: int) -> Table:
    table = Table("phrase", "name", "new paraphrase", title=f"balanced accuracy on {faces} held-out faces")
    for name, first, second in zip(ATTRIBUTES, figures.named, figures.paraphrased, strict=True):
        table.add_row(name, f"{first:.3f}", f"{second:.3f}")
    table.add_section()
    table.add_row("mean", f"{figures.named.mean():.4f}", f"{figures.paraphrased.mean():.4f}")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the model on held-out faces.")
    parser.add_argument("--model", default=str(SHIPPED))
    parser.add_argument("--faces", type=int, default=2000)
    chosen = parser.parse_args()
    faces = held_out_faces()[: chosen.faces]
    figures = evaluate(ContrastiveOracle(chosen.model), faces)
    console = Console()
    console.print(report(figures, len(faces)))
    console.print(f"expected calibration error {figures.calibration_error:.4f}")
    console.print(
        f"{TRIPLES} random triples, {KNOWN} features known: {figures.answered} answered, "
        f"{figures.precision:.3f} of these true of exactly two"
    )


if __name__ == "__main__":
    main()
