from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import r2_score, roc_auc_score

from twothirds.reports.analysis.held_out import HELD_OUT, held_out_rows, score_held_out
from twothirds.reports.analysis.prediction import Target, ranking_score

LEVEL = 0.05


def world(seed: int, n: int = 160, features: int = 12, noise: float = 0.1) -> tuple[np.ndarray, Target]:
    rng = np.random.default_rng(seed)
    labels = (rng.random((n, features)) < 0.4).astype(np.float64)
    flips = rng.random(n) < noise
    return labels, Target(((labels[:, 2] == 1) ^ flips).astype(np.intp), ("no", "yes"))


def test_the_score_of_classes_is_the_area_under_the_curve_and_of_numbers_r_squared() -> None:
    rng = np.random.default_rng(1)
    decided, values = rng.normal(size=(50, 1)), rng.integers(0, 2, 50)
    both = np.hstack([-decided, decided])
    assert ranking_score(both, Target(values, ("a", "b"))) == pytest.approx(roc_auc_score(values, decided[:, 0]))
    numbers = rng.normal(size=50)
    assert ranking_score(decided, Target(numbers)) == pytest.approx(r2_score(numbers, decided[:, 0]))
    three = rng.integers(0, 3, 50)
    each = rng.random((50, 3))
    shares = each / each.sum(axis=1, keepdims=True)
    one_by_one = np.mean([roc_auc_score(three == place, each[:, place]) for place in range(3)])
    assert ranking_score(each, Target(three, ("a", "b", "c"))) == pytest.approx(one_by_one)
    assert roc_auc_score(three, shares, multi_class="ovr") > 0  # the same definition, on shares


def test_the_score_rises_when_the_feature_behind_the_target_is_found() -> None:
    labels, target = world(3)
    test = held_out_rows([str(row) for row in range(160)], 0)
    scored = score_held_out(labels, [3 * order + 1 for order in range(12)], 36, target, test)
    assert len(scored.curve) == len(scored.random) == len(scored.shuffled) == 36
    assert max(scored.curve[:6]) < 0.7 < 0.8 < min(scored.curve[6:])  # feature 2 is found by question 7
    assert max(scored.shuffled) < 0.65
    assert max(scored.random) < 0.65
    assert scored.p <= LEVEL
    assert scored.trained_on + scored.held_out == 160


def test_on_a_target_that_nothing_predicts_false_findings_are_as_rare_as_stated() -> None:
    found = 0
    for seed in range(60):
        labels, _ = world(seed, features=6)
        target = Target(np.random.default_rng([seed, 1]).integers(0, 2, 160), ("no", "yes"))
        test = held_out_rows([str(row) for row in range(160)], seed)
        found += score_held_out(labels, [1] * 6, 1, target, test).p <= LEVEL
    assert found <= 8  # 3 of 60 are expected at LEVEL; P(more than 8) is 0.2 %


def test_without_features_nothing_is_predicted() -> None:
    _, target = world(4)
    scored = score_held_out(np.empty((160, 0)), [], 5, target, held_out_rows([str(row) for row in range(160)], 0))
    assert (scored.score, scored.p) == (0.5, 1.0)
    assert scored.curve == [0.5] * 5


def test_examples_are_held_out_by_id_by_group_or_by_time() -> None:
    ids = [f"e{number}" for number in range(2_000)]
    by_id = held_out_rows(ids, 7)
    assert by_id.mean() == pytest.approx(HELD_OUT, abs=0.04)
    assert (held_out_rows(ids[::-1], 7)[::-1] == by_id).all()
    groups = np.array([f"g{number % 40}" for number in range(2_000)])
    by_group = held_out_rows(ids, 7, groups)
    assert all(len(set(by_group[groups == name])) == 1 for name in set(groups))
    times = np.arange(2_000, dtype=np.float64)
    assert (np.flatnonzero(held_out_rows(ids, 7, times)) == np.arange(1_500, 2_000)).all()
