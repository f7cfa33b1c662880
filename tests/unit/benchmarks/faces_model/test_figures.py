"""The figures of the model card are what their names say."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.faces_model.evaluate import balanced_accuracy, calibration_error


def test_balanced_accuracy_is_that_of_scikit_learn() -> None:
    from sklearn.metrics import balanced_accuracy_score

    rng = np.random.default_rng(1)
    truth, predicted = rng.random((60, 7)) < 0.3, rng.random((60, 7)) < 0.5
    expected = [balanced_accuracy_score(truth[:, column], predicted[:, column]) for column in range(7)]
    assert balanced_accuracy(predicted, truth) == pytest.approx(expected)


def test_a_phrase_that_is_always_true_counts_its_hits_only() -> None:
    assert balanced_accuracy(np.array([[True], [False]]), np.array([[True], [True]])) == pytest.approx([0.5])


def test_honest_probabilities_are_calibrated_and_boasting_ones_are_not() -> None:
    rng = np.random.default_rng(2)
    honest = rng.random((4000, 5))
    truth = rng.random((4000, 5)) < honest
    assert calibration_error(honest, truth) < 0.02
    assert calibration_error((honest > 0.5).astype(float), truth) == pytest.approx(0.25, abs=0.02)
