"""Which phrase answers a comparison best."""

from __future__ import annotations

import numpy as np
import pytest

from twothirds.discovery.questions import Kind, possible_counts
from twothirds.models.contrastive.oracle import best_between, best_fit, best_shared, patterns_of
from twothirds.models.oracle import Compare
from twothirds.sources.dataset import Example

FIVE = tuple(Example(str(number), str(number), image=f"{number}.png") for number in range(5))
SURE = 6.0


def test_each_kind_of_comparison_has_its_ways_to_be_answered() -> None:
    def ways(kind: Kind, shown: int, without: int = 0) -> list[list[int]]:
        rows = patterns_of(Compare(kind, FIVE[:shown], FIVE[shown : shown + without]))
        return [[int(has) for has in row] for row in rows]

    assert ways(Kind.TWO_OF_THREE, 3) == [[1, 1, 0], [1, 0, 1], [0, 1, 1]]
    assert ways(Kind.ONE_OR_TWO, 3) == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1], [0, 1, 1]]
    assert ways(Kind.PAIR, 2) == [[1, 0], [0, 1]]
    assert ways(Kind.ONE_OF_THREE, 3) == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert ways(Kind.LEFT_RIGHT, 2, 3) == [[1, 1, 0, 0, 0]]
    assert ways(Kind.TAG, 1) == [[1]]


def test_the_phrase_with_the_largest_margin_wins() -> None:
    question = Compare(Kind.TWO_OF_THREE, FIVE[:3])
    logits = np.array([[SURE, 1.0], [-SURE, 1.0], [SURE, -1.0]])
    fit = best_fit(logits, patterns_of(question), np.array([True, True]))
    assert fit is not None
    assert (fit.phrase, fit.shown) == (0, (0, 2))
    assert fit.probability == pytest.approx((1 / (1 + np.exp(-SURE))) ** 3)


def test_of_several_examples_the_phrase_wins_that_surely_some_share_and_some_lack() -> None:
    logits = np.array([[SURE, 0.5, SURE], [SURE, 0.5, SURE], [SURE, -0.5, -SURE], [SURE, -0.5, -SURE]])
    wanted = possible_counts(Kind.SHARED, 4)
    fit = best_shared(logits, wanted, np.array([True, True, True]))
    assert fit is not None
    assert (fit.phrase, fit.shown) == (2, (0, 1))
    assert fit.probability > 0.99
    unsure = best_shared(logits, wanted, np.array([True, True, False]))
    assert unsure is not None
    likely = 1 / (1 + np.exp(-logits[:, 1]))
    none, every = np.prod(1 - likely), np.prod(likely)
    one = none * (likely / (1 - likely)).sum()
    assert unsure.probability == pytest.approx(1 - none - one - every)
    assert best_shared(logits, wanted, np.array([True, False, False])) is None, "all have it"


def test_a_phrase_that_is_not_allowed_never_wins() -> None:
    question = Compare(Kind.PAIR, FIVE[:2])
    logits = np.array([[SURE, 1.0], [-SURE, -1.0]])
    fit = best_fit(logits, patterns_of(question), np.array([False, True]))
    assert fit is not None
    assert fit.phrase == 1
    assert best_fit(logits, patterns_of(question), np.array([False, False])) is None


def test_a_phrase_that_all_three_have_fits_badly() -> None:
    fit = best_fit(np.full((3, 1), SURE), patterns_of(Compare(Kind.TWO_OF_THREE, FIVE[:3])), np.array([True]))
    assert fit is not None
    assert fit.probability < 0.01


def test_extreme_certainty_does_not_overflow() -> None:
    logits = np.array([[900.0], [900.0], [-900.0]])
    fit = best_fit(logits, patterns_of(Compare(Kind.TWO_OF_THREE, FIVE[:3])), np.array([True]))
    assert fit is not None
    assert fit.probability == 1.0


def test_between_groups_the_phrase_with_the_largest_difference_wins_if_it_is_clear() -> None:
    logits = np.full((16, 3), -SURE)
    logits[:3, 0] = logits[8:14, 1] = logits[:8, 2] = SURE
    fit = best_between(logits, 8, np.array([True, True, False]))
    assert fit is not None
    assert (fit.phrase, fit.shown) == (1, (8, 9, 10, 11, 12, 13))
    assert fit.probability > 0.99
    assert best_between(logits[:, :1] * [[1.0]] * np.r_[1, 1, -np.ones(14)][:, None], 8, np.array([True])) is None
    assert best_between(logits, 8, np.array([False] * 3)) is None
