"""Families are found where features exclude one another, with wrong labels, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from twothirds.discovery.families.fit import NOT_ASKED, exclusive, fit, levels, open_rows, values_of
from twothirds.discovery.families.search import candidates, groups_by_words, supports

Matrix = NDArray[np.int8]


def one_hot(values: NDArray[np.int64], count: int) -> Matrix:
    labels: Matrix = (values[:, None] == np.arange(count)).astype(np.int8)
    return labels


def flipped(labels: Matrix, share: float, rng: np.random.Generator) -> Matrix:
    return np.where(rng.random(labels.shape) < share, 1 - labels, labels).astype(np.int8)


@pytest.mark.parametrize("shares", [(0.4, 0.3, 0.3), (0.3, 0.2, 0.2), (0.2, 0.15, 0.15, 0.1)])
def test_values_that_exclude_are_supported_and_independent_ones_are_not(shares: tuple[float, ...]) -> None:
    rng, count = np.random.default_rng(1), len(shares)
    weights = np.array([*shares, 1 - sum(shares)])
    family = [supports(flipped(one_hot(rng.choice(count + 1, 300, p=weights), count), 0.06, rng))[0] for _ in range(20)]
    alone = [supports((rng.random((300, count)) < np.array(shares)).astype(np.int8))[0] for _ in range(20)]
    assert sum(family) >= 18
    assert sum(alone) <= 3


def test_features_that_overlap_more_than_errors_explain_are_no_family() -> None:
    rng = np.random.default_rng(2)
    values = rng.choice(3, 400, p=[0.4, 0.4, 0.2])
    labels = one_hot(values, 2)
    both = rng.random(400) < 0.3
    labels[both & (values == 0), 1] = 1  # of those with the first, 30 % have the second too
    assert not supports(labels)[0]
    assert candidates(labels, ["red stripes", "blue stripes"]) == []


def test_groups_of_values_are_found_among_other_features() -> None:
    rng = np.random.default_rng(3)
    hair = one_hot(rng.choice(4, 200, p=[0.3, 0.25, 0.25, 0.2]), 3)
    mood = one_hot(rng.choice(3, 200, p=[0.4, 0.35, 0.25]), 3)
    other = (rng.random((200, 3)) < 0.4).astype(np.int8)
    labels = flipped(np.hstack([hair, mood, other]), 0.05, rng)
    names = ["black hair", "blonde hair", "red hair", "smiling", "crying", "shouting", "hat", "glasses", "tie"]
    found = candidates(labels, names)
    assert {frozenset(one.columns) for one in found[:2]} == {frozenset({0, 1, 2}), frozenset({3, 4, 5})}
    assert candidates(labels, names, placed=range(9)) == []
    apart = candidates(labels, names, apart=[frozenset({0, 1, 2})])
    assert not any(len({0, 1, 2} & set(one.columns)) > 1 for one in apart)


def test_levels_that_include_one_another_are_a_scale() -> None:
    rng = np.random.default_rng(4)
    count = rng.choice(5, 200)
    labels = flipped((count[:, None] >= np.arange(1, 5)).astype(np.int8), 0.03, rng)
    names = ["at least one leg", "at least two legs", "at least three legs", "at least four legs"]
    scales = [one for one in candidates(labels, names) if one.scale]
    assert [one.columns for one in scales] == [(0, 1, 2, 3)]
    good, fitted = supports(labels, scale=True)
    assert good
    assert (values_of(fitted.posterior) == np.where(count > 0, count - 1, 4)).mean() > 0.9


def test_few_examples_say_nothing() -> None:
    assert candidates(np.eye(6, dtype=np.int8), list("abcdef")) == []


def test_answers_decide_what_labels_leave_open() -> None:
    labels = np.vstack([np.repeat(np.eye(3, dtype=np.int8), 20, axis=0), np.array([[0, 0, 0], [1, 1, 0]], np.int8)])
    fitted = fit(labels, exclusive(3))
    left = open_rows(fitted.posterior)
    assert left.tolist() == [False] * 60 + [True] * 2
    choices = np.full((62, 1), NOT_ASKED)
    choices[60:, 0] = (2, 1)
    assert values_of(fit(labels, exclusive(3), choices).posterior)[60:].tolist() == [2, 1]


def test_a_new_value_is_known_by_answers_only() -> None:
    labels = np.vstack([np.repeat(np.eye(2, dtype=np.int8), 20, axis=0), np.zeros((20, 2), np.int8)])
    classes = exclusive(2, new=1)
    assert open_rows(fit(labels, classes).posterior)[40:].all()
    choices = np.full((60, 1), NOT_ASKED)
    choices[40:50, 0], choices[50:, 0] = 2, 3
    assert values_of(fit(labels, classes, choices).posterior)[40:].tolist() == [2] * 10 + [3] * 10


def test_labels_and_answers_together_are_right_more_often_than_either() -> None:
    rng = np.random.default_rng(5)
    truth = rng.choice(4, 400)
    labels = flipped(one_hot(truth, 4), 0.06, rng)
    choices = np.where(rng.random((400, 1)) < 0.06, rng.integers(0, 4, (400, 1)), truth[:, None])
    together, by_labels = (
        (values_of(fit(labels, exclusive(4), said).posterior) != truth).mean() for said in (choices, None)
    )
    assert together < 0.03
    assert together < min(by_labels, (choices[:, 0] != truth).mean())


def test_unknown_labels_count_for_nothing() -> None:
    labels = np.repeat(np.eye(3, dtype=np.int8), 20, axis=0)
    some = labels.copy()
    some[::4, 0] = -1
    assert np.isfinite(fit(some, exclusive(3)).evidence)
    assert np.isfinite(fit(np.full((30, 2), -1, np.int8), exclusive(2)).evidence)
    assert levels(2).tolist() == [[1, 0], [1, 1], [0, 0]]


def test_names_are_grouped_by_what_they_differ_in() -> None:
    names = ["black hair", "red hair", "long hair", "two legs", "four legs", "hair bun", "tie"]
    groups = {group.name: [names[place] for place in group.members] for group in groups_by_words(names)}
    assert groups["hair colour"] == ["black hair", "red hair"]
    assert groups["number of legs"] == ["two legs", "four legs"]
    assert groups["hair"] == ["black hair", "red hair", "long hair"]
    assert groups_by_words(["tie", "jacket"]) == []
