from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.run_folders import random_matrix
from twothirds.discovery.duplicates import Twin, find_twin, normalised, same_name
from twothirds.discovery.metrics import correlations
from twothirds.discovery.questions import UNKNOWN, Labels


def labels_of(text: str) -> Labels:
    return np.array([UNKNOWN if mark == "?" else int(mark) for mark in text], np.int8)


def correlation(a: Labels, b: Labels) -> float:
    return float(correlations(a[None], b[None])[0, 0])


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Glasses", "wearing glasses"),
        ("wears a hat", "has hats"),
        ("sun-glasses", "sunglasses"),
        ("sun glasses", "Sunglasses"),
        ("blonde hair", "hair is blond"),
        ("the person is wearing a red scarf", "red scarves"),
        ("black and white", "white and black"),
        ("2 legs", "two legs"),
        ("grey background", "Background: gray."),
        ("without a hat", "no hat"),
        ("doesn't have a hat", "no hats"),
        ("Straße", "strasse"),
        ("stories", "story"),
        ("watches", "has a watch"),
    ],
)
def test_one_feature_in_two_spellings_is_one_name(a: str, b: str) -> None:
    assert same_name(a, b)
    assert same_name(b, a)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("glasses", "glass"),
        ("shorts", "short"),
        ("star above cross", "cross above star"),
        ("man biting dog", "dog biting man"),
        ("red hat and blue shirt", "blue hat and red shirt"),
        ("man wearing hat", "woman wearing hat"),
        ("hat", "no hat"),
        ("person", "hat"),
        ("vertical stripes", "horizontal stripes"),
        ("left hand raised", "right hand raised"),
        ("bus", "bu"),
        ("犬", "猫"),
    ],
)
def test_features_that_differ_keep_different_names(a: str, b: str) -> None:
    assert not same_name(a, b)


@given(st.text(max_size=40))
def test_any_name_can_be_normalised_and_is_its_own_twin(name: str) -> None:
    assert same_name(name, name)
    assert same_name(normalised(name), normalised(normalised(name)))


def test_a_name_of_filler_words_only_is_not_the_empty_name() -> None:
    assert normalised("with") == "with"
    assert not same_name("with", "there is")


def test_a_known_name_is_found_whatever_its_labels() -> None:
    hats, glasses = labels_of("0101010101"), labels_of("1111100000")
    assert find_twin("wearing a hat", glasses, ["glasses", "hats"], [glasses, hats]) == Twin("same", 1)
    assert find_twin("no hat", hats, ["glasses", "hats"], [glasses, hats]) == Twin("complement", 1)
    assert find_twin("beard", labels_of("1100110011"), ["glasses", "hats"], [glasses, hats]) is None


def test_equal_labels_make_a_twin_and_opposite_labels_a_complement() -> None:
    known = [labels_of("0101010101"), labels_of("1111100000")]
    for labels, kind in ((known[1], "same"), (1 - known[1], "complement")):
        assert find_twin("sharp", labels, ["even", "first"], known) == (kind, 1)


def test_examples_without_a_label_on_either_side_do_not_count() -> None:
    assert correlation(labels_of("1111100000??11"), labels_of("11111000000011") * 1) == pytest.approx(1.0)
    assert correlation(labels_of("11110000????"), labels_of("????00001111")) == 0.0


def test_correlations_are_those_of_the_examples_with_both_labels() -> None:
    matrix = random_matrix(7, 60)
    for a, b in product(range(7), repeat=2):
        both = (matrix[a] != UNKNOWN) & (matrix[b] != UNKNOWN)
        assert correlations(matrix, matrix)[a, b] == pytest.approx(np.corrcoef(matrix[a, both], matrix[b, both])[0, 1])


def test_two_features_of_one_and_the_same_example_are_not_twins() -> None:
    rare = labels_of("1" + "0" * 49)
    assert find_twin("crown", rare, ["moustache"], [rare]) is None


def test_constant_labels_and_few_examples_prove_nothing() -> None:
    assert correlation(np.ones(20, np.int8), np.ones(20, np.int8)) == 0.0
    assert correlation(labels_of("1100"), labels_of("1100")) == 0.0
    assert correlation(labels_of(""), labels_of("")) == 0.0


def test_nearly_equal_labels_need_a_name_that_is_close_in_meaning() -> None:
    known, new = labels_of("1" * 20 + "0" * 20), labels_of("1" * 19 + "0" * 21)
    new[39] = 1
    assert 0.8 < correlation(new, known) < 0.95
    assert find_twin("spectacles", new, ["eyewear"], [known]) is None
    assert find_twin("spectacles", new, ["eyewear"], [known], lambda *_: 0.3) is None
    assert find_twin("spectacles", new, ["eyewear"], [known], lambda *_: 0.7) == Twin("same", 0)


def test_closeness_of_meaning_alone_never_makes_a_twin() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(0, 2, 100).astype(np.int8) for _ in range(2))
    assert find_twin("vertical stripes", a, ["horizontal stripes"], [b], lambda *_: 0.94) is None


def test_correlation_is_that_of_numpy_on_random_labels() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        a, b = (rng.integers(0, 2, 60).astype(np.int8) for _ in range(2))
        assert correlation(a, b) == pytest.approx(np.corrcoef(a, b)[0, 1])


def test_the_strongest_of_several_twins_is_named() -> None:
    base = labels_of("1" * 50 + "0" * 50)
    close = base.copy()
    close[0] = 0
    twin = find_twin("new", base, ["close", "exact"], [close, base])
    assert twin is not None
    assert twin.other == 1
