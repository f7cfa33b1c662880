"""The drawn faces: what is hidden is not true, and the sampling leaves nothing too rare."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.faces_model.face import DARK_GLASSES, NO, Face, sample
from benchmarks.faces_model.truth import ATTRIBUTES, visible


@pytest.fixture(scope="module")
def faces() -> list[Face]:
    rng = np.random.default_rng(5)
    return [sample(rng) for _ in range(3000)]


def test_the_same_seed_gives_the_same_faces() -> None:
    first, second = np.random.default_rng(9), np.random.default_rng(9)
    assert [sample(first) for _ in range(20)] == [sample(second) for _ in range(20)]


def test_no_hair_is_seen_under_a_hat(faces: list[Face]) -> None:
    hair_names = [name for name in ATTRIBUTES if name.endswith(" hair") and name != "facial hair"]
    for face in faces:
        if face.hat != NO:
            seen = visible(face)
            assert not any(seen[name] for name in [*hair_names, "bald head", "afro", "hair bun"])


def test_no_eyes_are_seen_behind_dark_glasses(faces: list[Face]) -> None:
    eye_names = [name for name in ATTRIBUTES if name.endswith(" eyes")] + ["winking", "tear", "looking sideways"]
    for face in faces:
        if face.eyewear in DARK_GLASSES:
            assert not any(visible(face)[name] for name in eye_names)


def test_a_headscarf_hides_the_beard(faces: list[Face]) -> None:
    assert not any(visible(face)["facial hair"] for face in faces if visible(face)["headscarf"])


def test_exactly_one_background_and_one_top_colour_are_seen(faces: list[Face]) -> None:
    for face in faces:
        names = [name for name, seen in visible(face).items() if seen]
        assert sum(name.endswith(" background") for name in names) == 1
        assert sum(name.endswith(" top") for name in names) == 1


def test_skin_is_not_named(faces: list[Face]) -> None:
    for face in faces[:200]:
        assert visible(face) == visible(replace(face, skin="#FFDBB4"))


def test_no_attribute_is_rarer_than_two_in_a_hundred(faces: list[Face]) -> None:
    shares = np.mean([list(visible(face).values()) for face in faces], axis=0)
    assert shares.min() > 0.02
    assert shares.max() < 0.7
