"""How often people's votes are wrong, and what majorities of them bring.

Tables of votes are given by path, with the columns item, worker, label and truth: bluebirds (Welinder et al. 2010) and
RTE (Snow et al. 2008) are public and no part of this project. Majorities of three and five are of votes drawn at
random. φ is the correlation of the errors of two votes on a label: n votes are worth n / (1 + (n − 1) φ) independent
ones. Dawid–Skene weighs workers by how reliable they seem."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.machine import tell
from benchmarks.results import Cell, Table
from discovery import UNKNOWN
from discovery.statistics import dawid_skene

QUICK = dict[str, int]()  # it is quick
DRAWS = 200
Votes = NDArray[np.int8]  # labels × workers
Floats = NDArray[np.float64]


def wrong_votes(votes: Votes, truth: NDArray[np.int8]) -> Floats:
    """1 where a vote is wrong, 0 where it is right, NaN where there is none."""
    return np.where(votes == UNKNOWN, np.nan, votes != truth[:, None])


def majority_error(wrong: Floats, votes: int) -> float | None:
    """How often the majority of so many votes, drawn at random, is wrong; None where no label has so many."""
    rng = np.random.default_rng(0)
    enough = wrong[(~np.isnan(wrong)).sum(axis=1) >= votes]
    if not len(enough):
        return None
    shares = []
    for _ in range(DRAWS):
        order = np.where(np.isnan(enough), 2.0, rng.random(enough.shape)).argsort(axis=1)[:, :votes]
        shares.append((np.take_along_axis(enough, order, axis=1).sum(axis=1) * 2 > votes).mean())
    return float(np.mean(shares))


def errors_in_common(wrong: Floats) -> float | None:
    """The correlation of the errors of two votes on a label, by how often both are wrong; None without errors."""
    counts, votes, rate = np.nansum(wrong, axis=1), (~np.isnan(wrong)).sum(axis=1), float(np.nanmean(wrong))
    pairs = (votes * (votes - 1)).sum()
    if not pairs or rate in (0.0, 1.0):
        return None
    return float(((counts * (counts - 1)).sum() / pairs - rate**2) / (rate * (1 - rate)))


def percent(share: float | None) -> Cell:
    return None if share is None else f"{share:.1%}"


def read_votes(path: Path) -> tuple[Votes, NDArray[np.int8]]:
    import pandas as pd

    long = pd.read_csv(path, dtype={"item": str, "worker": str})
    if missing := {"item", "worker", "label", "truth"} - set(long.columns):
        raise SystemExit(f"{path} has no column {min(missing)!r}: give a table of item, worker, label and truth")
    wide = long.pivot_table(index="item", columns="worker", values="label", aggfunc="first")
    truth = long.drop_duplicates("item").set_index("item")["truth"].reindex(wide.index)
    return wide.fillna(UNKNOWN).to_numpy(np.int8), truth.to_numpy(np.int8)


def row_of(path: Path) -> list[Cell]:
    votes, truth = read_votes(path)
    wrong = wrong_votes(votes, truth)
    phi = errors_in_common(wrong)
    yes, no = (votes == 1).sum(axis=1), (votes == 0).sum(axis=1)
    majority = float(np.where(yes == no, 0.5, (yes > no) != truth).mean())
    weighed = float((dawid_skene(votes).labels != truth).mean())
    shares = [float(np.nanmean(wrong)), majority_error(wrong, 3), majority_error(wrong, 5), majority, weighed]
    worth = None if phi is None else round(5 / (1 + 4 * phi), 1)
    return [path.stem, *votes.shape, *map(percent, shares), None if phi is None else round(phi, 2), worth]


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("votes", nargs="*", type=Path, metavar="VOTES.csv", help="columns item, worker, label, truth")


def run(options: argparse.Namespace) -> list[Table]:
    if not options.votes:
        tell("skipped, for no votes are given: name a CSV file with the columns item, worker, label and truth")
        return []
    columns = ["votes", "labels", "workers", "one vote is wrong", "majority of 3", "majority of 5", "majority of all"]
    columns += ["Dawid–Skene", "φ", "five votes are worth"]
    return [Table("Votes of people", columns, [row_of(path) for path in options.votes])]
