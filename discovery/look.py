"""A look before the whole: label a new feature on a few examples first, and stop if it surely will not count.

A feature counts if at least T = ⌈n/10⌉ of the n examples have it, T lack it, and T tell it apart from each one that
counts already. Each of the three is the same test: are there fewer than T among n? The examples come in a random order
that is spread evenly over groups which the known features make, so that a few tell as much as they can. Each of T
examples is among the first m with probability m/n, and the number of those seen has a smaller tail than a binomial one
(it is a sum of independent hypergeometric numbers, one per group; Hoeffding 1956). Where the examples that are looked
at are a random part of more that will be labelled later, n is the number of all, and a look at the whole part may still
stop a feature. A look of m examples stops a feature
if B(T, m/n) would be as small with a probability of at most error / number of looks: a feature that counts by the
narrowest margin is lost with a probability of at most `error`, one that counts by more with a much smaller one. It is
labelled in full as soon as a look shows what T of n would on average."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, comb

import numpy as np
from numpy.typing import NDArray

from discovery.metrics import DIFFERENCE, differing
from discovery.questions import Labels

Rows = NDArray[np.intp]
FIRST_LOOK = 48  # examples of the first look, and at most a third of all
GROWTH = 1.5  # of a look over the one before
LEFT = 0.1  # share of the examples that must be left for a look to be worth it
LOOK_ERROR = 0.2
GROUP = 8  # examples that are not divided further by known features


@dataclass(frozen=True, slots=True)
class Look:
    size: int  # examples labelled after it
    few: int  # a count of at most this is too small
    enough: float  # a count of at least this is as expected of a feature that counts


@dataclass(frozen=True, slots=True)
class TooLittle:
    """Why a feature was not labelled in full."""

    what: str  # "rare", "common" or "same"
    count: int
    seen: int  # examples
    other: int | None = None  # with "same": its place among those that count

    def reason(self, name: str = "") -> str:
        """In words; `name` is that of the feature that it repeats."""
        if self.what == "same":
            return f"same as {name}: differs on {self.count} of {self.seen} examples"
        return f"too {self.what}: {self.count} of {self.seen} examples {'lack' if self.what == 'common' else 'have'} it"


@lru_cache(maxsize=64)
def looks(n: int, first: int = FIRST_LOOK, error: float = LOOK_ERROR, *, of: int | None = None) -> tuple[Look, ...]:
    """At up to n examples, which are all or drawn from `of`. None where labelling in full takes hardly more."""
    every = max(n, of or n)
    sizes, size = [], min(first, ceil(n / 3))
    while 0 < size <= min(n, every * (1 - LEFT)):
        sizes.append(size)
        size = n if size < n <= size * GROWTH <= every * (1 - LEFT) else ceil(size * GROWTH)
    least = ceil(every * DIFFERENCE)
    return tuple(Look(size, _too_few(least, size / every, error / len(sizes)), least * size / every) for size in sizes)


def _too_few(least: int, share: float, error: float) -> int:
    """The largest count that B(least, share) does not exceed with a probability of at most `error`; else −1."""
    total, count = 0.0, -1
    while count + 1 <= least * share - 1:  # as far as Hoeffding's bound holds
        total += comb(least, count + 1) * share ** (count + 1) * (1 - share) ** (least - count - 1)
        if total > error:
            break
        count += 1
    return count


def order_to_tell(n: int, known: Sequence[Labels], rng: np.random.Generator) -> Rows:
    """All rows; those of a group, whose examples share known features, are spread evenly over the order."""
    place = np.empty(n)
    matrix = np.array(known, np.int8).reshape(-1, n) == 1
    for rows in _groups(np.arange(n), matrix):
        place[rng.permutation(rows)] = (np.arange(len(rows)) + rng.random()) / len(rows)
    return np.argsort(place, kind="stable")


def _groups(rows: Rows, known: NDArray[np.bool_]) -> list[Rows]:
    """Halves of halves, each divided by the known feature that does it most evenly."""
    if len(rows) <= GROUP or not len(known):
        return [rows]
    ones = known[:, rows].sum(axis=1)
    evenness = np.minimum(ones, len(rows) - ones)
    best = int(evenness.argmax())
    if not evenness[best]:
        return [rows]
    has = known[best, rows]
    return _groups(rows[has], known) + _groups(rows[~has], known)


def judge(labels: Labels, counting: Sequence[Labels], look: Look) -> TooLittle | bool:
    """Why it surely will not count; otherwise whether it is to be labelled in full, or looked at again."""
    counts: list[tuple[str, int, int | None]] = [
        ("rare", int((labels == 1).sum()), None),
        ("common", int((labels == 0).sum()), None),
        *(("same", int(differing(labels, other)), place) for place, other in enumerate(counting)),
    ]
    what, count, other = min(counts, key=lambda each: each[1])
    if count <= look.few:
        return TooLittle(what, count, look.size, other)
    return count >= look.enough
