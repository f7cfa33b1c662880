"""Which faces are for what. No picture is in two splits: each excludes the faces of those before it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np

from benchmarks.faces_model.face import Face, sample

SHIPPED_SEED = 2015285  # with this one every attribute holds for three of the hundred faces or more
SHIPPED = 100
HELD_OUT = 2000
HELD_OUT_SEED, CHOOSING_SEED, TRAINING_SEED = 11, 12, 13


@cache
def shipped_faces() -> tuple[Face, ...]:
    """The faces of datasets/faces."""
    rng = np.random.default_rng(SHIPPED_SEED)
    return tuple(sample(rng) for _ in range(SHIPPED))


@cache
def held_out_faces() -> tuple[Face, ...]:
    """For the figures in the model card: used neither for training nor for choosing anything."""
    return _fresh(HELD_OUT, HELD_OUT_SEED, set(shipped_faces()))


@cache
def choosing_faces() -> tuple[Face, ...]:
    """For choices: architecture, training time, thresholds."""
    return _fresh(HELD_OUT, CHOOSING_SEED, {*shipped_faces(), *held_out_faces()})


@cache
def training_faces(count: int) -> tuple[Face, ...]:
    return _fresh(count, TRAINING_SEED, {*shipped_faces(), *held_out_faces(), *choosing_faces()})


def _fresh(count: int, seed: int, taken: set[Face]) -> tuple[Face, ...]:
    found: list[Face] = []
    for face in _stream(seed):
        if face not in taken:
            taken.add(face)
            found.append(face)
        if len(found) == count:
            break
    return tuple(found)


def _stream(seed: int) -> Iterator[Face]:
    rng = np.random.default_rng([2015, seed])
    while True:
        yield sample(rng)
