"""The alternative annotator test against a second implementation with scipy, and its behaviour on made annotators."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.made_votes import annotated, made_truth
from twothirds.discovery.statistics.alt_test import EPSILON, alt_test


def second_implementation(model: NDArray[np.int8], votes: NDArray[np.int8], epsilon: float) -> tuple[float, float]:
    """Word by word from the paper: loops, scipy's t-test and scipy's Benjamini-Yekutieli."""
    from scipy.stats import false_discovery_control, ttest_1samp

    p_values, advantages = [], []
    for left_out in range(votes.shape[1]):
        wins, losses = [], []
        for row, label in zip(votes, model, strict=True):
            others = [vote for place, vote in enumerate(row) if place != left_out and vote >= 0]
            if row[left_out] < 0 or label < 0 or not others:
                continue
            model_score = sum(vote == label for vote in others) / len(others)
            person_score = sum(vote == row[left_out] for vote in others) / len(others)
            wins.append(model_score >= person_score)
            losses.append(person_score >= model_score)
        if len(wins) >= 30:
            difference = np.array(losses, float) - np.array(wins, float)
            p_values.append(float(ttest_1samp(difference, epsilon, alternative="less").pvalue))
            advantages.append(np.mean(wins))
    rejected = false_discovery_control(p_values, method="by") <= 0.05
    return float(np.mean(rejected)), float(np.mean(advantages))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("epsilon", EPSILON.values())
def test_it_agrees_with_a_second_implementation(seed: int, epsilon: float) -> None:
    rng = np.random.default_rng(seed)
    truth = made_truth(rng, 90)
    votes = annotated(rng, truth, [(0.8, 0.8), (0.7, 0.9), (0.9, 0.7), (0.75, 0.75), (0.6, 0.9)], missing=0.15)
    model = annotated(rng, truth, [(0.8, 0.85)], missing=0.05)[:, 0]
    found = alt_test(model, votes, tuple("abcde"), epsilon)
    winning_rate, advantage = second_implementation(model, votes, epsilon)
    assert found.winning_rate == pytest.approx(winning_rate, abs=1e-12)
    assert found.advantage == pytest.approx(advantage, abs=1e-12)


def test_a_model_as_good_as_the_people_passes_and_a_coin_fails() -> None:
    passed = {"same": 0, "coin": 0}
    for seed in range(40):
        rng = np.random.default_rng([seed, 7])
        truth = made_truth(rng, 150)
        votes = annotated(rng, truth, [(0.85, 0.85)] * 4)
        for name, rates in (("same", (0.85, 0.85)), ("coin", (0.5, 0.5))):
            model = annotated(rng, truth, [rates])[:, 0]
            passed[name] += bool(alt_test(model, votes, tuple("abcd"), 0.2).passes)
    assert passed["same"] >= 38
    assert passed["coin"] == 0


def test_false_wins_stay_below_the_level() -> None:
    """A model that is behind every person by just ε: the share of tests that it wins nevertheless is at most 5 %."""
    wins = 0
    for seed in range(200):
        rng = np.random.default_rng([seed, 8])
        truth = made_truth(rng, 200, 0.5)
        people = np.repeat(truth[:, None], 3, axis=1)  # who never err: the person's advantage is the model's error rate
        model = annotated(rng, truth, [(0.8, 0.8)])[:, 0]
        wins += bool(alt_test(model, people, tuple("abc"), 0.2).passes)
    assert wins / 200 <= 0.06


def test_it_says_why_there_is_no_result() -> None:
    rng = np.random.default_rng(0)
    truth = made_truth(rng, 40)
    votes = annotated(rng, truth, [(0.9, 0.9)] * 3)
    nothing = np.full(40, -1, np.int8)
    assert alt_test(nothing, votes, tuple("abc"), 0.1).reason == "the model gave no label"
    assert alt_test(truth, votes[:, :1], ("a",), 0.1).reason == "no example has the labels of two people"
    few = alt_test(truth[:20], votes[:20], tuple("abc"), 0.1)
    assert few.passes is None
    assert few.winning_rate is None
    assert "most: 20" in few.reason


def test_people_who_never_differ_are_no_warning() -> None:
    truth = made_truth(np.random.default_rng(1), 50)
    found = alt_test(truth, np.repeat(truth[:, None], 3, axis=1), tuple("abc"), 0.1)
    assert found.winning_rate == 1
    assert found.advantage == 1
