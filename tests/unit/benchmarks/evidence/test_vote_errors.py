"""Measured errors are those that votes were made with; shared errors are told from coins where no truth is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.errors import VoteErrors, majority_error, spread
from benchmarks.evidence.vote_errors import Crowd, errors_of, latent, leuven_errors, seen_majority


def crowd(errors: VoteErrors, labels: int = 6_000, votes: int = 7) -> Crowd:
    rng = np.random.default_rng(0)
    truth = (rng.random((labels, 1)) < 0.5).astype(np.int8)
    return Crowd("made", errors.votes(truth, 0, votes, rng, rng.standard_normal(labels)), truth[:, 0])


@pytest.mark.parametrize("made", [VoteErrors(0.2), VoteErrors(0.2, 0.5), VoteErrors(0.3, 0.2, yes_bias=0.4)])
def test_the_parameters_of_made_up_votes_are_found_again(made: VoteErrors) -> None:
    found = errors_of(crowd(made))
    assert found.flip == pytest.approx(made.flip, abs=0.02)
    assert found.shared == pytest.approx(made.shared, abs=0.06)
    assert found.yes_bias == pytest.approx(made.yes_bias, abs=0.06)


@pytest.mark.parametrize("shared", [0.1, 0.5, 0.9])
def test_the_correlation_is_the_one_that_makes_two_votes_wrong_so_often(shared: float) -> None:
    wrong, weights = spread(0.2, shared)
    assert latent(0.2, float(wrong**2 @ weights)) == pytest.approx(shared, abs=1e-3)
    assert latent(0.2, 0.01) == 0  # fewer than by chance


def test_the_majority_that_is_seen_is_the_one_of_the_model() -> None:
    made = VoteErrors(0.25, 0.4)
    assert seen_majority(crowd(made), 5, draws=20) == pytest.approx(majority_error(made, 5), abs=0.015)


@pytest.mark.slow
def test_raters_who_share_errors_are_told_from_coins(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    made = VoteErrors(0.1, 0.7)
    truth = (rng.random((60, 100)) < 0.3).astype(np.int8)
    said = [made.votes(truth, column, 4, rng, rng.standard_normal(60)) for column in range(100)]
    rows = [
        (f"animal {row}", f"feature {column}", *votes[row].tolist())
        for column, votes in enumerate(said)
        for row in range(60)
    ]
    path = tmp_path / "votes.csv"
    pd.DataFrame(rows, columns=["exemplar", "feature", *(f"rater{n}" for n in range(1, 5))]).to_csv(path, index=False)
    found, note = leuven_errors(path)
    assert found.shared == pytest.approx(0.7, abs=0.2)
    assert "coins" in note
