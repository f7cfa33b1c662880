from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, false_discovery_control

from twothirds.discovery.statistics.intervals import wilson
from twothirds.reports.analysis.groups import compare_runs, holm, newcombe
from twothirds.reports.run.answers import VoteCounts
from twothirds.reports.run.files import RunError
from twothirds.reports.run.findings import Findings, FoundFeature


@given(st.integers(1, 200), st.data())
def test_the_interval_of_a_share_is_that_of_scipy(trials: int, draw: st.DataObject) -> None:
    successes = draw.draw(st.integers(0, trials))
    theirs = binomtest(successes, trials).proportion_ci(method="wilson")
    assert wilson(successes, trials) == pytest.approx((theirs.low, theirs.high), abs=1e-6)


def test_the_interval_of_a_difference_is_the_published_one() -> None:
    # Newcombe 1998, table II, example (a): 56/70 - 48/80 by method 10.
    assert newcombe(56, 70, 48, 80) == pytest.approx((0.0524, 0.3339), abs=5e-5)


def test_intervals_cover_the_true_difference_about_as_often_as_they_say() -> None:
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(2_000):
        a, b = int(rng.binomial(40, 0.3)), int(rng.binomial(60, 0.55))
        low, high = newcombe(a, 40, b, 60)
        covered += low <= 0.3 - 0.55 <= high
    assert 0.93 <= covered / 2_000 <= 0.975


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_corrected_values_are_never_smaller_and_keep_their_order(p: list[float]) -> None:
    corrected = holm(p)
    assert all(after >= before for before, after in zip(p, corrected, strict=True))
    by_p = [corrected[place] for place in np.argsort(p)]
    assert by_p == sorted(by_p)
    assert min(corrected) == pytest.approx(min(1.0, min(p) * len(p)))
    # Holm is never milder than Benjamini-Hochberg, which promises less.
    assert all(ours >= theirs - 1e-12 for ours, theirs in zip(corrected, false_discovery_control(p), strict=True))


def findings_of(**labels: list[int]) -> Findings:
    found = [
        FoundFeature(name, "", np.array(row, np.int8), VoteCounts.empty(len(row)), None, True, "two-of-three", "")
        for name, row in labels.items()
    ]
    n = len(next(iter(labels.values())))
    return Findings([f"e{row}" for row in range(n)], found, [], {}, np.ones(n, np.bool_))


def test_two_data_sets_are_compared_by_the_features_they_have_in_common() -> None:
    one = findings_of(glasses=[1] * 30 + [0] * 10, beard=[1, 0] * 20)
    other = findings_of(**{"wears glasses": [1] * 5 + [0] * 35, "hat": [1, 0] * 20})
    result = compare_runs(one, "old", other, "new")
    assert [difference.name for difference in result.differences] == ["glasses"]
    assert result.differences[0].differs
    assert result.differences[0].difference == pytest.approx(0.75 - 0.125)


def test_data_sets_without_a_common_feature_cannot_be_compared() -> None:
    with pytest.raises(RunError, match="no feature in common"):
        compare_runs(findings_of(a=[1, 0, 1]), "old", findings_of(b=[1, 0, 1]), "new")
