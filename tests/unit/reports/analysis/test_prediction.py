"""The closed form against scikit-learn, and leave-one-out against really leaving one out."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge as TheirRidge
from sklearn.linear_model import RidgeClassifier
from sklearn.preprocessing import StandardScaler

from reports.analysis.prediction import STRENGTHS, Matrix, fit_classes, fit_ridge


def data(seed: int, n: int = 40, k: int = 6) -> tuple[Matrix, Matrix]:
    rng = np.random.default_rng(seed)
    x = (rng.random((n, k)) < 0.4).astype(float)
    return x, x @ rng.normal(size=k) + rng.normal(scale=0.5, size=n)


@pytest.mark.parametrize("seed", range(5))
def test_weights_and_predictions_are_those_of_scikit_learn(seed: int) -> None:
    x, y = data(seed)
    fitted = fit_ridge(x, y[:, None], strength=3.0)
    theirs = TheirRidge(3.0).fit(StandardScaler().fit_transform(x), y)
    np.testing.assert_allclose(fitted.weights[:, 0], theirs.coef_)
    np.testing.assert_allclose(fitted.predict(x)[:, 0], theirs.predict(StandardScaler().fit_transform(x)))


@pytest.mark.parametrize("seed", range(2))
def test_the_strength_is_the_one_with_the_least_error_on_examples_left_out(seed: int) -> None:
    x, y = data(seed)
    z = StandardScaler().fit_transform(x)
    errors = []
    for strength in STRENGTHS:
        rest = [np.delete(np.arange(len(y)), row) for row in range(len(y))]
        left_out = [TheirRidge(strength).fit(z[r], y[r]).predict(z[[row]])[0] - y[row] for row, r in enumerate(rest)]
        errors.append(np.mean(np.square(left_out)))
    assert fit_ridge(x, y[:, None]).strength == STRENGTHS[int(np.argmin(errors))]


@pytest.mark.parametrize("seed", range(5))
def test_classes_are_predicted_as_by_scikit_learn_with_balanced_weights(seed: int) -> None:
    x, y = data(seed, n=60)
    labels = np.digitize(y, np.quantile(y, [0.5, 0.8])).astype(np.intp)
    fitted = fit_classes(x, labels, 3, strength=2.0)
    z = StandardScaler().fit_transform(x)
    theirs = RidgeClassifier(2.0, class_weight="balanced").fit(z, labels)
    np.testing.assert_allclose(fitted.weights.T, theirs.coef_, atol=1e-9)
    np.testing.assert_array_equal(fitted.predict(x).argmax(axis=1), theirs.predict(z))


def test_an_unknown_label_counts_as_the_mean() -> None:
    x, y = data(0)
    holed = x.copy()
    holed[3, 2] = np.nan
    filled = holed.copy()
    filled[3, 2] = np.nanmean(holed[:, 2])
    np.testing.assert_allclose(
        fit_ridge(holed, y[:, None]).predict(holed), fit_ridge(filled, y[:, None]).predict(filled)
    )


def test_a_constant_or_wholly_unknown_column_does_no_harm() -> None:
    x, y = data(0)
    x[:, 0] = 1.0
    x[:, 1] = np.nan
    fitted = fit_ridge(x, y[:, None])
    assert np.isfinite(fitted.predict(x)).all()
    assert fitted.weights[:2] == pytest.approx(0)
