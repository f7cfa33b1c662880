"""A data set that was read: its examples, what had to be left out, and the truth where it is known."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sources.errors import DatasetError
from sources.example import Example
from sources.location import printable

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Dataset", "DatasetError", "Example", "Quarantined", "Truth", "digest_of_examples"]


@dataclass(frozen=True, slots=True)
class Quarantined:
    """Something in the data set that is no example, and why. Where it has no id, `id` says which row it is."""

    id: str
    reason: str

    def __str__(self) -> str:
        name = self.id if printable(self.id) == self.id else repr(self.id)
        return f"{name}: {self.reason}"


@dataclass(frozen=True, eq=False, slots=True)
class Truth:
    """What is known of the examples: one row per example of the data set, in its order; -1 where the cell is empty."""

    columns: tuple[str, ...]
    matrix: NDArray[np.int8]


@dataclass(frozen=True, eq=False, slots=True)
class Dataset:
    name: str  # short, as in `faces`
    spec: str  # as the user gave it
    examples: tuple[Example, ...]
    quarantined: tuple[Quarantined, ...]
    truth: Truth | None
    digest: str  # of the ids and contents, in order

    @property
    def metadata(self) -> pd.DataFrame:
        """The other columns of the table, one row per example in their order, read anew on each use."""
        from sources.metadata import read_metadata

        return read_metadata(self.spec, [example.id for example in self.examples])


def digest_of_examples(examples: Iterable[Example]) -> str:
    whole = hashlib.sha256()
    for example in examples:
        whole.update(json.dumps([example.id, example.digest]).encode() + b"\n")
    return whole.hexdigest()
