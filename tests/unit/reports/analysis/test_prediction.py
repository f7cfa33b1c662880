"""Fits by scikit-learn as reports use them: weights per class, unknown labels, columns that say nothing."""

from __future__ import annotations

import numpy as np
import pytest

from twothirds.reports.analysis.prediction import STRENGTHS, Matrix, Target, fit_linear, out_of_fold


def data(seed: int, n: int = 40, k: int = 6) -> tuple[Matrix, Matrix]:
    rng = np.random.default_rng(seed)
    x = (rng.random((n, k)) < 0.4).astype(float)
    return x, x @ rng.normal(size=k) + rng.normal(scale=0.5, size=n)


@pytest.mark.parametrize("classes", [2, 3])
def test_each_class_has_weights_that_point_to_it(classes: int) -> None:
    x, y = data(0, n=60)
    labels = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes)).astype(np.intp)
    fitted = fit_linear(x, Target(labels, tuple("abc"[:classes])))
    assert fitted.weights.shape == (6, classes)
    assert fitted.strength in STRENGTHS
    scores = (x - x.mean(axis=0)) / x.std(axis=0) @ fitted.weights
    assert (scores.argmax(axis=1) == labels).mean() > 0.6


def test_a_given_strength_is_used() -> None:
    x, y = data(0)
    weak, strong = (fit_linear(x, Target(y), strength) for strength in (0.1, 1000.0))
    assert np.abs(strong.weights).sum() < np.abs(weak.weights).sum() / 2
    assert strong.strength == 1000.0


def test_an_unknown_label_counts_as_the_mean() -> None:
    x, y = data(0)
    holed = x.copy()
    holed[3, 2] = np.nan
    filled = holed.copy()
    filled[3, 2] = np.nanmean(holed[:, 2])
    np.testing.assert_allclose(fit_linear(holed, Target(y)).weights, fit_linear(filled, Target(y)).weights)


def test_a_constant_or_wholly_unknown_column_does_no_harm() -> None:
    x, y = data(0)
    x[:, 0] = 1.0
    x[:, 1] = np.nan
    assert np.isfinite(out_of_fold(x, Target(y), 0)).all()
    assert fit_linear(x, Target(y)).weights[:2] == pytest.approx(0)


def test_a_class_of_one_example_is_no_obstacle() -> None:
    x, y = data(0)
    labels = (y > np.median(y)).astype(np.intp)
    labels[0] = 2
    assert set(out_of_fold(x, Target(labels, ("a", "b", "c")), 0)) == {0.0, 1.0}
