from __future__ import annotations

import numpy as np
import pytest

from benchmarks.rehearsal import rehearse
from benchmarks.worlds import binary_tree, left_right_world
from discovery import valid_columns
from discovery.questions import UNKNOWN, Comparison, Kind
from discovery.simulation.crowds import Matrix, make_crowd
from discovery.strategies import make_strategy
from discovery.strategies.registry import as_left_right, as_two_of_three


def some_truth(seed: int) -> Matrix:
    truth = np.random.default_rng(seed).integers(0, 2, (6, 40)).astype(np.int8)
    truth[np.random.default_rng(seed + 1).random(truth.shape) < 0.1] = UNKNOWN
    return truth


@pytest.mark.parametrize("kind", [Kind.TWO_OF_THREE, Kind.ONE_OF_THREE, Kind.PAIR])
def test_the_left_right_parts_have_together_the_answers_of_the_whole_and_no_answer_twice(kind: Kind) -> None:
    question = Comparison(kind, (3, 0, 5) if kind is not Kind.PAIR else (3, 5), other_than_known=True)
    parts = as_left_right(question)
    assert len(parts) == len(question.examples)
    assert all(part.kind is Kind.LEFT_RIGHT and part.other_than_known for part in parts)
    for seed in range(20):
        truth = some_truth(seed)
        answers = np.array([valid_columns(truth, part) for part in parts])
        assert (answers.sum(axis=0) == valid_columns(truth, question)).all()


def test_a_pair_is_two_questions_about_three_of_which_two_are_the_same() -> None:
    parts = as_two_of_three(Comparison(Kind.PAIR, (2, 4)))
    assert [part.examples for part in parts] == [(2, 2, 4), (2, 4, 4)]
    for seed in range(20):
        truth = some_truth(seed)
        answers = np.array([valid_columns(truth, part) for part in parts])
        assert (answers.sum(axis=0) == valid_columns(truth, Comparison(Kind.PAIR, (2, 4)))).all()


def test_what_has_no_parts_stays_as_it_is() -> None:
    tag = Comparison(Kind.TAG, (2,))
    assert as_left_right(tag) == as_two_of_three(tag) == [tag]


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("crowd", ["generalist", "specifist", "heterogeneous"])
def test_left_right_questions_find_a_binary_tree_with_at_most_three_times_the_queries(batch: int, crowd: str) -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        world = binary_tree(15, rng)
        strategy = make_strategy("adaptive-triple", 17, rng, batch=batch, ask="left-right")
        history = rehearse(strategy, world.crowd(crowd, seed), world.truth, 1000, rng, batch=batch)
        assert {question.kind for question in history.questions} == {Kind.LEFT_RIGHT}
        assert sorted(history.columns) == list(range(15))
        assert history.unresolved == 0.0
        if batch == 1:
            assert history.queries <= 45


def test_pairs_asked_as_two_of_three_tell_all_examples_apart() -> None:
    rng = np.random.default_rng(2)
    world = binary_tree(15, rng)
    strategy = make_strategy("adaptive-pair", 17, rng, ask="two-of-three")
    history = rehearse(strategy, world.crowd("specifist", 2), world.truth, 1000, rng)
    assert {question.kind for question in history.questions} == {Kind.TWO_OF_THREE}
    assert history.unresolved == 0.0
    patterns = np.unique(world.truth[:, history.columns], axis=0)
    asked_as_pairs = np.unique(world.truth, axis=0)
    assert len(patterns) == len(asked_as_pairs)


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
