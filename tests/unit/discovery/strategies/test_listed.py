"""Questions from a list: in its order, and not those that are settled."""

from __future__ import annotations

import numpy as np
import pytest

from twothirds.discovery.questions import Comparison, Kind, StrategyError
from twothirds.discovery.strategies import Listed

FIRST = Comparison(Kind.LEFT_RIGHT, (0, 1), (2, 3))
SECOND = Comparison(Kind.TWO_OF_THREE, (0, 1, 4))
THIRD = Comparison(Kind.PAIR, (2, 3))
HAT = np.array([1, 1, 0, 0, 0, -1], np.int8)  # settles the first and the second


def test_they_come_in_the_order_of_the_list_and_each_once() -> None:
    listed = Listed([FIRST, SECOND, FIRST, THIRD])
    assert len(listed) == 3
    assert listed.next_questions(2) == [FIRST, SECOND]
    assert listed.unresolved == pytest.approx(1 / 3)
    assert listed.next_questions(2) == [THIRD]
    assert listed.next_questions(2) == []


def test_what_a_known_feature_settles_is_not_asked() -> None:
    listed = Listed([FIRST, SECOND, THIRD])
    asked = listed.next_questions(1)
    listed.learn(asked[0], ["hat"], [HAT])
    assert listed.next_questions(5) == [THIRD]
    assert listed.unresolved == 0


def test_on_request_it_is_asked_when_nothing_else_is_left() -> None:
    listed = Listed([FIRST, SECOND, THIRD], beyond=True)
    listed.know("hat", HAT)
    assert listed.next_questions(2) == [THIRD, FIRST]
    assert listed.next_questions(2) == [SECOND]
    assert listed.next_questions(2) == []


def test_an_answer_that_is_none_settles_nothing_else() -> None:
    listed = Listed([FIRST, SECOND])
    listed.learn(listed.next_questions(1)[0], [], [])
    assert listed.next_questions(5) == [SECOND]


def test_no_question_is_an_error() -> None:
    with pytest.raises(StrategyError, match="no recorded comparison of these examples"):
        Listed([])
