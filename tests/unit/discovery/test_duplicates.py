"""Two columns of labels are one feature or two by what is known of their noise; words and answers move the odds."""

from __future__ import annotations

import numpy as np
import pytest

from twothirds.discovery import Described, Duplicates, Labels, Pair
from twothirds.discovery.duplicates import APART, CLOSE, COINCIDENCE, EQUAL, SAME_FROM, odds_by_labels, odds_by_words

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
        one.append(odds_by_labels(labelled(first, 0.06, rng), labelled(first, 0.06, rng)))
        two.append(odds_by_labels(labelled(first, 0.06, rng), labelled(second, 0.06, rng)))
    assert np.mean(np.array(one) > 1) > 0.95
    assert np.median(one) > 10 * np.median(two)
    assert np.mean(np.array(two) < 1) > (0.75 if share < 0.2 else 0.95)


def test_what_is_known_of_the_noise_decides_how_much_difference_is_too_much() -> None:
    labels = np.repeat([0, 1], 60).astype(np.int8)
    other = labels.copy()
    other[:15] ^= 1  # differs on an eighth
    assert odds_by_labels(labels, other, (300, 40)) > 5 * odds_by_labels(labels, other, (300, 3))


def test_no_number_of_labels_tells_a_feature_from_one_that_selects_the_same() -> None:
    labels = np.tile([0, 1, 1], 4_000).astype(np.int8)
    assert odds_by_labels(labels, labels) <= 1 / COINCIDENCE
    assert chance(APART * odds_by_labels(labels, labels)) < SAME_FROM
    assert chance(EQUAL * odds_by_labels(labels, labels)) >= SAME_FROM


def test_labels_that_are_missing_say_nothing() -> None:
    nothing, labels = np.full(30, -1, np.int8), np.tile([0, 1], 15).astype(np.int8)
    assert odds_by_labels(nothing, labels) == pytest.approx(1.0, rel=0.02)


def chance(odds: float) -> float:
    return pair(odds).chance


def pair(odds: float, *answers: bool) -> Pair:
    return Pair(Described("hat"), Described("cap"), odds, list(answers))


def test_one_is_asked_in_doubt_and_again_while_a_yes_leaves_some() -> None:
    alike = APART * 40.0
    assert pair(alike).wants_answer
    assert not pair(APART * 0.05).wants_answer
    assert pair(alike, True).chance < SAME_FROM
    assert pair(alike, True).wants_answer
    assert pair(alike, True, True).chance >= SAME_FROM
    assert not pair(alike, False).wants_answer
    assert pair(CLOSE * 0.05, True).chance < SAME_FROM, "labels that contradict outweigh one answer"


def test_of_labels_that_err_a_feature_is_known_again_and_others_are_not_asked_about() -> None:
    rng, asked = np.random.default_rng(3), list[Pair]()

    def ask(pairs: list[Pair]) -> list[bool | None]:
        asked.extend(pairs)
        return [pair.new.name == "cap" and pair.other.name == "hat" for pair in pairs]

    truth = {name: (rng.random(120) < 0.35).astype(np.int8) for name in ("hat", "beard", "scarf", "smile")}
    earlier = [(Described(name), labelled(labels, 0.06, rng)) for name, labels in truth.items()]
    new = [
        (Described("cap"), labelled(truth["hat"], 0.06, rng)),
        (Described("tie"), (rng.random(120) < 0.35).astype(np.int8)),
    ]
    assert Duplicates(ask).among(new, earlier) == {0: Described("hat")}
    assert {(pair.new.name, pair.other.name) for pair in asked} == {("cap", "hat")}


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("yellow", "yellow color", EQUAL),
        ("red", "red elements", EQUAL),
        ("smiling", "smile", EQUAL),
        ("gatos negros", "gato negro", EQUAL),
        ("rote Häuser", "rotes Haus", EQUAL),
        ("legs", "two legs", CLOSE),
        ("person", "human", APART),
        ("vertical stripes", "horizontal stripes", APART),
        ("hat", "no hat", APART),
    ],
)
def test_names_are_alike_by_the_base_forms_of_their_words(first: str, second: str, expected: float) -> None:
    assert odds_by_words(Described(first), Described(second)) == expected
    assert odds_by_words(Described(second), Described(first)) == expected


def test_definitions_and_a_sentence_model_bring_names_closer() -> None:
    one, other = Described("cap", "Someone wears a hat on the head."), Described("hat", "A hat sits on a head.")
    assert odds_by_words(one, other) == CLOSE
    same = "A person is shown."
    assert odds_by_words(Described("human", same), Described("person", same)) == EQUAL
    assert odds_by_words(Described("human"), Described("person"), lambda *_: 0.8) == CLOSE
    assert odds_by_words(Described("human"), Described("person"), lambda *_: 0.3) == APART


def test_any_text_has_base_forms() -> None:
    for text in ("", "…", "the", "\ud800", "犬", "x" * 5000):
        assert odds_by_words(Described(text, text), Described(text, text)) == EQUAL
