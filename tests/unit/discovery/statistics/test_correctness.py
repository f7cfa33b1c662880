from __future__ import annotations

import numpy as np
import pytest

from tests.support.made_votes import annotated, made_truth
from tests.support.slow import slow
from twothirds.discovery.statistics.agreement import (
    BRIER,
    ERRORS_ALIKE,
    OF_CORRECTNESS,
    best_threshold,
    brier_columns,
    calibration,
    error_columns,
    pair_columns,
)
from twothirds.discovery.statistics.intervals import Resamples, estimates


def test_correctness_agrees_with_scikit_learn() -> None:
    from sklearn.metrics import accuracy_score, brier_score_loss, precision_score, recall_score

    rng = np.random.default_rng(0)
    truth = made_truth(rng, 200)
    said = annotated(rng, truth, [(0.8, 0.7)])[:, 0]
    totals = pair_columns(said, truth).sum(0)
    for statistic, theirs in zip(OF_CORRECTNESS, (accuracy_score, precision_score, recall_score), strict=False):
        assert float(statistic.of(totals)) == pytest.approx(theirs(truth, said))
    probability = rng.random(200)
    ours = float(BRIER.of(brier_columns(probability, truth).sum(0)))
    assert ours == pytest.approx(brier_score_loss(truth, probability))


@pytest.mark.parametrize("place", [0, *slow(*range(1, len(OF_CORRECTNESS)))])
def test_intervals_hold_the_true_rates_as_often_as_they_say(place: int) -> None:
    share, sensitivity, specificity = 0.4, 0.85, 0.8
    positive = share * sensitivity + (1 - share) * (1 - specificity)
    wanted = (
        share * sensitivity + (1 - share) * specificity,
        share * sensitivity / positive,
        sensitivity,
        specificity,
    )[place]
    statistic = OF_CORRECTNESS[place]
    held = 0
    for seed in range(300):
        rng = np.random.default_rng([seed, 4])
        truth = made_truth(rng, 160, share)
        columns = pair_columns(annotated(rng, truth, [(sensitivity, specificity)])[:, 0], truth)[:, None]
        found = estimates([statistic], columns, Resamples(160, seed, 200))[0][0][statistic.name]
        assert found.low is not None
        assert found.high is not None
        held += found.low <= wanted <= found.high
    assert 0.91 <= held / 300 <= 0.99


def test_errors_in_common_are_the_correlation_of_the_errors_of_two_votes() -> None:
    rng = np.random.default_rng(0)
    truth = (rng.random((20_000, 1)) < 0.5).astype(np.int8)

    def found(shared: float, votes: int) -> tuple[float, float]:
        """Votes that err in a fifth, a share of them together."""
        alone, together = rng.random((20_000, votes)) < 0.2, rng.random((20_000, 1)) < 0.2
        wrong = np.where(rng.random((20_000, 1)) < shared, together, alone)
        said = np.where(wrong, 1 - truth, truth).astype(np.int8)
        by_numpy = float(np.corrcoef(wrong[:, 0].astype(float), wrong[:, 1].astype(float))[0, 1])
        return float(ERRORS_ALIKE.of(error_columns(said, truth[:, 0]).sum(0))), by_numpy

    assert abs(found(0.0, 5)[0]) < 0.02
    assert found(1.0, 3)[0] == pytest.approx(1.0)
    ours, by_numpy = found(0.6, 2)
    assert ours == pytest.approx(by_numpy, abs=0.01)


def test_errors_in_common_are_not_defined_without_two_votes_or_without_errors() -> None:
    truth = np.array([1, 0, 1], np.int8)
    assert np.isnan(ERRORS_ALIKE.of(error_columns(truth[:, None], truth).sum(0)))  # one vote each
    assert np.isnan(ERRORS_ALIKE.of(error_columns(np.stack([truth, truth], 1), truth).sum(0)))  # never wrong
    unknown = np.full((3, 2), -1, np.int8)
    assert not error_columns(unknown, truth).any()


def test_calibration_tells_honest_from_boasting_probabilities() -> None:
    rng = np.random.default_rng(2)
    probability = rng.random(20_000)
    truth = (rng.random(20_000) < probability).astype(np.int8)
    honest, boasting = calibration(probability, truth), calibration(np.round(probability), truth)
    assert honest.error is not None
    assert honest.error < 0.02
    assert boasting.error == pytest.approx(0.25, abs=0.02)
    assert [one.examples for one in boasting.bins] == [int((probability < 0.5).sum()), int((probability >= 0.5).sum())]


def test_a_threshold_mends_probabilities_that_lean_to_one_side() -> None:
    rng = np.random.default_rng(3)
    truth = (rng.random((4, 60)) < 0.4).astype(np.int8)
    probability = np.clip(0.75 + 0.2 * truth + rng.normal(0, 0.07, truth.shape), 0, 1)
    found = best_threshold(probability, (probability >= 0.5).astype(np.int8), truth)
    assert found is not None
    assert 0.8 < found.value < 0.9
    assert found.now == pytest.approx(0.5, abs=0.05)
    assert found.balanced > 0.85
    assert found.is_better


def test_a_threshold_is_judged_by_examples_by_which_it_was_not_chosen() -> None:
    rng = np.random.default_rng(4)
    found = [
        best_threshold(probability, (probability >= 0.5).astype(np.int8), truth)
        for probability, truth in ((rng.random((1, 40)), rng.integers(0, 2, (1, 40), np.int8)) for _ in range(40))
    ]
    assert np.mean([threshold.balanced for threshold in found if threshold]) < 0.52  # chance; in sample 0.6


def test_votes_and_few_labels_choose_no_threshold() -> None:
    truth = np.array([[0, 1] * 30], np.int8)
    shares = np.tile(np.arange(6) / 5, 10)[None]
    assert best_threshold(shares, truth, truth) is None
    few = np.linspace(0, 1, 18)[None]
    assert best_threshold(few, truth[:, :18], truth[:, :18]) is None


def test_no_probabilities_are_no_calibration() -> None:
    nothing = calibration(np.full(5, np.nan), np.ones(5, np.int8))
    assert nothing.error is None
    assert nothing.reason
    assert not brier_columns(np.full(5, np.nan), np.ones(5, np.int8)).any()
