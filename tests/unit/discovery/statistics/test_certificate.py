"""The certificate of several features together: however disagreements come together, and whenever one stops to look."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from twothirds.discovery.statistics import LEVELS, Promise, Shares, passes, sample_sizes

Floats = NDArray[np.float64]
PROMISE = Promise(0.95)


def shares_of(wrong: Floats, rarer: float = 0.3, lost: float = 0.0) -> Shares:
    return Shares(wrong, np.full(len(wrong), rarer), np.full(len(wrong), lost))


def scattered(rng: np.random.Generator, size: int, mean: float) -> Floats:
    """Each of 30 labels by itself."""
    return np.asarray(rng.binomial(30, mean, size) / 30)


def all_at_once(_rng: np.random.Generator, size: int, mean: float) -> Floats:
    """Every label of a few examples, and none of the others."""
    wrong = np.zeros(size)
    wrong[: round(mean * size)] = 1.0
    return wrong


def some_and_all(rng: np.random.Generator, size: int, mean: float) -> Floats:
    """A few labels of many examples, and every label of very few."""
    wrong = rng.binomial(30, mean - 0.015, size) / 30
    wrong[: round(0.015 * size)] = 1.0
    return np.asarray(wrong)


def predicted_after(wrong: Floats, promise: Promise, level: float) -> Floats | None:
    """What is not sampled when the certificate passes, sampling as long as one may; None if it never does."""
    for size in sample_sizes(promise):
        if size >= len(wrong):
            return None
        if passes(shares_of(wrong[:size]), len(wrong), 0.0, promise, level):
            return wrong[size:]
    return None


@pytest.mark.parametrize("kind", [scattered, all_at_once, some_and_all])
@pytest.mark.parametrize("mean", [0.051, 0.06])
def test_what_agrees_too_little_passes_at_most_as_often_as_is_allowed(kind: object, mean: float) -> None:
    rng, draws, broken = np.random.default_rng(0), 400, 0
    for _ in range(draws):
        wrong = kind(rng, 1_200, mean)  # type: ignore[operator]
        left = predicted_after(rng.permutation(wrong), PROMISE, PROMISE.delta)
        broken += left is not None and bool(left.mean() > 1 - PROMISE.agree)
    allowed = PROMISE.delta * draws
    assert broken <= allowed + 2.5 * np.sqrt(allowed)


def test_what_agrees_well_passes_with_the_first_looks() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        left = predicted_after(scattered(rng, 2_000, 0.008), PROMISE, LEVELS[0] * PROMISE.delta)
        assert left is not None
        assert len(left) >= 2_000 - sample_sizes(PROMISE)[2]


def test_always_predicting_the_commoner_answer_does_not_pass() -> None:
    """It disagrees as rarely as the other answer is given, and loses all of it."""
    rng = np.random.default_rng(0)
    wrong = scattered(rng, 2_000, 0.02)
    lost = Shares(wrong[:700], wrong[:700], wrong[:700])
    assert not passes(lost, 2_000, 0.0, PROMISE, 0.05)
    kept = Shares(wrong[:700], 5 * wrong[:700], wrong[:700])
    assert passes(kept, 2_000, 0.0, PROMISE, 0.05)


def test_what_the_oracle_does_not_answer_disagrees() -> None:
    said = np.array([[-1, 1], [0, 1]], np.int8)
    shares = Shares.of(said, np.array([[False, True], [False, False]]), np.array([1, 1], np.int8))
    assert shares.wrong.tolist() == [0.5, 0.5]
    assert shares.rarer.tolist() == [0.5, 0.5]
    assert shares.lost.tolist() == [0.0, 0.5]


def test_the_level_is_shared_by_what_may_be_tried() -> None:
    assert sum(LEVELS) == pytest.approx(1.0)
