from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, r2_score

from twothirds.reports.analysis.prediction import Matrix, Target, interval_of, out_of_fold, score_of


def world(seed: int, n: int = 120) -> tuple[Matrix, Matrix]:
    rng = np.random.default_rng(seed)
    x = (rng.random((n, 8)) < 0.4).astype(float)
    return x, 2 * x[:, 0] - x[:, 3] + rng.normal(scale=0.4, size=n)


def test_a_target_that_the_features_explain_is_predicted_on_examples_never_seen() -> None:
    x, y = world(0)
    assert score_of(out_of_fold(x, Target(y), 0), Target(y)) > 0.7
    classes = Target((y > np.median(y)).astype(np.intp), ("low", "high"))
    assert score_of(out_of_fold(x, classes, 0), classes) > 0.8


def test_a_target_that_they_do_not_explain_scores_like_chance() -> None:
    x, _ = world(0)
    rng = np.random.default_rng(1)
    scores = []
    for seed in range(20):
        classes = Target(rng.permutation(np.arange(120) % 3).astype(np.intp), ("a", "b", "c"))
        scores.append(score_of(out_of_fold(x, classes, seed), classes))
    assert np.mean(scores) == pytest.approx(1 / 3, abs=0.05)


def test_scores_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    truth, predicted = rng.integers(3, size=50), rng.integers(3, size=50)
    right = (truth == predicted).astype(float)
    target = Target(truth.astype(np.intp), ("a", "b", "c"))
    assert score_of(right, target) == pytest.approx(balanced_accuracy_score(truth, predicted))
    y, guess = rng.normal(size=50), rng.normal(size=50)
    assert score_of((y - guess) ** 2, Target(y)) == pytest.approx(r2_score(y, guess))


def test_intervals_hold_the_score_and_shrink_with_more_examples() -> None:
    widths = []
    for n in (60, 600):
        x, y = world(3, n)
        target = Target((y > 0.5).astype(np.intp), ("no", "yes"))
        estimate = interval_of(out_of_fold(x, target, 0), target, 0)
        assert estimate.low <= estimate.value <= estimate.high
        widths.append(estimate.high - estimate.low)
    assert widths[1] < widths[0] / 2


def test_a_rare_class_counts_as_much_as_a_common_one() -> None:
    target = Target(np.array([0] * 95 + [1] * 5, np.intp), ("common", "rare"))
    always_common = (target.values == 0).astype(float)
    assert score_of(always_common, target) == pytest.approx(0.5)
