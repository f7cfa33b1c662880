from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from twothirds.discovery.statistics.escalation import (
    Side,
    alone,
    chance_of_right,
    cheapest,
    enough,
    escalated,
    frontier,
    odd_numbers,
)


@pytest.mark.parametrize("drawn", [1, 2, 3, 5])
def test_the_chance_of_a_majority_equals_counting_every_draw(drawn: int) -> None:
    votes = np.array([[1, 1, 0, 0, 1], [0, 0, 0, 0, 1], [1, -1, 0, -1, -1]], np.int8)
    truth = np.array([1, 1, 0], np.int8)
    for row, label, ours in zip(votes, truth, chance_of_right(votes, truth, drawn), strict=True):
        cast = [vote for vote in row if vote >= 0]
        draws = list(combinations(cast, min(drawn, len(cast))))
        worth = [np.sign(2 * sum(vote == label for vote in draw) - len(draw)) / 2 + 0.5 for draw in draws]
        assert ours == pytest.approx(np.mean(worth))


def test_unknown_truth_and_no_votes_have_no_chance() -> None:
    chances = chance_of_right(np.array([[-1, -1], [1, 0]], np.int8), np.array([1, -1], np.int8), 1)
    assert np.isnan(chances).all()


def test_numbers_of_votes_are_odd_and_all() -> None:
    assert odd_numbers(6) == [1, 3, 5, 6]
    assert odd_numbers(0) == []
    assert enough({1: 0.7, 3: 0.88, 5: 0.893, 7: 0.895}) == 5
    assert enough({}) is None


@pytest.fixture
def sides() -> tuple[Side, Side, np.ndarray]:
    """A model that knows when it does not know: right where it is sure, a coin where it is in doubt."""
    doubt = np.repeat([0.0, 0.5], [80, 20])
    return (
        Side("model", {1: np.where(doubt == 0, 0.99, 0.5)}, 0.001),
        Side("people", {1: np.full(100, 0.9), 3: np.full(100, 0.972)}, 0.1),
        doubt,
    )


def test_asking_people_only_in_doubt_is_cheaper_than_people_alone(sides: tuple[Side, Side, np.ndarray]) -> None:
    model, people, doubt = sides
    settings = [*alone(model, "model"), *alone(people, "people"), *escalated(model, 1, people, doubt, "uncertainty")]
    best = cheapest(settings, 0.97)
    assert best is not None
    assert best.kind == "uncertainty"
    assert best.escalated == pytest.approx(0.2)
    assert best.cost == pytest.approx(0.001 + 0.2 * 0.1)
    assert best.accuracy == pytest.approx(0.8 * 0.99 + 0.2 * 0.9)
    assert cheapest(settings, 0.999) is None
    accuracies = [one.accuracy for one in frontier(settings)]
    assert accuracies == sorted(accuracies)
    assert {one.kind for one in frontier(settings)} == {"model", "uncertainty"}


def test_a_model_that_is_never_in_doubt_can_still_hand_everything_over(sides: tuple[Side, Side, np.ndarray]) -> None:
    model, people, _ = sides
    settings = escalated(model, 1, people, np.zeros(100), "uncertainty")
    assert {one.escalated for one in settings} == {1.0}
