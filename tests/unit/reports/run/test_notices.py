"""What a run says of its answers before anybody believes the rest."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.run_folders import summary_of

SETTINGS = {"dataset": "d.csv", "oracle": "simulated", "queries": 20, "votes": 1, "seed": 0}


@pytest.mark.parametrize(
    ("strategy", "repeated", "said"), [("auto", 5, True), ("auto", 4, False), ("adaptive-triple", 9, False)]
)
def test_a_list_of_known_features_that_is_not_heeded_is_said_with_the_remedy(
    strategy: str, repeated: int, said: bool
) -> None:
    """`auto` needs the list; 5 of 15 names are more than 30 %, 4 of 14 are not."""
    matrix = np.random.default_rng(0).integers(0, 2, (10, 30)).astype(np.int8)
    names = [f"e{number}" for number in range(30)]
    settings = SETTINGS | {"strategy": strategy}
    notices = summary_of("d.csv", names, matrix, 20, settings=settings, repeated_names=repeated).notices
    assert [line for line in notices if "--strategy adaptive-triple" in line] == notices
    assert bool(notices) is said
    if said:
        assert notices[0].startswith("5 of 15 names that came back were known already")
