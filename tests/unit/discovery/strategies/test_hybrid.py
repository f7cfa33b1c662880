from __future__ import annotations

from math import log

import numpy as np
import pytest

from benchmarks.rehearsal import rehearse
from benchmarks.worlds import World, independent_features, leafy_tree
from tests.support.noisy_labels import Labelling
from twothirds.discovery.questions import Kind
from twothirds.discovery.simulation.crowds import make_crowd
from twothirds.discovery.strategies import make_strategy
from twothirds.discovery.strategies.hybrid import AdaptiveHybrid

CROWDS = ["generalist", "specifist", "homogeneous", "heterogeneous"]
DELTA = 0.1


def bound(world: World, degree: int) -> float:
    """N + M·D²·ln(M/δ). The proof of Proposition 4.3 allows three times the second term, as θ questions in vain may be
    asked at each feature; but there are rarely so many triples below one feature, and none is asked twice."""
    examples, features = world.truth.shape
    return float(examples + features * degree**2 * log(features / DELTA))


@pytest.mark.parametrize("degree", [2, 3, 5])
@pytest.mark.parametrize("crowd", CROWDS)
def test_all_features_of_a_leafy_tree_are_found_within_the_bound(degree: int, crowd: str) -> None:
    """Proposition 4.3: with probability at least 1 - δ over random D-ary trees."""
    trees, complete = 12, 0
    for seed in range(trees):
        rng = np.random.default_rng(seed)
        features = int(rng.integers(5, 30))
        world = leafy_tree(features, degree, rng, leaves=float(rng.uniform(0, 2)))
        strategy = make_strategy("adaptive-hybrid", len(world.truth), rng, degree=degree, delta=DELTA)
        history = rehearse(strategy, world.crowd(crowd, seed), world.truth, 10**6, rng)
        complete += len(history.columns) == features
        assert history.queries <= bound(world, degree)
        assert history.unresolved == 0.0
    assert complete >= (1 - DELTA) * trees


@pytest.mark.parametrize("crowd", CROWDS)
def test_several_questions_at_a_time_find_the_same_features(crowd: str) -> None:
    rng = np.random.default_rng(7)
    world = leafy_tree(20, 3, rng)
    strategy = AdaptiveHybrid(len(world.truth), rng, degree=3, delta=DELTA)
    history = rehearse(strategy, world.crowd(crowd, 7), world.truth, 10**6, rng, batch=5)
    assert sorted(history.columns) == list(range(20))
    assert len(set(history.questions)) == history.queries


def test_pairs_come_first_and_number_at_most_examples_and_features() -> None:
    rng = np.random.default_rng(3)
    world = leafy_tree(25, 4, rng, leaves=3.0)
    history = rehearse(AdaptiveHybrid(len(world.truth), rng), world.crowd("specifist", 3), world.truth, 10**6, rng)
    kinds = [question.kind for question in history.questions]
    pairs = kinds.count(Kind.PAIR)
    assert set(kinds[:pairs]) == {Kind.PAIR}
    assert pairs <= len(world.truth) + 25


def test_a_feature_of_one_kind_of_example_is_found_though_generalists_never_name_it_in_a_pair() -> None:
    truth = np.array([[1, 1, 0], [1, 1, 0], [1, 0, 1], [1, 0, 1], [0, 0, 0]], dtype=np.int8)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        history = rehearse(AdaptiveHybrid(5, rng), make_crowd("generalist", truth, seed), truth, 1000, rng)
        assert sorted(history.columns) == [0, 1, 2]


@pytest.mark.parametrize("labelling", [Labelling(flip=0.2), Labelling(flip=0.2, votes=5), Labelling(missing=0.3)])
@pytest.mark.parametrize("theta", [1, 20])
def test_on_labels_that_form_no_tree_it_ends_and_still_finds_features(labelling: Labelling, theta: int) -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        truth = independent_features(15, [0.3] * 12, rng).truth
        strategy = AdaptiveHybrid(15, rng, theta=theta)
        history = rehearse(strategy, make_crowd("salience", truth, seed), truth, 10**5, rng, labelling=labelling)
        assert history.unresolved == 0.0
        assert history.queries < 10**5
        assert len(history.columns) >= 3


def test_a_larger_theta_asks_more_before_it_leaves_a_feature() -> None:
    def queries(theta: int) -> int:
        rng = np.random.default_rng(5)
        truth = np.eye(12, dtype=np.int8)  # a star: every triple is answered with NONE
        return rehearse(
            AdaptiveHybrid(12, rng, theta=theta), make_crowd("specifist", truth, 5), truth, 10**5, rng
        ).queries

    assert queries(60) >= queries(10) + 50
