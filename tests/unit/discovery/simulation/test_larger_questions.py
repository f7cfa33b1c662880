"""The larger questions of Section 6 of the paper."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.worlds import left_right_world
from twothirds.discovery.questions import Comparison, Kind
from twothirds.discovery.simulation.crowds import make_crowd


@pytest.mark.parametrize(("left", "right"), [(1, 1), (2, 1), (2, 3), (4, 2)])
def test_only_a_question_with_all_the_examples_is_sure_to_find_the_first_feature(left: int, right: int) -> None:
    """Proposition 6.1."""
    world = left_right_world(left, right)
    crowd, rng = world.crowd("salience", 0), np.random.default_rng(0)
    lefts, rights = tuple(range(left)), tuple(range(left, left + right))
    assert world.truth.shape == (left + right, 1 + left + right)
    assert crowd.answer(Comparison(Kind.LEFT_RIGHT, lefts, rights), rng) == 0
    for i in lefts:
        assert crowd.answer(Comparison(Kind.LEFT_RIGHT, (), (i,)), rng) == 1 + i
        assert crowd.answer(Comparison(Kind.LEFT_RIGHT, tuple(x for x in lefts if x != i), rights), rng) == 1 + i
    for j, x in enumerate(rights):
        fewer = tuple(y for y in rights if y != x)
        assert crowd.answer(Comparison(Kind.LEFT_RIGHT, lefts, fewer), rng) == 1 + left + j
        assert crowd.answer(Comparison(Kind.LEFT_RIGHT, (x,), ()), rng) == 1 + left + j


def test_one_of_three_questions_alone_miss_features_of_a_tree() -> None:
    """Section 6: a specifist names what is true of one example, never what lies above it."""
    truth = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]], dtype=np.int8)
    crowd, rng = make_crowd("specifist", truth, 0), np.random.default_rng(0)
    triples = [(0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)]
    named = {crowd.answer(Comparison(Kind.ONE_OF_THREE, triple), rng) for triple in triples}
    assert 0 not in named
    assert crowd.answer(Comparison(Kind.TWO_OF_THREE, (0, 1, 2)), rng) == 0
