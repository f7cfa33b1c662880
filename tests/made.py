"""Small things that several tests make: examples without files, and crowds that know their truth."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.simulated import Behaviour, SimulatedOracle
from sources.example import Example


def texts(n: int) -> tuple[Example, ...]:
    return tuple(Example(f"e{i}", hashlib.sha256(f"text {i}".encode()).hexdigest(), text=f"text {i}") for i in range(n))


def random_truth(n: int, m: int, seed: int = 0, share: float = 0.4) -> NDArray[np.int8]:
    return (np.random.default_rng(seed).random((n, m)) < share).astype(np.int8)


def crowd_of(truth: NDArray[np.int8], crowd: str = "salience", seed: int = 0, **behaviour: Any) -> SimulatedOracle:
    columns = [f"feature {letters(column)}" for column in range(truth.shape[1])]
    return SimulatedOracle(texts(len(truth)), truth, columns, crowd=crowd, seed=seed, behaviour=Behaviour(**behaviour))


def letters(number: int) -> str:
    """A word per number, so that no two names look like plurals or numbers of each other."""
    return "".join(chr(ord("a") + int(digit)) for digit in str(number))
