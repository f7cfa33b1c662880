"""Which labels contradict a question."""

from __future__ import annotations

import numpy as np
import pytest

from twothirds.discovery import UNKNOWN, Comparison, Kind, contradicts, valid_columns

U = UNKNOWN


@pytest.mark.parametrize(
    ("kind", "has", "lacks", "expected"),
    [
        (Kind.TWO_OF_THREE, [1, 1, 0], [], False),
        (Kind.TWO_OF_THREE, [1, 1, 1], [], True),
        (Kind.TWO_OF_THREE, [U, 1, 0], [], False),
        (Kind.TWO_OF_THREE, [U, 0, 0], [], True),
        (Kind.SHARED, [1, 1, 0, 0], [], False),
        (Kind.SHARED, [1, 1, 1, 0], [], False),
        (Kind.SHARED, [1, 1, 1, U], [], False),
        (Kind.SHARED, [1, 1, 1, 1], [], True),
        (Kind.SHARED, [1, 0, 0, U], [], False),
        (Kind.SHARED, [1, 0, 0, 0], [], True),
        (Kind.ONE_OR_TWO, [1, 0, 0], [], False),
        (Kind.ONE_OR_TWO, [1, 1, 0], [], False),
        (Kind.ONE_OR_TWO, [1, 1, 1], [], True),
        (Kind.ONE_OR_TWO, [0, 0, 0], [], True),
        (Kind.PAIR, [U, U], [], False),
        (Kind.PAIR, [0, 0], [], True),
        (Kind.LEFT_RIGHT, [1, 1], [0, U], False),
        (Kind.LEFT_RIGHT, [1, U], [0, 1], True),
        (Kind.TAG, [U], [], False),
        (Kind.TAG, [0], [], True),
        (Kind.GROUPS, [1, 1, 1, 1], [0, 0, 0, 0], False),
        (Kind.GROUPS, [1, 1, 0, 0], [0, 0, 1, 1], True),
        (Kind.GROUPS, [1, 1, 0, U], [0, 0, 1, 1], False),
    ],
)
def test_a_missing_label_contradicts_nothing_and_known_ones_may_all_the_same(
    kind: Kind, has: list[int], lacks: list[int], expected: bool
) -> None:
    assert contradicts(kind, np.array(has, np.int8), np.array(lacks, np.int8)) is expected


COUNTED = [Kind.TWO_OF_THREE, Kind.SHARED, Kind.ONE_OR_TWO, Kind.PAIR, Kind.ONE_OF_THREE, Kind.TAG]


@pytest.mark.parametrize("kind", COUNTED)
def test_what_answers_a_question_is_what_does_not_contradict_it(kind: Kind) -> None:
    truth = np.random.default_rng(0).integers(0, 2, (6, 40)).astype(np.int8)
    shown = {Kind.SHARED: 5, Kind.PAIR: 2, Kind.TAG: 1}.get(kind, 3)
    question = Comparison(kind, tuple(range(shown)))
    nothing = np.zeros(0, np.int8)
    expected = [not contradicts(kind, truth[:shown, column], nothing) for column in range(40)]
    assert valid_columns(truth, question).tolist() == expected
    assert 0 < sum(expected) < 40
