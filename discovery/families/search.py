"""Which features may be values of one attribute: found from labels that contain errors.

Two features may exclude one another where no more examples have both than wrong labels explain. Of rare features that
says little, so that features are put together greedily: those first of which far fewer examples have both than chance
would bring, and those whose names share a word. Whether a set is a family is decided later, by its name and by how its
labels fit as a whole (`supports`). Names alone tell less: "black hair" and "red hair" are hair in a colour."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import comb, erfc, sqrt

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery.duplicates import FILLERS, RELATIONS, SPELLINGS
from twothirds.discovery.families.fit import MOST_WRONG, FamilyFit, Matrix, exclusive, fit, levels

DOUBT = 0.01  # chance at which labels contradict exclusion or inclusion
ENOUGH = 1.0  # log-likelihood beyond independence from which labels support a family
ENOUGH_FOR_SCALE = 3.0  # of many chains some look like a scale by chance
SAME_WORD = 3.0  # how much a shared word counts, in standard deviations of the overlap
BEGINS, GROWS = 1.0, 0.5  # least affinity of two features, and of a further one
MOST = 12  # features in one question
SHORTEST_SCALE = 3
FEWEST_ROWS = 20
EXACT = 400  # examples up to which a tail is summed
Pairs = NDArray[np.float64]
COLOURS = {
    *("black", "white", "gray", "red", "orange", "yellow", "green", "blue", "purple", "violet", "pink", "brown"),
    *("blond", "golden", "silver", "beige", "turquoise", "teal", "cyan", "magenta", "dark", "light", "bright", "pale"),
}
NUMBERS = {"no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "many", "several"}
KINDS = (("{} colour", COLOURS), ("number of {}", NUMBERS), ("{}", None))
IGNORED = FILLERS | RELATIONS


@dataclass(frozen=True, slots=True)
class Candidate:
    """Features, by column, that may be values of one attribute; of a scale the widest first."""

    columns: tuple[int, ...]
    scale: bool = False


def supports(labels: Matrix, *, scale: bool = False) -> tuple[bool, FamilyFit]:
    """Whether labels of features, in the order of a candidate, speak for a family rather than for independence, and no
    two of values that exclude one another overlap more than wrong labels explain."""
    count = labels.shape[1]
    fitted = fit(labels, levels(count) if scale else exclusive(count))
    if scale:
        return fitted.evidence >= ENOUGH_FOR_SCALE, fitted
    pairs = max(count * (count - 1) // 2, 1)
    apart = _Counts.of(labels).overlap_is_error(DOUBT / pairs)
    return fitted.evidence >= ENOUGH and bool(apart.all()), fitted


def best_family(labels: Matrix, columns: Sequence[int], *, scale: bool = False) -> list[int]:
    """The columns that labels support as a family, without those that do not fit in; empty where no two are left."""
    kept = list(columns)
    while len(kept) > 1:
        if supports(labels[:, kept], scale=scale)[0]:
            return kept
        smaller = [[column for column in kept if column != left] for left in kept]
        kept = max(smaller, key=lambda columns: _merit(labels[:, columns], scale=scale))
    return []


def _merit(labels: Matrix, *, scale: bool) -> tuple[bool, float]:
    good, fitted = supports(labels, scale=scale)
    return good, fitted.evidence


def candidates(
    labels: Matrix, names: Sequence[str], apart: Collection[frozenset[int]] = (), placed: Collection[int] = ()
) -> list[Candidate]:
    """Sets that have no feature in common, the most promising first. `apart` are sets of which no two features belong
    to one family, `placed` features that have theirs."""
    if len(labels) < FEWEST_ROWS:
        return []
    counts = _Counts.of(labels)
    allowed = counts.may_exclude()
    for group in apart:
        for column in group:
            allowed[column, [other for other in group if other != column]] = False
    allowed[list(placed)] = allowed[:, list(placed)] = False
    found = _grown(allowed, counts.affinity(names))
    free = [place for place in range(len(names)) if place not in placed]
    return [*(Candidate(tuple(columns)) for columns in found), *_scales(counts, free, apart)]


@dataclass(frozen=True)
class _Counts:
    """Of every two features the examples where both are known, that have both, and the rates of each."""

    known: Pairs
    shared: Pairs
    rate: NDArray[np.float64]

    @classmethod
    def of(cls, labels: Matrix) -> _Counts:
        known, has = (labels >= 0).astype(np.float64), (labels == 1).astype(np.float64)
        seen = np.maximum(known.sum(axis=0), 1)
        return cls(known.T @ known, has.T @ has, has.sum(axis=0) / seen)

    @property
    def _true(self) -> NDArray[np.float64]:
        """About the share that has a feature, if as many labels are wrong as may be."""
        share: NDArray[np.float64] = np.clip((self.rate - MOST_WRONG) / (1 - 2 * MOST_WRONG), 0.0, 1.0)
        return share

    def overlap_is_error(self, doubt: float) -> NDArray[np.bool_]:
        """Whether no more examples have both features than wrong labels explain."""
        e, share = MOST_WRONG, self._true
        either = np.minimum(share[:, None] + share[None, :], 1.0)
        explained = _not_beyond(self.shared, self.known, either * e * (1 - e) + (1 - either) * e * e, doubt)
        np.fill_diagonal(explained, True)
        return explained

    def may_exclude(self) -> NDArray[np.bool_]:
        """The same of every two features that vary; none with itself."""
        varies = (self.rate > 0) & (self.rate < 1 - MOST_WRONG)
        possible = self.overlap_is_error(DOUBT) & varies[:, None] & varies[None, :]
        np.fill_diagonal(possible, False)
        return possible

    def affinity(self, names: Sequence[str]) -> Pairs:
        by_chance = self.known * self.rate[:, None] * self.rate[None, :]
        fewer = (by_chance - self.shared) / np.sqrt(by_chance + 1.0)
        words = [{*_content_words(name)} - COLOURS - NUMBERS for name in names]
        share = np.array([[bool(word & other) for other in words] for word in words], np.float64)
        return fewer + SAME_WORD * share

    def includes(self) -> NDArray[np.bool_]:
        """Whether the feature of the row holds wherever that of the column does, but for wrong labels, and far more
        often than by chance."""
        e, share = MOST_WRONG, self._true
        positives = self.rate[None, :] * self.known
        outside = positives - self.shared
        wider, narrower = share[:, None], np.minimum(share[None, :], share[:, None])
        expected = narrower * (1 - e) * e + (wider - narrower) * e * e + (1 - wider) * e * (1 - e)
        by_chance = positives * (1 - self.rate[:, None])
        clearly = (by_chance - outside) / np.sqrt(by_chance + 1.0) >= 2.0
        wider_too = self.rate[:, None] > self.rate[None, :] + 1 / np.maximum(self.known, 1)
        possible: NDArray[np.bool_] = _not_beyond(outside, self.known, expected, DOUBT) & clearly & wider_too
        return possible


def _not_beyond(count: Pairs, of: Pairs, share: Pairs, doubt: float) -> NDArray[np.bool_]:
    """Whether so many of `of` are no surprise where the share is expected."""
    checked = np.ones(count.shape, np.bool_)
    for place in zip(*np.nonzero(count > of * share), strict=True):
        checked[place] = _upper_tail(int(count[place]), int(of[place]), float(share[place])) >= doubt
    return checked


def _upper_tail(count: int, of: int, share: float) -> float:
    """The chance of so many or more; by the normal distribution where there are many."""
    if of <= EXACT:
        return 1.0 - sum(comb(of, k) * share**k * (1 - share) ** (of - k) for k in range(count))
    spread = max((of * share * (1 - share)) ** 0.5, 1e-9)
    return 0.5 * erfc((count - 0.5 - of * share) / spread / sqrt(2))


def _grown(allowed: NDArray[np.bool_], affinity: Pairs) -> list[list[int]]:
    """From the closest pair on, the feature that is closest to all so far, while there is one."""
    free, found = allowed.copy(), list[list[int]]()
    while True:
        near = np.where(free, affinity, -np.inf)
        first, second = np.unravel_index(int(near.argmax()), near.shape) if near.size else (0, 0)
        if not near.size or near[first, second] < BEGINS:
            return found
        columns = [int(first), int(second)]
        while len(columns) < MOST:
            fits = free[:, columns].all(axis=1)
            mean = np.where(fits, affinity[:, columns].mean(axis=1), -np.inf)
            nearest = int(mean.argmax())
            if mean[nearest] < GROWS:
                break
            columns.append(nearest)
        found.append(columns)
        free[columns] = free[:, columns] = False


def _scales(counts: _Counts, free: Sequence[int], apart: Collection[frozenset[int]]) -> list[Candidate]:
    """The longest chains of features that include one another, none with a feature of another."""
    includes, left, found = counts.includes(), set(free), list[Candidate]()
    for group in apart:
        for column in group:
            includes[column, list(group)] = False
    while True:
        best: list[int] = []
        for start in sorted(left, key=lambda place: -counts.rate[place]):
            chain = [start]
            for narrower in sorted(left - {start}, key=lambda place: -counts.rate[place]):
                if all(includes[wider, narrower] for wider in chain):
                    chain.append(narrower)
            best = max(best, chain, key=len)
        if len(best) < SHORTEST_SCALE:
            return found
        found.append(Candidate(tuple(best), scale=True))
        left -= set(best)


@dataclass(frozen=True, slots=True)
class WordGroup:
    name: str
    members: tuple[int, ...]
    specific: bool  # all differ by a colour or a number, and by nothing else


def groups_by_words(names: Sequence[str]) -> list[WordGroup]:
    """Names that differ by a colour or a number and share a word beside, then names that end with the same word, the
    largest first. A name may be in several groups."""
    ordered = [_content_words(name) for name in names]
    words = [frozenset(name_words) for name_words in ordered]
    shared = sorted({word for own in words for word in own if sum(word in other for other in words) > 1})
    found: list[WordGroup] = []
    for word in shared:
        if word in COLOURS or word in NUMBERS:
            continue
        sharing = [place for place, own in enumerate(words) if word in own]
        for form, kind in KINDS:
            members = [
                place
                for place in sharing
                if (ordered[place][-1] == word if kind is None else _differs_by(kind, words[place], word))
            ]
            if len(members) > 1:
                found.append(WordGroup(form.format(word), tuple(members), kind is not None))
    bare = [place for place, own in enumerate(words) if own and own <= COLOURS]
    if len(bare) > 1:
        found.append(WordGroup("colour", tuple(bare), True))
    return sorted(found, key=lambda group: (not group.specific, -len(group.members)))


def _content_words(name: str) -> list[str]:
    words = re.findall(r"[^\W_]+", name.casefold())
    return [SPELLINGS.get(word, word) for word in words if word not in IGNORED] or [""]


def _differs_by(kind: set[str], words: frozenset[str], word: str) -> bool:
    return len(words) > 1 and words - {word} <= kind
