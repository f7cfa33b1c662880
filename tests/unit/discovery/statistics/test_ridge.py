from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from twothirds.discovery.statistics.ridge import STRENGTHS, fit_ridge


def test_residuals_are_those_of_fits_that_leave_the_example_out() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, 2, (25, 4)).astype(float), rng.normal(size=(25, 1))
    scaled = (x - x.mean(axis=0)) / x.std(axis=0)
    residuals = fit_ridge(x, y).left_out

    def left_out(strength: float, row: int) -> float:
        others = np.arange(25) != row
        design = np.hstack([np.ones((24, 1)), scaled[others]])
        penalty = np.diag([0.0, *[strength] * 4])
        weights = np.linalg.solve(design.T @ design + penalty, design.T @ y[others])
        return float(y[row, 0] - np.r_[1.0, scaled[row]] @ weights[:, 0])

    by_strength = {s: [left_out(s, row) for row in range(25)] for s in STRENGTHS}
    best = min(by_strength.values(), key=lambda values: sum(value**2 for value in values))
    assert residuals[:, 0] == pytest.approx(best, abs=1e-9)


def test_predictions_are_those_of_scikit_learn_at_one_of_the_strengths() -> None:
    rng = np.random.default_rng(2)
    x, y = rng.integers(0, 2, (40, 5)).astype(float), rng.normal(size=(40, 2))
    scaled = (x - x.mean(axis=0)) / x.std(axis=0)
    ours = fit_ridge(x, y).predict(x)
    theirs = [Ridge(strength).fit(scaled, y).predict(scaled) for strength in STRENGTHS]
    assert min(np.abs(ours - one).max() for one in theirs) < 1e-9


def test_an_unknown_cell_counts_as_the_mean_and_without_columns_the_mean_is_predicted() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.integers(0, 2, (30, 3)).astype(float), rng.normal(size=(30, 1))
    fit = fit_ridge(x, y)
    asked = np.array([[np.nan, 1.0, 0.0]])
    assert fit.predict(asked) == pytest.approx(fit.predict(np.array([[x[:, 0].mean(), 1.0, 0.0]])))
    nothing = fit_ridge(np.empty((30, 0)), y)
    assert nothing.predict(np.empty((2, 0))) == pytest.approx(np.full((2, 1), y.mean()))
    assert nothing.left_out[0, 0] == pytest.approx(y[0, 0] - y[1:].mean())
