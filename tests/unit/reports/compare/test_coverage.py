"""What the page says of each way to count votes: its intervals hold the long-run value as often as they say."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.made_votes import annotated, made_truth
from twothirds.discovery.statistics.intervals import Estimate, refitted
from twothirds.discovery.votes import VoteSheet
from twothirds.reports.compare.labels import Quality, qualities
from twothirds.reports.compare.study import Rater, Study, reference_of

WORKERS = [(0.95, 0.9), (0.7, 0.75), (0.6, 0.7), (0.65, 0.6), (0.9, 0.85)]
SHARE, EXAMPLES, SEEDS = 0.4, 120, 200
WAYS = {
    "one vote": lambda quality: quality.accuracy.overall["one vote"],
    "majority": lambda quality: quality.accuracy.overall["majority"],
    "Dawid-Skene": lambda quality: quality.accuracy.overall["Dawid-Skene"],
    "Brier score": lambda quality: quality.right.overall["Brier score"],
}


def measured(seed: int, n: int, draws: int) -> Quality:
    """Five people of known skill who also say how sure they are: honestly, for one who is right as often as that."""
    rng = np.random.default_rng([seed, 6])
    truth = made_truth(rng, n, SHARE)
    votes = annotated(rng, truth, WORKERS)
    sure = np.where(votes == 1, 0.8, 0.2).astype(np.float32)
    who = np.broadcast_to(np.arange(len(WORKERS), dtype=np.int32), votes.shape)
    names = tuple("abcde")
    sheet = VoteSheet(votes[None], who[None], sure[None], names, np.zeros((1, n), np.int64))
    people = Rater("people", True, {}, sheet, votes.size, votes.size, 0.0, 0.0, 0.0)
    ids = tuple(map(str, range(n)))
    study = Study("made", "", n, ids, (("it", ""),), "made", (people,), truth[None], "crowd", 0.9, seed, draws)
    return qualities(study, reference_of(study))[0]


@cache
def seeds() -> list[Quality]:
    return [measured(seed, EXAMPLES, 200) for seed in range(SEEDS)]


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_intervals_hold_the_long_run_value_as_often_as_they_say(way: str) -> None:
    found: list[Estimate] = [WAYS[way](one) for one in seeds()]
    # Dawid and Skene's estimate is better the more examples it sees: what counts is its mean at this number of them
    wanted = float(np.mean([one.value for one in found])) if way == "Dawid-Skene" else long_run(way)
    held = sum(one.low <= wanted <= one.high for one in found if one.low is not None and one.high is not None)
    assert 0.90 <= held / SEEDS <= 0.99


def long_run(way: str) -> float:
    value = WAYS[way](measured(999, 20_000, 2)).value
    assert value is not None
    return float(value)


def test_a_fit_that_varies_with_the_examples_makes_the_interval_wider() -> None:
    """A share of one half that the fit moves: the fits tell both, over 300 seeds."""
    held = narrower = 0
    for seed in range(300):
        rng = np.random.default_rng([seed, 7])
        right, moved = rng.random(EXAMPLES) < 0.5, rng.normal(0, 0.6, EXAMPLES)

        def fit(rows: NDArray[np.intp], right: Any = right, moved: Any = moved) -> NDArray[np.float64]:
            return np.array([right[rows].mean() + moved[rows].mean(), np.nan])

        [found, nothing], overall = refitted(fit(np.arange(EXAMPLES)), fit, EXAMPLES, rng)
        assert not nothing.defined
        assert overall.value == found.value
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 0.5 <= found.high
        narrower += found.high - found.low < 2 * 1.96 * np.sqrt(0.25 / EXAMPLES)
    assert 0.91 <= held / 300 <= 0.99
    assert narrower / 300 < 0.1
