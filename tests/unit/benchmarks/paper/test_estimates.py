from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.paper.estimates import mean, median, number, percent, proportion, ratio, standard_error, with_interval


@pytest.mark.parametrize("share", [0.02, 0.3, 0.5, 0.97])
def test_the_interval_of_a_share_covers_the_truth_about_19_times_in_20(share: float) -> None:
    rng = np.random.default_rng(1)
    drawn = [proportion(int(hits), 60) for hits in rng.binomial(60, share, size=2000)]
    covered = np.mean([estimate.low <= share <= estimate.high for estimate in drawn])
    assert 0.92 <= covered <= 0.99


def test_a_share_of_none_or_all_still_has_an_interval() -> None:
    assert proportion(0, 50).low == 0
    assert 0.05 < proportion(0, 50).high < 0.1
    assert proportion(50, 50).high == 1
    assert math.isnan(proportion(0, 0).value)


def test_the_interval_of_a_median_covers_it_and_may_be_infinite() -> None:
    rng = np.random.default_rng(2)
    drawn = [median(rng.exponential(size=41).tolist()) for _ in range(1000)]
    covered = np.mean([estimate.low <= math.log(2) <= estimate.high for estimate in drawn])
    assert 0.92 <= covered <= 0.99
    assert median([1, 2, math.inf, math.inf]).value == math.inf
    assert with_interval(median([math.inf] * 5)) == "never [never, never]"


def test_a_mean_has_the_interval_of_its_standard_error() -> None:
    estimate = mean([1.0, 2.0, 3.0, 4.0])
    assert estimate.value == 2.5
    assert estimate.high - estimate.value == pytest.approx(1.959964 * standard_error([1.0, 2.0, 3.0, 4.0]))


def test_a_ratio_of_equal_samples_is_one_and_one_of_nothing_is_unknown() -> None:
    estimate = ratio([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    assert estimate.low < 1 == estimate.value < estimate.high
    assert math.isnan(ratio([1.0, 2.0], [0.0, 0.0]).value)


@pytest.mark.parametrize(
    ("value", "written"),
    [(83534.2, "83,534"), (275.5, "275.5"), (35, "35"), (12.34, "12.3"), (0.0833, "0.083"), (1.5e-4, "1.5e-04")],
)
def test_numbers_have_three_or_four_digits(value: float, written: str) -> None:
    assert number(value) == written


def test_a_share_is_written_in_percent() -> None:
    assert percent(proportion(1, 2)) == "50.0 % [9.5, 90.5]"
