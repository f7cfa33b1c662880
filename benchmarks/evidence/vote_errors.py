"""How the errors of people hang together: measured where the truth is known, and fitted where it is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import comb
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.cases import table
from benchmarks.errors import VoteErrors, majority_error, spread
from benchmarks.evidence.people import People
from discovery import UNKNOWN

Votes = NDArray[np.int8]  # labels × workers


@dataclass(frozen=True, eq=False)
class Crowd:
    name: str
    votes: Votes
    truth: NDArray[np.int8]

    @property
    def wrong(self) -> NDArray[np.float64]:
        """1 where a vote is wrong, 0 where it is right, NaN where there is none."""
        return np.where(self.votes == UNKNOWN, np.nan, self.votes != self.truth[:, None])


def crowd_of(name: str, path: Path) -> Crowd:
    long = pd.read_csv(path, dtype={"item": str, "worker": str})
    wide = long.pivot_table(index="item", columns="worker", values="label", aggfunc="first")
    truth = long.drop_duplicates("item").set_index("item")["truth"].reindex(wide.index)
    return Crowd(name, wide.fillna(UNKNOWN).to_numpy(np.int8), truth.to_numpy(np.int8))


def crowd_of_nlvr(folder: Path) -> Crowd:
    people = People.read(folder)
    truth = people.truth(people.reading)
    return Crowd("NLVR", people.cast[truth != UNKNOWN], truth[truth != UNKNOWN])


def errors_of(crowd: Crowd) -> VoteErrors:
    """The parameters of its votes, by moments: how often one vote and two are wrong where it is true, and where not."""
    sides = [crowd.wrong[crowd.truth == value] for value in (0, 1)]
    rates = [float(np.nanmean(wrong)) for wrong in sides]
    shared, pairs = [], []
    for wrong, rate in zip(sides, rates, strict=True):
        if not 0 < rate < 1:  # votes that never vary tell nothing of what they have in common
            continue
        counts, votes = np.nansum(wrong, 1), (~np.isnan(wrong)).sum(1)
        pairs.append(float((votes * (votes - 1)).sum()))
        shared.append(latent(rate, float((counts * (counts - 1)).sum()) / pairs[-1]))
    total = sum(rates)
    common = float(np.average(shared, weights=pairs)) if shared else 1.0
    return VoteErrors(total / 2, common, yes_bias=(rates[0] - rates[1]) / total if total else 0.0)


def latent(flip: float, both: float) -> float:
    """The correlation of two normal variables that are both below the threshold so often; by bisection."""
    low, high = 0.0, 0.999
    if both <= flip**2:
        return 0.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if _two_wrong(flip, middle) < both else (low, middle)
    return (low + high) / 2


def _two_wrong(flip: float, shared: float) -> float:
    """That two votes on one label are wrong."""
    wrong, weights = spread(flip, shared)
    return float(wrong**2 @ weights)


def seen_majority(crowd: Crowd, votes: int, draws: int = 200) -> float:
    """How often the majority of so many votes, drawn at random, is wrong."""
    rng = np.random.default_rng(0)
    wrong, order = crowd.wrong, None
    enough = (~np.isnan(wrong)).sum(1) >= votes
    total = []
    for _ in range(draws):
        order = np.where(np.isnan(wrong[enough]), 2.0, rng.random(wrong[enough].shape)).argsort(1)[:, :votes]
        total.append((np.take_along_axis(wrong[enough], order, 1).sum(1) * 2 > votes).mean())
    return float(np.mean(total))


def votes_table(crowds: Sequence[Crowd]) -> str:
    """What more votes bring: as seen, as coins would have it, and as the model with shared errors has it."""
    rows = []
    for crowd in crowds:
        errors, share, one_vote = errors_of(crowd), float(crowd.truth.mean()), float(np.nanmean(crowd.wrong))
        for votes in (3, 5):
            expected = [
                share * majority_error(one, votes, 1) + (1 - share) * majority_error(one, votes, 0)
                for one in (replace(errors, shared=0.0), errors)
            ]
            figures = (one_vote, seen_majority(crowd, votes), *expected)
            rows.append([crowd.name, f"{votes}", *(f"{one:.1%}" for one in figures)])
    columns = [
        "votes of",
        "votes",
        "one vote is wrong",
        "majority is wrong",
        "if errors were coins",
        "with shared errors",
    ]
    return table(columns, rows)


def crowds_table(crowds: Sequence[tuple[str, VoteErrors]]) -> str:
    rows = []
    for name, one in crowds:
        phi = (_two_wrong(one.flip, one.shared) - one.flip**2) / (one.flip * (1 - one.flip))
        numbers = (one.flip, one.shared, phi, one.yes_bias, one.by_example)
        rows.append([name, *(f"{number:.2f}" for number in numbers), f"{5 / (1 + 4 * phi):.1f}"])
    columns = [
        "votes of",
        "flip",
        "shared",
        "correlation of two errors",
        "yes_bias",
        "by_example",
        "five votes are worth",
    ]
    return table(columns, rows)


# Leuven: four raters, and no truth but theirs


def leuven_errors(path: Path) -> tuple[VoteErrors, str]:
    """The errors that explain how many of four raters say yes, by maximum likelihood over a grid, beside coins.

    True is as often as the authors say, by three of four: counts do not tell what is true from what all get wrong."""
    wide = pd.read_csv(path)
    said = wide[[name for name in wide.columns if name.startswith("rater")]].to_numpy(np.int8)
    seen = np.bincount(said.sum(1), minlength=5) / len(said)
    fits = {}
    for words, shares in (("coins", (0.0,)), ("shared errors", np.arange(0.0, 0.95, 0.05))):
        share = float(seen[3:].sum())
        fits[words] = max((_fit(seen, float(shared), share) for shared in shares), key=lambda one: one[0])
    compared = [["seen", *(f"{one:.1%}" for one in seen), ""]]
    for words, (_, errors) in fits.items():
        expected = _counts(errors, share)
        note = f"flip {errors.flip:.2f}, shared {errors.shared:.2f}, yes_bias {errors.yes_bias:.2f}; "
        note += f"wrong {errors.chance(1):.0%} of yes, {errors.chance(0):.0%} of no"
        compared.append([words, *(f"{one:.1%}" for one in expected), note])
    errors = fits["shared errors"][1]
    disagree = ((said.sum(1) > 0) & (said.sum(1) < 4)).astype(float)
    by_animal = pd.Series(disagree).groupby(wide["exemplar"]).mean().var()
    errors = replace(errors, by_example=_by_example(errors, share, float(by_animal), wide))
    return errors, table(["raters who say yes", "0", "1", "2", "3", "4", "parameters"], compared)


def _fit(seen: NDArray[np.float64], shared: float, share: float) -> tuple[float, VoteErrors]:
    best = (-np.inf, VoteErrors())
    for flip in np.arange(0.02, 0.5, 0.02):
        for bias in np.arange(-1.0, 1.01, 0.1):
            errors = VoteErrors(float(round(flip, 3)), shared, yes_bias=float(round(bias, 2)))
            likelihood = float((seen * np.log(np.maximum(_counts(errors, share), 1e-9))).sum())
            best = max(best, (likelihood, errors), key=lambda one: one[0])
    return best


def _counts(errors: VoteErrors, share: float) -> NDArray[np.float64]:
    counts: NDArray[np.float64] = share * _said(errors, 1) + (1 - share) * _said(errors, 0)
    return counts


def _said(errors: VoteErrors, value: int) -> NDArray[np.float64]:
    """How often 0 to 4 of four say yes where this is true."""
    wrong, weights = spread(errors.chance(value), errors.shared)
    yes = wrong if value == 0 else 1 - wrong
    return np.array([comb(4, k) * yes**k * (1 - yes) ** (4 - k) @ weights for k in range(5)])


def _by_example(errors: VoteErrors, share: float, seen: float, wide: pd.DataFrame) -> float:
    """The share of difficulty that is the animal's: the one that makes animals differ as much as they do."""
    n, m = wide["exemplar"].nunique(), wide["feature"].nunique()
    rng = np.random.default_rng(0)
    truth = (rng.random((n, m)) < share).astype(np.int8)
    best = (np.inf, 0.0)
    for part in np.arange(0.0, 1.01, 0.1):
        trial = replace(errors, by_example=float(part))
        of_example = np.random.default_rng(1).standard_normal(n)
        said = np.stack([trial.votes(truth, column, 4, rng, of_example).sum(1) for column in range(m)], 1)
        spread = ((said > 0) & (said < 4)).mean(1).var(ddof=1)
        best = min(best, (abs(spread - seen), float(round(part, 1))))
    return best[1]
