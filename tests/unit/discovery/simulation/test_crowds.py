from __future__ import annotations

import numpy as np
import pytest

from twothirds.discovery import valid_columns
from twothirds.discovery.questions import UNKNOWN, Comparison, Kind
from twothirds.discovery.simulation.crowds import CROWDS, Matrix, make_crowd

#            natural animal bird metal   red
TAXONOMY = [
    [1, 1, 1, 0, UNKNOWN],  # sparrow
    [1, 1, 1, 0, 0],  # robin
    [1, 1, 0, 0, 1],  # fish
    [1, 0, 0, 0, 1],  # flower
    [0, 0, 0, 1, 1],  # pen
]
TRUTH: Matrix = np.array(TAXONOMY, dtype=np.int8)
NATURAL, ANIMAL, BIRD, METAL, RED = range(5)


def two_of_three(*examples: int, other: bool = False) -> Comparison:
    return Comparison(Kind.TWO_OF_THREE, examples, other_than_known=other)


@pytest.mark.parametrize(
    ("question", "columns"),
    [
        (two_of_three(1, 2, 3), [ANIMAL, RED]),
        (two_of_three(1, 1, 2), [BIRD]),
        (Comparison(Kind.PAIR, (1, 2)), [BIRD, RED]),
        (Comparison(Kind.ONE_OF_THREE, (1, 2, 3)), [BIRD]),
        (Comparison(Kind.LEFT_RIGHT, (1, 2), (3, 4)), [ANIMAL]),
        (Comparison(Kind.LEFT_RIGHT, (), (3,)), [ANIMAL, BIRD, METAL]),
        (Comparison(Kind.TAG, (4,)), [METAL, RED]),
    ],
)
def test_each_kind_of_question_is_answered_by_the_columns_that_fit_it(question: Comparison, columns: list[int]) -> None:
    assert np.flatnonzero(valid_columns(TRUTH, question)).tolist() == columns


def test_an_unknown_cell_keeps_its_column_from_answering() -> None:
    assert RED in np.flatnonzero(valid_columns(TRUTH, Comparison(Kind.PAIR, (1, 2))))
    assert RED not in np.flatnonzero(valid_columns(TRUTH, Comparison(Kind.PAIR, (0, 2))))
    assert RED not in np.flatnonzero(valid_columns(TRUTH, Comparison(Kind.LEFT_RIGHT, (4,), (0,))))


def test_a_generalist_names_the_largest_feature_and_a_specifist_the_smallest() -> None:
    question, rng = two_of_three(0, 1, 4), np.random.default_rng(0)
    assert make_crowd("generalist", TRUTH, 3).answer(question, rng) == NATURAL
    assert make_crowd("specifist", TRUTH, 3).answer(question, rng) == BIRD


def test_a_homogeneous_crowd_always_names_the_same_feature() -> None:
    truth = np.ones((3, 9), dtype=np.int8)
    truth[2] = 0
    named = set()
    for seed in range(60):
        crowd = make_crowd("homogeneous", truth, seed)
        answers = {crowd.answer(two_of_three(0, 1, 2), np.random.default_rng(i)) for i in range(5)}
        assert len(answers) == 1
        named |= answers
    assert named == set(range(9))  # another seed is another order of preference


@pytest.mark.parametrize(("kind", "power"), [("heterogeneous", 0.0), ("salience", 1.0)])
def test_random_crowds_name_features_as_often_as_their_weights_say(kind: str, power: float) -> None:
    columns, draws = 6, 4000
    truth = np.ones((3, columns), dtype=np.int8)
    truth[0] = 0
    crowd, rng = make_crowd(kind, truth, 5), np.random.default_rng(5)
    counts = np.zeros(columns)
    for _ in range(draws):
        column = crowd.answer(two_of_three(0, 1, 2), rng)
        assert column is not None
        counts[column] += 1
    weights = 1.0 / np.arange(1, columns + 1) ** power
    expected = draws * weights / weights.sum()
    found = counts[np.random.default_rng(5).permutation(columns)]
    assert ((found - expected) ** 2 / expected).sum() < 20.5  # chi-square, 5 degrees of freedom, one in a thousand


@pytest.mark.parametrize("kind", CROWDS)
def test_known_features_are_left_out_only_when_the_question_asks_for_another(kind: str) -> None:
    crowd, rng = make_crowd(kind, TRUTH, 1), np.random.default_rng(1)
    assert crowd.answer(two_of_three(1, 1, 2), rng, known={BIRD}) == BIRD
    assert crowd.answer(two_of_three(1, 1, 2, other=True), rng, known={BIRD}) is None
    assert crowd.answer(two_of_three(1, 2, 3, other=True), rng, known=[RED]) == ANIMAL


@pytest.mark.parametrize("kind", CROWDS)
def test_a_crowd_says_none_when_no_feature_fits(kind: str) -> None:
    crowd = make_crowd(kind, TRUTH, 1)
    assert crowd.answer(two_of_three(0, 0, 1), np.random.default_rng(1)) is None


def test_an_unknown_crowd_is_named_in_the_error() -> None:
    with pytest.raises(ValueError, match="unknown crowd 'loud': choose one of generalist"):
        make_crowd("loud", TRUTH, 0)


def test_a_labelling_question_is_no_comparison() -> None:
    with pytest.raises(ValueError, match="not a comparison"):
        valid_columns(TRUTH, Comparison(Kind.LABEL, (0,)))


@pytest.mark.parametrize("kind", CROWDS)
def test_several_features_are_valid_different_and_begin_with_the_one_that_is_named_alone(kind: str) -> None:
    rng = np.random.default_rng(5)
    truth = (rng.random((9, 30)) < 0.5).astype(np.int8)
    crowd = make_crowd(kind, truth, 2)
    for first in range(6):
        question = Comparison(Kind.TWO_OF_THREE, (first, first + 1, first + 2), other_than_known=True)
        alone = crowd.answer(question, np.random.default_rng(first), (3, 4))
        named = crowd.answers(question, np.random.default_rng(first), (3, 4), most=4)
        assert next(iter(named), None) == alone
        assert len(set(named)) == len(named) <= 4
        assert valid_columns(truth, question)[list(named)].all()
        assert not {3, 4} & set(named)
