from __future__ import annotations

import numpy as np
import pytest

from benchmarks.rehearsal import rehearse
from benchmarks.worlds import (
    BINARY_SHAPES,
    ROOT,
    SKEWED,
    World,
    binary_tree,
    independent_features,
    leafy_tree,
    left_right_world,
    skewed_world,
)
from twothirds.discovery.metrics import interesting
from twothirds.discovery.strategies import make_strategy


def nested_or_disjoint(world: World) -> bool:
    has = world.truth.astype(np.int64)
    shared = has.T @ has
    size = np.diagonal(shared)
    return bool(((shared == 0) | (shared == size) | (shared == size[:, None])).all())


def children(world: World) -> dict[int, int]:
    assert world.parents is not None
    counts = dict.fromkeys([ROOT, *range(len(world.parents))], 0)
    for parent in world.parents:
        counts[parent] += 1
    return counts


def leaves(world: World) -> dict[int, int]:
    """How many examples hang right under each node: the deepest feature that an example has."""
    counts = dict.fromkeys([ROOT, *range(world.truth.shape[1])], 0)
    for row in world.truth:
        having = np.flatnonzero(row)
        counts[int(having[world.truth.sum(axis=0)[having].argmin()]) if having.size else ROOT] += 1
    return counts


@pytest.mark.parametrize("shape", BINARY_SHAPES)
def test_in_a_proper_binary_tree_every_node_has_two_children(shape: str) -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        features = int(rng.integers(1, 50))
        world = binary_tree(features, rng, shape)
        assert world.truth.shape == (features + 2, features)
        assert nested_or_disjoint(world)
        below, hanging = children(world), leaves(world)
        assert all(below[node] + hanging[node] == 2 for node in below)


def test_the_shapes_differ_in_depth() -> None:
    def depth(shape: str) -> int:
        return int(binary_tree(62, np.random.default_rng(0), shape).truth.sum(axis=1).max())

    assert depth("balanced") == 5
    assert depth("caterpillar") == 62
    assert depth("balanced") <= depth("even-split") < depth("random-split") < 62


@pytest.mark.parametrize("degree", [1, 2, 3, 6])
def test_a_leafy_tree_has_at_most_degree_features_below_a_node_and_no_redundant_one(degree: int) -> None:
    for seed in range(5):
        world = leafy_tree(25, degree, np.random.default_rng(seed), leaves=0.5)
        below, hanging = children(world), leaves(world)
        assert max(below.values()) <= degree
        assert nested_or_disjoint(world)
        assert all(below[node] + hanging[node] >= 2 for node in below)
        assert len(np.unique(world.truth.T, axis=0)) == 25


def test_independent_features_have_the_given_frequencies() -> None:
    world = independent_features(20_000, [0.1, 0.5, 0.9], np.random.default_rng(0))
    assert world.truth.mean(axis=0) == pytest.approx([0.1, 0.5, 0.9], abs=0.015)
    assert np.asarray(np.corrcoef(world.truth.T))[0, 1] == pytest.approx(0, abs=0.03)


@pytest.mark.parametrize("like", sorted(SKEWED))
def test_in_a_skewed_world_a_few_features_outshine_the_rest(like: str) -> None:
    world = skewed_world(like, np.random.default_rng(0))
    assert world.truth.shape == (100, 78)
    assert sum(interesting(column) for column in world.truth.T) >= 55
    assert world.salience is not None
    rng = np.random.default_rng(1)
    strategy = make_strategy("random-triple", 100, rng)
    history = rehearse(strategy, world.crowd("salience", 0), world.truth, 400, rng)
    classes = len(SKEWED[like].classes)
    assert world.truth[:, :classes].sum(axis=1).tolist() == [1] * 100
    obvious = sum(column is not None and column < classes for column in history.answers) / 400
    assert 0.4 < obvious < 0.75  # the paper's signs: 60 % of the answers


def test_the_left_right_world_is_the_one_of_the_proof() -> None:
    world = left_right_world(2, 1)
    assert world.truth.tolist() == [[1, 0, 1, 1], [1, 1, 0, 1], [0, 0, 0, 1]]


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown shape 'round': choose one of balanced"):
        binary_tree(5, np.random.default_rng(0), "round")
    with pytest.raises(ValueError, match="unknown skewed world 'cars': choose one of signs"):
        skewed_world("cars", np.random.default_rng(0))
