"""The one matrix of labels with where each comes from: what run folders, nightly tables, exports and pages share."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery import UNKNOWN

if TYPE_CHECKING:
    import pyarrow as pa

FEATURES = b"twothirds.features"  # in the metadata of an Arrow table: names and definitions, in order
VOTES = ("yes", "no", "abstained")


class Source(IntEnum):
    """Where a label comes from; a later one outranks an earlier one."""

    NONE = 0
    ASKED = 1
    PREDICTED = 2
    CORRECTED = 3


@dataclass(frozen=True)
class LabelledFeature:
    name: str
    definition: str = ""


@dataclass(frozen=True, eq=False)
class LabelTable:
    """All arrays are features × examples; `votes` has a last axis of yes, no and abstained."""

    ids: tuple[str, ...]
    digests: tuple[str, ...]
    features: tuple[LabelledFeature, ...]
    value: NDArray[np.int8]  # 1, 0 or UNKNOWN
    source: NDArray[np.uint8]
    probability: NDArray[np.float32]  # of yes, NaN where none is known
    votes: NDArray[np.uint16]

    def __post_init__(self) -> None:
        shape = (len(self.features), len(self.ids))
        shapes = {self.value.shape, self.source.shape, self.probability.shape, self.votes.shape[:2]}
        if shapes != {shape} or self.votes.shape[2:] != (len(VOTES),) or len(self.digests) != len(self.ids):
            raise ValueError(f"a table of {shape[0]} features × {shape[1]} examples has parts of {sorted(shapes)}")

    @classmethod
    def empty(cls, ids: Sequence[str], digests: Sequence[str], features: Sequence[LabelledFeature] = ()) -> LabelTable:
        """A table in which nothing is known yet."""
        shape = (len(features), len(ids))
        return cls(
            ids=tuple(ids),
            digests=tuple(digests),
            features=tuple(features),
            value=np.full(shape, UNKNOWN, np.int8),
            source=np.full(shape, Source.NONE, np.uint8),
            probability=np.full(shape, np.nan, np.float32),
            votes=np.zeros((*shape, len(VOTES)), np.uint16),
        )

    def to_arrow(self) -> pa.Table:
        """One row per example; of each feature a struct, named by its place, for names may be alike."""
        import pyarrow as pa

        columns: dict[str, Any] = {"id": pa.array(self.ids, pa.string()), "digest": pa.array(self.digests, pa.string())}
        for place in range(len(self.features)):
            parts = [self.value[place], self.source[place], self.probability[place], *self.votes[place].T]
            arrays = [pa.array(np.ascontiguousarray(part)) for part in parts]
            columns[f"feature-{place}"] = pa.StructArray.from_arrays(arrays, ["value", "source", "probability", *VOTES])
        named = json.dumps([[feature.name, feature.definition] for feature in self.features])
        return pa.table(columns).replace_schema_metadata({FEATURES: named.encode()})

    @classmethod
    def from_arrow(cls, table: pa.Table) -> LabelTable:
        """The table that `to_arrow` has written. Raises ValueError where it is another one."""
        named = (table.schema.metadata or {}).get(FEATURES)
        if named is None:
            raise ValueError("this Arrow table holds no labels: its metadata name no features")
        features = tuple(LabelledFeature(name, definition) for name, definition in json.loads(named))
        found = cls.empty(table["id"].to_pylist(), table["digest"].to_pylist(), features)
        for place in range(len(features)):
            parts = table[f"feature-{place}"].combine_chunks()
            for name, array in (("value", found.value), ("source", found.source), ("probability", found.probability)):
                array[place] = parts.field(name).to_numpy(zero_copy_only=False)
            for number, name in enumerate(VOTES):
                found.votes[place, :, number] = parts.field(name).to_numpy(zero_copy_only=False)
        return found
