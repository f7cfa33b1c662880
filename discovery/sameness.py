"""How likely two features are one, by what is known of them: words, labels, and what somebody says who was asked.

Labels err, so one feature labelled twice differs from itself. How often is estimated from what was said twice: votes on
the same label, and what a comparison said of examples that were labelled later; before there is any of it, a prior that
is stated below. Two columns of labels are then likelier as one feature with such errors or as any two features, which
is a ratio of marginal likelihoods. It is bounded: of different features some select the same examples, and no
number of labels tells these from one feature. Words and answers are odds that are stated below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import comb, exp, lgamma, log

import numpy as np
from numpy.typing import NDArray

from discovery.questions import UNKNOWN, Labels
from discovery.wording import Likeness

USUAL_DIFFERENCE, USUAL_CELLS = 0.1, 20.0  # one feature labelled twice differs on a tenth: worth so many labels
MOST_CELLS = 100.0  # votes of one model share errors, so they never make us surer than so many labels would
COINCIDENCE = 0.01  # of the pairs of different features select the same examples, but for errors
RELATED = 0.3  # of them have to do with each other in some way: any table of both, either and neither is as likely
ODDS = {Likeness.EQUAL: 1.0, Likeness.CLOSE: 0.1, Likeness.APART: 1 / 300}  # of being one, before labels are seen
RELIABLE = 0.95  # of the answers whether two features mean the same are right
ASK_FROM, SURE_FROM = 0.02, 0.98  # between these chances somebody is asked
ASK_AGAIN_FROM, SAME_FROM = 0.5, 0.9  # and once more between these; from the last on the two are one
MOST_LABELS = 400  # more are counted as so many: what the grids below resolve, and errors are alike anyway
_SHARES = (np.arange(40) + 0.5) / 40  # of the examples that have the feature
_ROOTS = (np.arange(40) + 0.5) / 40
_ERRORS = _ROOTS**2 / 2  # differences of one feature from itself, close to each other where they are small


@dataclass(frozen=True, slots=True)
class LabelNoise:
    """How often one feature that is labelled twice differs from itself: what was seen, and how often it differed."""

    cells: float = 0.0
    differing: float = 0.0

    @classmethod
    def of_votes(cls, cells: int, differing: int, votes: int) -> LabelNoise:
        """From labels with two votes, and those whose votes differ, for labels that are the majority of so many."""
        error = _error_of(differing / cells) if cells else 0.0
        wrong = _majority_error(error, votes)
        return cls(cells, cells * 2 * wrong * (1 - wrong))

    def __add__(self, other: LabelNoise) -> LabelNoise:
        return LabelNoise(self.cells + other.cells, self.differing + other.differing)

    @property
    def beta(self) -> tuple[float, float]:
        """The two parameters of what is known."""
        weight = min(1.0, MOST_CELLS / max(self.cells, 1.0))
        differ = USUAL_DIFFERENCE * USUAL_CELLS + weight * self.differing
        return differ, USUAL_CELLS + weight * self.cells - differ


NOTHING_SEEN = LabelNoise()


def label_odds(one: Labels, other: Labels, noise: LabelNoise = NOTHING_SEEN) -> float:
    """By how much labels raise or lower the odds that the two are one feature; at most 1 / COINCIDENCE."""
    both = (one != UNKNOWN) & (other != UNKNOWN)
    a, b = one[both] == 1, other[both] == 1
    weight = min(1.0, MOST_LABELS / max(len(a), 1))
    cells = tuple(round(weight * int(cell.sum())) for cell in (a & b, a & ~b, b & ~a, ~a & ~b))
    ratio = exp(min(_as_one((cells[0], cells[1] + cells[2], cells[3]), noise.beta) - _as_two(cells), 50.0))
    return ratio / (1 - COINCIDENCE + COINCIDENCE * ratio)


def chance_of_same(words: Likeness, by_labels: float, said: Sequence[bool] = ()) -> float:
    """`said` are the answers of those who were asked."""
    odds = ODDS[words] * by_labels * (RELIABLE / (1 - RELIABLE)) ** (2 * sum(said) - len(said))
    return odds / (1 + odds)


def is_in_doubt(chance: float, asked: int) -> bool:
    """Whether to ask once more, after so many answers."""
    return ASK_FROM <= chance < SURE_FROM if not asked else ASK_AGAIN_FROM <= chance < SAME_FROM


@lru_cache(maxsize=8192)
def _as_one(counts: tuple[int, int, int], beta: tuple[float, float]) -> float:
    """Logarithm of the likelihood of both, differing and neither, as one feature with errors."""
    both, differing, neither = counts
    error = (1 - np.sqrt(1 - 2 * _ERRORS)) / 2
    has, lacks = _SHARES[:, None], 1 - _SHARES[:, None]
    each = (
        both * np.log(has * (1 - error) ** 2 + lacks * error**2)
        + neither * np.log(lacks * (1 - error) ** 2 + has * error**2)
        + differing * np.log(_ERRORS / 2)
    )
    prior = (beta[0] - 1) * np.log(_ERRORS) + (beta[1] - 1) * np.log(1 - _ERRORS) + np.log(_ROOTS)
    return _log_sum(each + prior) - _log_sum(prior) - log(len(_SHARES))


def _as_two(cells: tuple[int, ...]) -> float:
    """The same of both, only the one, only the other and neither, as two features."""
    n, ones, others = sum(cells), cells[0] + cells[1], cells[0] + cells[2]
    related = lgamma(4) - lgamma(n + 4) + sum(lgamma(cell + 1) for cell in cells)
    unrelated = sum(lgamma(k + 1) + lgamma(n - k + 1) - lgamma(n + 2) for k in (ones, others))
    return float(np.logaddexp(log(RELATED) + related, log(1 - RELATED) + unrelated))


def _log_sum(values: NDArray[np.float64]) -> float:
    top = float(values.max())
    return top + float(np.log(np.exp(values - top).sum()))


def _error_of(differing: float) -> float:
    """Of each of two votes that differ so often."""
    return float((1 - np.sqrt(max(0.0, 1 - 2 * differing))) / 2)


def _majority_error(error: float, votes: int) -> float:
    """Of the majority of an odd number of votes with such errors; of an even number that of one less."""
    n = votes if votes % 2 else max(votes - 1, 1)
    return sum(comb(n, wrong) * error**wrong * (1 - error) ** (n - wrong) for wrong in range(n // 2 + 1, n + 1))
