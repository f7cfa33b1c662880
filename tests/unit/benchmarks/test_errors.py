"""Errors that voters share: the right share of them, as correlated as they are said to be, and on the same examples."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.errors import VoteErrors, majority_error, neighbours, spread
from benchmarks.rehearsal import Labelling
from discovery.questions import Labels

N = 40_000


def votes_of(
    errors: VoteErrors, votes: int, share: float = 0.5, columns: int = 1, seed: int = 0
) -> tuple[Labels, Labels]:
    rng = np.random.default_rng(seed)
    truth = (rng.random((N, columns)) < share).astype(np.int8)
    of_example = rng.standard_normal(N)
    said = np.stack([errors.votes(truth, column, votes, rng, of_example) for column in range(columns)], 1)
    return truth, said


@pytest.mark.parametrize("shared", [0.0, 0.3, 0.8, 1.0])
@pytest.mark.parametrize("by_example", [0.0, 0.7])
def test_the_share_of_wrong_votes_is_flip_however_much_is_shared(shared: float, by_example: float) -> None:
    truth, said = votes_of(VoteErrors(0.1, shared, by_example), 3)
    assert (said != truth[..., None]).mean() == pytest.approx(0.1, abs=0.006)


@pytest.mark.parametrize("shared", [0.0, 0.4, 0.9])
def test_two_votes_are_wrong_together_as_often_as_the_formula_says(shared: float) -> None:
    truth, said = votes_of(VoteErrors(0.2, shared), 2)
    both = (said != truth[..., None]).all(-1).mean()
    wrong, weights = spread(0.2, shared)
    assert both == pytest.approx(float(wrong**2 @ weights), abs=0.006)
    assert float(wrong @ weights) == pytest.approx(0.2, abs=1e-6)


@pytest.mark.parametrize(("shared", "votes"), [(0.0, 5), (0.5, 3), (0.5, 5), (1.0, 5)])
def test_the_error_of_a_majority_is_the_one_that_is_seen(shared: float, votes: int) -> None:
    errors = VoteErrors(0.2, shared)
    truth, said = votes_of(errors, votes)
    seen = ((said != truth[..., None]).sum(-1) * 2 > votes).mean()
    assert majority_error(errors, votes) == pytest.approx(seen, abs=0.006)


def test_more_votes_help_less_the_more_is_shared() -> None:
    left = [majority_error(VoteErrors(0.2, shared), 5) for shared in (0.0, 0.3, 0.6, 0.9, 1.0)]
    assert left == sorted(left)
    assert left[-1] == pytest.approx(0.2)


def test_a_bias_moves_errors_from_yes_to_no() -> None:
    truth, said = votes_of(VoteErrors(0.1, yes_bias=0.5), 1)
    wrong = said[..., 0] != truth
    assert wrong[truth == 0].mean() == pytest.approx(0.15, abs=0.006)
    assert wrong[truth == 1].mean() == pytest.approx(0.05, abs=0.006)


def test_hard_examples_are_hard_for_every_feature() -> None:
    def correlation(by_example: float) -> float:
        truth, said = votes_of(VoteErrors(0.2, 1.0, by_example), 1, columns=2)
        wrong = said[..., 0] != truth
        return float(np.corrcoef(wrong[:, 0], wrong[:, 1])[0, 1])

    assert abs(correlation(0.0)) < 0.02
    assert correlation(0.9) > 0.5


def test_a_confused_feature_is_labelled_as_its_neighbour_and_votes_do_not_help() -> None:
    rng = np.random.default_rng(0)
    one = rng.random(2_000) < 0.5
    like = np.where(rng.random(2_000) < 0.2, ~one, one)
    other = rng.random(2_000) < 0.5
    truth = np.stack([one, like, other], 1).astype(np.int8)
    assert neighbours(truth)[:2] == (1, 0)
    errors = VoteErrors(confused=1.0)
    for votes in (1, 5):
        said = errors.votes(truth, 0, votes, rng, np.zeros(2_000))
        assert (said == truth[:, 1:2]).all()


def test_a_column_that_is_the_same_is_no_neighbour() -> None:
    column = np.tile([0, 1], 20).astype(np.int8)
    assert neighbours(np.stack([column, column], 1)) == (None, None)


def test_labels_that_are_unknown_stay_so_and_the_same_seed_makes_the_same_examples_hard() -> None:
    rng = np.random.default_rng(0)
    truth = (rng.random((500, 2)) < 0.5).astype(np.int8)
    truth[:20] = -1
    hard = Labelling(errors=VoteErrors(0.3, 1.0, 1.0), seed=4)
    labels = [hard(truth, column, np.random.default_rng(9 + column)) for column in (0, 1)]
    assert all((one[:20] == -1).all() for one in labels)
    wrong = [one[20:] != truth[20:, column] for column, one in enumerate(labels)]
    assert (wrong[0] == wrong[1]).all()
