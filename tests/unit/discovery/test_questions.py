"""Which labels contradict a question."""

from __future__ import annotations

import numpy as np
import pytest

from discovery import UNKNOWN, Kind, contradicts

U = UNKNOWN


@pytest.mark.parametrize(
    ("kind", "has", "lacks", "expected"),
    [
        (Kind.TWO_OF_THREE, [1, 1, 0], [], False),
        (Kind.TWO_OF_THREE, [1, 1, 1], [], True),
        (Kind.TWO_OF_THREE, [U, 1, 0], [], False),
        (Kind.TWO_OF_THREE, [U, 0, 0], [], True),
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
