"""What is measured of a model's labels and votes, on probabilities that were made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.discovery.ablation import errors_named
from benchmarks.errors import VoteErrors
from benchmarks.evidence.vote_errors import Crowd, errors_of
from benchmarks.evidence.weak_model import ModelVotes, in_common, labels_table, votes_table


def votes_with(chances: float | np.ndarray, share: float = 0.4, n: int = 200) -> ModelVotes:
    truth = (np.random.default_rng(1).random((2, n)) < share).astype(np.int8)
    return ModelVotes(["a", "b"], np.broadcast_to(np.asarray(chances, float), (2, n, 3)).copy(), truth)


def test_who_says_no_to_everything_is_as_right_as_without_looking() -> None:
    row = labels_table(votes_with(0.2)).splitlines()[2].split(" | ")
    says_yes, right, blind, balanced, ranked = row[3], row[4].split()[0], *row[5:8]
    assert (says_yes, right, balanced) == ("0%", blind, "0.50")
    assert ranked.startswith("0.50")


def test_votes_drawn_from_one_probability_are_coins_and_likelier_answers_repeat_each_other() -> None:
    """Errors of draws still hang together where what is true and what is not are wrong at different rates."""
    made = votes_with(0.5)
    assert in_common(made.usual, made.truth).value == pytest.approx(1.0)
    assert in_common(made.drawn(1.0, 1), made.truth).value == pytest.approx(0.0, abs=0.05)
    assert (made.drawn(0.01, 1) == made.drawn(0.01, 3)).all()
    lines = votes_table(made).splitlines()
    assert len(lines) == 6
    assert lines[2].split(" | ")[5] == "1.0"  # three votes that repeat the first are worth one


def test_a_lower_temperature_makes_votes_more_alike() -> None:
    made = votes_with(np.random.default_rng(0).random((2, 200, 1)))
    warm, cold = (in_common(made.drawn(temperature, 1), made.truth).value for temperature in (1.0, 0.2))
    assert warm is not None
    assert cold is not None
    assert warm < cold


def test_labels_that_say_neither_are_left_out() -> None:
    chances = np.full((2, 200, 3), 0.2)
    chances[:, :50] = np.nan
    assert " | 150 | " in labels_table(votes_with(chances)).splitlines()[2]


def test_votes_that_never_vary_have_everything_in_common() -> None:
    truth = np.array([0, 1] * 20, np.int8)
    found = errors_of(Crowd("never", np.zeros((40, 3), np.int8), truth))
    assert (found.flip, found.shared, found.yes_bias) == (0.5, 1.0, -1.0)


def test_errors_of_an_ablation_are_written_as_those_of_a_crowd() -> None:
    assert errors_named("flip=0.3&shared=0.75&yes_bias=-0.7") == VoteErrors(0.3, 0.75, yes_bias=-0.7)
    for wrong in ("flips=0.3", "flip=much", "flip"):
        with pytest.raises(Exception, match="NAME=NUMBER"):
            errors_named(wrong)
