"""What strategies are measured on: attribute matrices and made-up worlds, each with a salience-weighted crowd."""

from __future__ import annotations

import argparse
import csv
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.machine import ROOT
from benchmarks.worlds import SKEWED, World, binary_tree, independent_features, leafy_tree, skewed_world
from twothirds.discovery.questions import UNKNOWN
from twothirds.discovery.simulation.crowds import Matrix

SHIPPED = [ROOT / "datasets" / "zoo" / "truth.csv", ROOT / "datasets" / "faces" / "truth.csv"]

FEWEST = 4  # examples with and without a feature of a library's data


@dataclass(frozen=True)
class Case:
    name: str
    world: Callable[[int], World]  # by seed


def read_matrix(path: Path) -> Matrix:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            header, *rows = csv.reader(file)
    except (OSError, ValueError) as error:
        raise SystemExit(f"{path} cannot be read ({error}): give a CSV file of an id and 0/1 columns") from None
    cells = {"0": 0, "1": 1, "": UNKNOWN}
    columns = [i for i in range(1, len(header)) if all(row[i] in cells for row in rows)]
    if not columns:
        raise SystemExit(f"{path} has no column of 0 and 1: give a CSV file with an id column, then 0/1 columns")
    return np.array([[cells[row[i]] for i in columns] for row in rows], dtype=np.int8)


def of_matrix(path: Path) -> Case:
    world = World(read_matrix(path))
    return Case(path.parent.name if path.stem == "truth" else path.stem, lambda seed: world)  # noqa: ARG005


def from_libraries() -> list[Case]:
    """Data that come with installed libraries: cells of patients and wines whose numbers are above a quantile,
    handwritten digits by their dark pixels, Latin letters by the words of their names, countries by their languages."""
    from babel.core import get_global
    from sklearn import datasets

    rng = np.random.default_rng(0)
    cells, wines, digits = (
        load().data for load in (datasets.load_breast_cancer, datasets.load_wine, datasets.load_digits)
    )
    letters = [
        chr(code)
        for code in (*range(0xC0, 0x250), *range(0x1E00, 0x1F00))
        if unicodedata.category(chr(code)) in ("Lu", "Ll")
    ]
    spoken = {
        place: set(languages) for place, languages in get_global("territory_languages").items() if len(place) == 2
    }
    return [
        _case("cells", _above(_some(cells, 150, rng), 0.5, 0.8)),
        _case("wines", _above(wines, 0.3, 0.6, 0.85)),
        _case("digits", _some(digits, 200, rng) > 6),
        _case(
            "letters", _words([set(unicodedata.name(letter).split()) for letter in _some(np.array(letters), 160, rng)])
        ),
        _case("countries", _words([spoken[place] for place in sorted(spoken)])),
    ]


def _some(rows: NDArray[Any], count: int, rng: np.random.Generator) -> NDArray[Any]:
    return np.asarray(rows[rng.permutation(len(rows))[:count]])


def _above(numbers: NDArray[Any], *quantiles: float) -> NDArray[np.bool_]:
    return np.hstack([numbers > np.quantile(numbers, quantile, axis=0) for quantile in quantiles])


def _words(of_each: Sequence[set[str]]) -> NDArray[np.bool_]:
    return np.array([[word in words for word in sorted(set().union(*of_each))] for words in of_each])


def _case(name: str, has: NDArray[np.bool_]) -> Case:
    """Without columns that nearly all examples share or lack."""
    world = World(has[:, (has.sum(axis=0) >= FEWEST) & ((~has).sum(axis=0) >= FEWEST)].astype(np.int8))
    return Case(name, lambda seed: world)  # noqa: ARG005


def made_up() -> list[Case]:
    def case(name: str, build: Callable[[np.random.Generator], World]) -> Case:
        return Case(name, lambda seed: build(np.random.default_rng([seed, 3])))

    return [
        *(case(f"like {like}", lambda rng, like=like: skewed_world(like, rng)) for like in SKEWED),  # type: ignore[misc]
        case("binary tree", lambda rng: binary_tree(98, rng)),
        case("balanced tree", lambda rng: binary_tree(98, rng, "balanced")),
        case("leafy tree, degree 4", lambda rng: leafy_tree(40, 4, rng)),
        case("independent, half", lambda rng: independent_features(100, [0.5] * 60, rng)),
        case("independent, sparse", lambda rng: independent_features(100, rng.uniform(0.03, 0.15, 60).tolist(), rng)),
    ]


def add_matrices(parser: argparse.ArgumentParser, seeds: int) -> None:
    """The options that all benchmarks on matrices have."""
    parser.add_argument("matrices", nargs="*", type=Path, metavar="MATRIX.csv", help="matrices besides those that ship")
    parser.add_argument("--seeds", type=at_least_one, default=seeds)


def at_least_one(text: str) -> int:
    """A number on the command line."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not 1 or more")
    return int(text)
