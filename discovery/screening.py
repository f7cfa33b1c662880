"""A look before the whole: label a new feature on a few examples first, and stop if it surely will not count.

A feature counts if at least T = ⌈n · difference⌉ of the n examples have it, T lack it, and T tell it apart from each
one that counts already. Each of the three is the same test: are there fewer than T among n? The examples come in a
random order that is spread evenly over groups which the known features make, so that a few tell as much as they can.
Where the examples that are looked at are a random part of more that will be labelled later, n is the number of all, and
a look at the whole part may still stop a feature.

A feature is looked at after every few examples, and stopped where so few were counted that one which counts by the
narrowest margin, by T of n exactly, would be stopped by then with a probability of at most `LOOK_ERROR` times the share
of the looks' examples that are seen. The probability is exact for a random order: that of the counts of draws without
replacement, followed from look to look. Spread evenly, counts vary less. A feature that counts by more is lost with a
much smaller probability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil

import numpy as np
from numpy.typing import NDArray

from discovery.metrics import DIFFERENCE, differing
from discovery.questions import Labels

Rows = NDArray[np.intp]
FIRST_LOOK = 36  # examples of the first look, and at most a third of all
LOOK_EVERY = 10  # examples from look to look, and more where many were seen
LOOK_ERROR = 0.09
STEP = 0.1  # of the examples seen, if that is more
GROWTH = 1.5  # of a look at which meanings are compared over the one before
LEFT = 0.1  # share of the examples that must be left for a look to be worth it
TINY = 1e-9  # a chance that is left out
GROUP = 8  # examples that are not divided further by known features


@dataclass(frozen=True, slots=True)
class ScreeningStage:
    size: int  # examples labelled after it
    few: int  # a count of at most this is too small
    enough: int  # from this count on no further look is taken
    meaning: bool = True  # whether it is a time to ask what means the same


@dataclass(frozen=True, slots=True)
class ScreenedOut:
    """Why a feature was not labelled in full."""

    cause: str  # "rare", "common" or "same"
    count: int
    seen: int  # examples
    other: int | None = None  # with "same": its place among those that count

    def reason(self, name: str = "") -> str:
        """In words; `name` is that of the feature that it repeats."""
        if self.cause == "same":
            return f"same as {name}: differs on {self.count} of {self.seen} examples"
        verb = "lack" if self.cause == "common" else "have"
        return f"too {self.cause}: {self.count} of {self.seen} examples {verb} it"


@lru_cache(maxsize=64)
def screening_stages(
    n: int,
    first: int = FIRST_LOOK,
    every: int = LOOK_EVERY,
    *,
    of: int | None = None,
    difference: float = DIFFERENCE,
) -> tuple[ScreeningStage, ...]:
    """At up to n examples, which are all or drawn from `of`. None where labelling in full takes hardly more."""
    total = max(n, of or n)
    last = min(n, int(total * (1 - LEFT)))
    sizes, size = [], min(first, ceil(n / 3))
    while 0 < size <= last:
        sizes.append(size)
        further = size + max(every, int(size * STEP))
        size = n if size < n == last < further else further
    found, asked, boundary = list[ScreeningStage](), 0, _boundary(sizes, total, LOOK_ERROR, difference)
    for size, few in zip(sizes, boundary, strict=True):
        if few >= 0:  # one that can stop nothing is only a wait
            found.append(ScreeningStage(size, few, boundary[-1] + 1, size >= asked * GROWTH))
            asked = size if found[-1].meaning else asked
    return tuple(found)


def _boundary(sizes: Sequence[int], n: int, error: float, difference: float) -> list[int]:
    """At each look the largest count that is too small, −1 if none is."""
    least = ceil(n * difference - TINY)  # without the error of the product: 70 × 0.1 is above 7
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])  # of factorials
    chances, spent, seen, few = np.eye(1, least + 1)[0], 0.0, 0, []  # of counts that no look has stopped
    for size in sizes:
        chances, seen = _drawn(chances, n - seen, size - seen, logs), size
        allowed = np.searchsorted(spent + np.cumsum(chances), error * size / sizes[-1], side="right")
        few.append(min(int(allowed), ceil(least * size / n) - 1) - 1)
        spent += float(chances[: few[-1] + 1].sum())
        chances[: few[-1] + 1] = 0.0
    return few


def _drawn(chances: NDArray[np.float64], left: int, draws: int, logs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of the counts after so many more draws from the examples that are left, without replacement."""
    counts, more = np.flatnonzero(chances > TINY)[:, None], np.arange(draws + 1)
    there = len(chances) - 1 - counts  # not drawn yet
    possible = (more <= there) & (draws - more <= left - there)

    def choose(of: NDArray[np.intp], chosen: NDArray[np.intp]) -> NDArray[np.float64]:
        chosen = np.clip(chosen, 0, of)
        ways: NDArray[np.float64] = logs[of] - logs[chosen] - logs[of - chosen]
        return ways

    chance = choose(there, more) + choose(left - there, draws - more) - choose(np.array(left), np.array(draws))
    after = np.zeros(len(chances) + draws)
    np.add.at(after, counts + more, np.where(possible, np.exp(chance), 0.0) * chances[counts])
    return after[: len(chances)]


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
    having = known[:, rows].sum(axis=1)
    evenness = np.minimum(having, len(rows) - having)
    best = int(evenness.argmax())
    if not evenness[best]:
        return [rows]
    has = known[best, rows]
    return _groups(rows[has], known) + _groups(rows[~has], known)


def judge(labels: Labels, counting: Sequence[Labels], stage: ScreeningStage) -> ScreenedOut | bool:
    """Why it surely will not count; otherwise whether it is to be labelled in full, or looked at again."""
    counts: list[tuple[str, int, int | None]] = [
        ("rare", int((labels == 1).sum()), None),
        ("common", int((labels == 0).sum()), None),
        *(("same", int(differing(labels, other)), place) for place, other in enumerate(counting)),
    ]
    cause, count, other = min(counts, key=lambda counted: counted[1])
    if count <= stage.few:
        return ScreenedOut(cause, count, stage.size, other)
    return count >= stage.enough
