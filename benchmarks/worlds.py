"""Synthetic data sets with known features: the paper's models, and sets as skewed by salience as its data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery.simulation.crowds import Crowd, Matrix, WeightedCrowd, make_crowd

Parents = tuple[int, ...]  # of each feature of a tree the feature right above it, or ROOT
ROOT = -1


@dataclass(frozen=True)
class World:
    truth: Matrix
    parents: Parents | None = None  # where the features form a tree
    salience: NDArray[np.float64] | None = None  # how readily each feature comes to mind, where the world says

    def crowd(self, kind: str, seed: int) -> Crowd:
        """As `make_crowd`, but a salience crowd applies the world's own salience where there is one."""
        if kind == "salience" and self.salience is not None:
            return WeightedCrowd(self.truth, self.salience)
        return make_crowd(kind, self.truth, seed)


BINARY_SHAPES = ("balanced", "caterpillar", "even-split", "random-split")


def binary_tree(features: int, rng: np.random.Generator, shape: str = "random-split") -> World:
    """A proper binary feature tree (Section 4.1): `features` + 2 examples; the root is not a feature.

    The shape says how many of a node's n leaves go to its left: half, one, about half, or any number."""
    if shape not in BINARY_SHAPES:
        raise ValueError(f"unknown shape {shape!r}: choose one of {', '.join(BINARY_SHAPES)}")
    sets: list[NDArray[np.intp]] = []
    parents: list[int] = []
    open_nodes = [(rng.permutation(features + 2), ROOT)]
    while open_nodes:
        leaves, parent = open_nodes.pop()
        left = _left_size(len(leaves), shape, rng)
        for child in (leaves[:left], leaves[left:]):
            if len(child) > 1:
                open_nodes.append((child, len(sets)))
                sets.append(child)
                parents.append(parent)
    return World(_truth_of_sets(features + 2, sets), tuple(parents))


def _left_size(leaves: int, shape: str, rng: np.random.Generator) -> int:
    if shape == "balanced":
        return leaves // 2
    if shape == "caterpillar":
        return 1
    if shape == "even-split":
        return int(np.clip(rng.binomial(leaves, 0.5), 1, leaves - 1))
    return int(rng.integers(1, leaves))


def leafy_tree(features: int, degree: int, rng: np.random.Generator, leaves: float = 1.0) -> World:
    """A D-ary leafy feature tree (Section 4.2): at most `degree` features right under a node, any number of examples.

    `leaves` is the mean number of examples hung on each node besides those that the definition demands: two where
    nothing else hangs, one where a single feature does."""
    parents: list[int] = []
    below = {ROOT: 0}  # how many features hang right under a node
    for feature in range(features):
        parent = int(rng.choice([node for node, count in below.items() if count < degree]))
        parents.append(parent)
        below[parent] += 1
        below[feature] = 0
    owners: list[int] = []
    for node, count in below.items():
        owners += [node] * (max(0, 2 - count) + int(rng.poisson(leaves)))
    truth = np.zeros((len(owners), features), dtype=np.int8)
    for example, owner in zip(rng.permutation(len(owners)), owners, strict=True):
        node = owner
        while node != ROOT:
            truth[example, node] = 1
            node = parents[node]
    return World(truth, tuple(parents))


def independent_features(examples: int, frequencies: Sequence[float], rng: np.random.Generator) -> World:
    """Each example has feature j with probability `frequencies[j]`, independently (Section 5)."""
    chance = rng.random((examples, len(frequencies)))
    return World((chance < np.asarray(frequencies)).astype(np.int8))


@dataclass(frozen=True)
class _Skew:
    """How a salience-skewed set is made up. The classes are the most salient, then what is everywhere."""

    classes: tuple[float, ...]  # the shares of the obvious classes, which people name first
    everywhere: int  # features of nearly all examples: a tag names them, a comparison does not
    shared: int  # features found in every class
    nested: int  # features of one class only


SKEWED = {
    "signs": _Skew(classes=(0.55, 0.45), everywhere=8, shared=54, nested=14),
    "faces": _Skew(classes=(0.5, 0.5), everywhere=6, shared=44, nested=26),
    "products": _Skew(classes=(0.34, 0.33, 0.33), everywhere=5, shared=26, nested=44),
}


def skewed_world(like: str, rng: np.random.Generator, examples: int = 100) -> World:
    """A set like the paper's signs, faces or products (Section 7): a few features are far more salient than others."""
    if like not in SKEWED:
        raise ValueError(f"unknown skewed world {like!r}: choose one of {', '.join(SKEWED)}")
    skew = SKEWED[like]
    of_class = rng.choice(len(skew.classes), examples, p=skew.classes)
    obvious = of_class[:, None] == np.arange(len(skew.classes))
    everywhere = rng.random((examples, skew.everywhere)) < 0.97
    shared = rng.random((examples, skew.shared)) < rng.uniform(0.1, 0.6, skew.shared)
    nested = rng.random((examples, skew.nested)) < rng.uniform(0.2, 0.8, skew.nested)
    nested &= of_class[:, None] == rng.integers(len(skew.classes), size=skew.nested)
    rest = np.hstack([shared, nested])[:, rng.permutation(skew.shared + skew.nested)]
    truth = np.hstack([obvious, everywhere, rest]).astype(np.int8)
    # so steep that about 60 % of the answers to random triples of signs name the obvious classes, as in the paper
    return World(truth, salience=np.arange(1, truth.shape[1] + 1) ** -1.5)


def left_right_world(left: int, right: int) -> World:
    """Proposition 6.1: feature 0 (true of the first `left` examples only) needs a question with all the examples.

    Then come g_1 … g_left (true of the left but for one) and h_1 … h_right (true of the left and of one of the right).
    The paper leaves g_i open on the right: 0 there."""
    truth = np.zeros((left + right, 1 + left + right), dtype=np.int8)
    truth[:left] = 1
    truth[np.arange(left), 1 + np.arange(left)] = 0
    truth[left + np.arange(right), 1 + left + np.arange(right)] = 1
    salience = np.ones(1 + left + right)
    salience[0] = 0.0  # the proof's crowd names any other feature first
    return World(truth, salience=salience)


def _truth_of_sets(examples: int, sets: Sequence[NDArray[np.intp]]) -> Matrix:
    truth = np.zeros((examples, len(sets)), dtype=np.int8)
    for column, members in enumerate(sets):
        truth[members, column] = 1
    return truth
