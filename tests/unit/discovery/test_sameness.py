"""Two columns of labels are one feature or two by what is known of their noise; words and answers move the odds."""

from __future__ import annotations

import numpy as np
import pytest

from twothirds.discovery import LabelNoise, Labels, Likeness, chance_of_same, is_in_doubt, label_odds
from twothirds.discovery.duplicates import COINCIDENCE, SAME_FROM, Described, likeness

Rng = np.random.Generator


def labelled(truth: Labels, error: float, rng: Rng) -> Labels:
    return (truth ^ (rng.random(len(truth)) < error)).astype(np.int8)


@pytest.mark.parametrize("share", [0.15, 0.3, 0.5])
@pytest.mark.parametrize("n", [40, 120])
def test_one_feature_labelled_twice_is_likelier_one_and_two_are_likelier_two(share: float, n: int) -> None:
    rng = np.random.default_rng(7)
    one, two = [], []
    for _ in range(150):
        first, second = ((rng.random(n) < share).astype(np.int8) for _ in range(2))
        one.append(label_odds(labelled(first, 0.06, rng), labelled(first, 0.06, rng)))
        two.append(label_odds(labelled(first, 0.06, rng), labelled(second, 0.06, rng)))
    assert np.mean(np.array(one) > 1) > 0.95
    assert np.median(one) > 10 * np.median(two)
    assert np.mean(np.array(two) < 1) > (0.75 if share < 0.2 else 0.95)


def test_what_votes_say_of_the_noise_decides_how_much_difference_is_too_much() -> None:
    labels = np.repeat([0, 1], 60).astype(np.int8)
    other = labels.copy()
    other[:15] ^= 1  # differs on an eighth
    quiet, loud = LabelNoise.of_votes(300, 3, votes=1), LabelNoise.of_votes(300, 40, votes=1)
    assert label_odds(labels, other, loud) > 5 * label_odds(labels, other, quiet)
    of_five = LabelNoise.of_votes(300, 40, votes=5)
    assert of_five.differing < LabelNoise.of_votes(300, 40, votes=1).differing / 5, "a majority errs less than a vote"


def test_no_number_of_labels_tells_a_feature_from_one_that_selects_the_same() -> None:
    labels = np.tile([0, 1, 1], 4_000).astype(np.int8)
    assert label_odds(labels, labels) <= 1 / COINCIDENCE
    assert chance_of_same(Likeness.APART, label_odds(labels, labels)) < SAME_FROM
    assert chance_of_same(Likeness.EQUAL, label_odds(labels, labels)) >= SAME_FROM


def test_labels_that_are_missing_say_nothing() -> None:
    nothing, labels = np.full(30, -1, np.int8), np.tile([0, 1], 15).astype(np.int8)
    assert label_odds(nothing, labels) == pytest.approx(1.0, rel=0.02)


def test_one_is_asked_in_doubt_and_again_while_a_yes_leaves_some() -> None:
    alike = 40.0
    assert is_in_doubt(chance_of_same(Likeness.APART, alike), 0)
    assert not is_in_doubt(chance_of_same(Likeness.APART, 0.05), 0)
    once = chance_of_same(Likeness.APART, alike, [True])
    assert once < SAME_FROM
    assert is_in_doubt(once, 1)
    assert chance_of_same(Likeness.APART, alike, [True, True]) >= SAME_FROM
    assert not is_in_doubt(chance_of_same(Likeness.APART, alike, [False]), 1)
    assert chance_of_same(Likeness.CLOSE, 0.05, [True]) < SAME_FROM, "labels that contradict outweigh one answer"


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("yellow", "yellow color", Likeness.EQUAL),
        ("red", "red elements", Likeness.EQUAL),
        ("smiling", "smile", Likeness.EQUAL),
        ("gatos negros", "gato negro", Likeness.EQUAL),
        ("rote Häuser", "rotes Haus", Likeness.EQUAL),
        ("legs", "two legs", Likeness.CLOSE),
        ("person", "human", Likeness.APART),
        ("vertical stripes", "horizontal stripes", Likeness.APART),
        ("hat", "no hat", Likeness.APART),
    ],
)
def test_names_are_alike_by_the_base_forms_of_their_words(one: str, other: str, expected: Likeness) -> None:
    assert likeness(Described(one), Described(other)) is expected
    assert likeness(Described(other), Described(one)) is expected


def test_definitions_and_a_sentence_model_bring_names_closer() -> None:
    one, other = Described("cap", "Someone wears a hat on the head."), Described("hat", "A hat sits on a head.")
    assert likeness(one, other) is Likeness.CLOSE
    same = "A person is shown."
    assert likeness(Described("human", same), Described("person", same)) is Likeness.EQUAL
    assert likeness(Described("human"), Described("person"), lambda *_: 0.8) is Likeness.CLOSE
    assert likeness(Described("human"), Described("person"), lambda *_: 0.3) is Likeness.APART


def test_any_text_has_base_forms() -> None:
    for text in ("", "…", "the", "\ud800", "犬", "x" * 5000):
        assert likeness(Described(text, text), Described(text, text)) is Likeness.EQUAL
