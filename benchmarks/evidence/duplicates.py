"""Do two sentences say the same? What words and labels tell, against what the sentences mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from benchmarks.cases import table
from discovery import (
    SAME_FROM,
    SAME_LABELS,
    Described,
    LabelNoise,
    chance_of_same,
    correlations,
    is_in_doubt,
    label_odds,
    likeness,
    same_name,
)
from discovery.statistics import wilson

WORKING_SET, DRAWS = 120, 1_000
Square = NDArray[np.bool_]
Labels = NDArray[np.int8]


def duplicates_table(meanings: Mapping[str, Labels], said: Sequence[str], errors: Mapping[str, float]) -> str:
    """`meanings` are the true labels of each sentence, `said` what people wrote one by one, `errors` how often a label
    is wrong. Two sentences are the same where they are true of the same pictures, of all that there are."""
    names = list(meanings)
    truth = np.stack([meanings[name] for name in names])
    same = (truth[:, None] == truth[None]).all(-1)
    rng = np.random.default_rng(0)
    rows = [[*_scored("the same words", _of_pairs(names, same_name), same), ""]]
    for words, error in {"no error": 0.0, **errors}.items():
        seen = rng.choice(truth.shape[1], min(WORKING_SET, truth.shape[1]), replace=False)
        labels = truth[:, seen] ^ (rng.random((len(names), len(seen))) < error)
        rows += _by_labels(names, labels.astype(np.int8), same, error, f"labels: {words}")
    pairs = [(a, b) for a, b in combinations(said, 2) if same[names.index(a), names.index(b)]]
    other = sum(a != b for a, b in pairs)
    all_pairs = len(said) * (len(said) - 1) // 2
    heading = (
        f"Among {len(said)} sentences of different people, {len(pairs)} of {all_pairs} pairs say the same, {other} of "
        f"them in other words. Of {len(names)} different sentences "
        f"{len(set(map(bytes, truth)))} mean something different ({WORKING_SET} pictures are labelled):"
    )
    return f"{heading}\n\n{table(['by', 'precision', 'recall', 'pairs asked about'], rows)}"


def _by_labels(names: Sequence[str], labels: Labels, same: Square, error: float, words: str) -> list[list[str]]:
    related = correlations(labels, labels) >= SAME_LABELS
    noise = LabelNoise(cells=100.0, differing=100.0 * 2 * error * (1 - error))
    alone, asked, doubts = (np.zeros_like(same) for _ in range(3))
    for a, b in combinations(range(len(names)), 2):
        alike = likeness(Described(names[a]), Described(names[b]))
        odds, answers = label_odds(labels[a], labels[b], noise), list[bool]()
        alone[a, b] = chance_of_same(alike, odds) >= SAME_FROM
        while is_in_doubt(chance_of_same(alike, odds, answers), len(answers)) and len(answers) < 2:
            answers.append(bool(same[a, b]))
        doubts[a, b] = bool(answers)
        asked[a, b] = chance_of_same(alike, odds, answers) >= SAME_FROM
    return [
        [*_scored(f"{words}; correlation alone", related, same), ""],
        [*_scored(f"{words}; words and labels, nobody asked", alone | alone.T, same), ""],
        [*_scored(f"{words}; asked in doubt, answers right", asked | asked.T, same), str(int(doubts.sum()))],
    ]


def _of_pairs(names: Sequence[str], test: Callable[[str, str], bool]) -> Square:
    return np.array([[test(a, b) for b in names] for a in names], bool)


def _scored(words: str, said: Square, same: Square) -> list[str]:
    """Precision and recall over pairs, with intervals over sentences: all pairs of a sentence are drawn together."""
    upper = np.triu(np.ones_like(same), 1)
    sums = [(upper & one).astype(float) for one in (said & same, said, same)]
    weights = np.random.default_rng(1).multinomial(len(same), np.full(len(same), 1 / len(same)), DRAWS).astype(float)
    drawn = [np.einsum("di,ij,dj->d", weights, one, weights, optimize=True) for one in sums]
    counts = [int(one.sum()) for one in sums]
    return [words, _share(counts[0], counts[1], drawn[0], drawn[1]), _share(counts[0], counts[2], drawn[0], drawn[2])]


def _share(part: int, whole: int, parts: NDArray[np.float64], wholes: NDArray[np.float64]) -> str:
    if not whole:
        return "nothing said"
    kept = wholes > 0
    low, high = np.quantile(parts[kept] / wholes[kept], [0.025, 0.975])
    low, high = (low, high) if low < high else wilson(part, whole)
    return f"{part} of {whole}: {part / whole:.0%} ({low:.0%} to {high:.0%})"
