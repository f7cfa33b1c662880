"""The one matrix of labels with where each comes from: what run folders, nightly tables, exports and pages share."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery import UNKNOWN
from twothirds.reports.column_names import BESIDE, VOTES, column_names

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

FEATURES = b"twothirds.features"  # in the metadata of an Arrow table: names, definitions and columns, in order
# Columns of tables and exports themselves: no feature's column has such a name.
OWN_COLUMNS = ("id", "digest", "version", "gone", "text", "image", "file_name", "label")


class Source(IntEnum):
    """Where a label comes from; a later one outranks an earlier one."""

    NONE = 0
    PREDICTED = 1
    ASKED = 2
    CORRECTED = 3


SOURCES: dict[int, str] = {source: source.name.lower() for source in Source if source is not Source.NONE}


@dataclass(frozen=True)
class LabelledFeature:
    name: str
    definition: str = ""


@dataclass(frozen=True, eq=False)
class LabelTable:
    """All arrays are features × examples; `votes` has a last axis of yes, no and abstained. What is alike everywhere
    may be an array that takes no memory: write only into the arrays of `empty`."""

    ids: Sequence[str]
    digests: Sequence[str]
    features: Sequence[LabelledFeature]
    value: NDArray[np.int8]  # 1, 0 or UNKNOWN
    source: NDArray[np.uint8]
    probability: NDArray[np.float32]  # of yes, NaN where none is known
    who: NDArray[np.uint16]  # gave the label, a place among `raters`
    votes: NDArray[np.uint16]
    raters: Sequence[str] = ("",)  # the first is the oracle that was asked

    def __post_init__(self) -> None:
        shape = (len(self.features), len(self.ids))
        matrices = (self.value, self.source, self.probability, self.who, self.votes[..., 0])
        shapes = {matrix.shape for matrix in matrices}
        if shapes != {shape} or self.votes.shape[2:] != (len(VOTES),) or len(self.digests) != len(self.ids):
            raise ValueError(f"a table of {shape[0]} features × {shape[1]} examples has parts of {sorted(shapes)}")

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def of(
        cls,
        ids: Sequence[str],
        digests: Sequence[str],
        features: Sequence[LabelledFeature],
        value: NDArray[np.int8],
        *,
        source: NDArray[np.uint8] | None = None,
        probability: NDArray[np.floating[Any]] | None = None,
        who: NDArray[np.uint16] | None = None,
        votes: NDArray[np.integer[Any]] | None = None,
        raters: Sequence[str] = ("",),
    ) -> LabelTable:
        """Without a source labels were asked, without votes each was one vote."""
        source = _asked(value) if source is None else source
        return cls(
            ids=ids,
            digests=digests,
            features=features,
            value=value,
            source=source,
            probability=_alike(np.float32(np.nan), value) if probability is None else probability.astype(np.float32),
            who=_alike(np.uint16(0), value) if who is None else who,
            votes=_one_vote(value, source) if votes is None else votes.astype(np.uint16),
            raters=raters,
        )

    @classmethod
    def empty(cls, ids: Sequence[str], digests: Sequence[str], features: Sequence[LabelledFeature] = ()) -> LabelTable:
        """A table in which nothing is known yet."""
        shape = (len(features), len(ids))
        return cls(
            ids=ids,
            digests=digests,
            features=features,
            value=np.full(shape, UNKNOWN, np.int8),
            source=np.full(shape, Source.NONE, np.uint8),
            probability=np.full(shape, np.nan, np.float32),
            who=np.zeros(shape, np.uint16),
            votes=np.zeros((*shape, len(VOTES)), np.uint16),
        )

    @classmethod
    def concat(cls, tables: Sequence[LabelTable]) -> LabelTable:
        """Tables of other examples and the same features, one below the other."""
        if len({tuple(table.features) for table in tables}) > 1:
            raise ValueError("tables of other features cannot be joined")
        raters = list(dict.fromkeys(name for table in tables for name in table.raters))
        recoded = [np.array([raters.index(name) for name in table.raters], np.uint16)[table.who] for table in tables]
        return cls(
            ids=[name for table in tables for name in table.ids],
            digests=[digest for table in tables for digest in table.digests],
            features=tables[0].features,
            value=np.concatenate([table.value for table in tables], axis=1),
            source=np.concatenate([table.source for table in tables], axis=1),
            probability=np.concatenate([table.probability for table in tables], axis=1),
            who=np.concatenate(recoded, axis=1),
            votes=np.concatenate([table.votes for table in tables], axis=1),
            raters=raters,
        )

    def select(self, features: Sequence[int]) -> LabelTable:
        """Of these features only."""
        return replace(
            self,
            features=[self.features[place] for place in features],
            value=self.value[features],
            source=self.source[features],
            probability=self.probability[features],
            who=self.who[features],
            votes=self.votes[features],
        )

    def take(self, rows: Sequence[int] | NDArray[np.intp]) -> LabelTable:
        """Of these examples only."""
        return replace(
            self,
            ids=[self.ids[row] for row in rows],
            digests=[self.digests[row] for row in rows],
            value=self.value[:, rows],
            source=self.source[:, rows],
            probability=self.probability[:, rows],
            who=self.who[:, rows],
            votes=self.votes[:, rows],
        )

    def by(self, feature: int) -> list[str]:
        """Of each label of a feature who gave it; empty for the oracle."""
        return [self.raters[who] for who in self.who[feature].tolist()]

    @property
    def columns(self) -> list[str]:
        """The column of each feature, in Arrow and in every export."""
        return column_names([(feature.name, feature.definition) for feature in self.features], OWN_COLUMNS)

    def known_beside(self) -> set[tuple[int, str]]:
        """What is known of labels beside their values: pairs of a feature and one of BESIDE."""
        known: set[tuple[int, str]] = set()
        plain, one_vote = _asked(self.value), _one_vote(self.value, self.source)
        differs = {
            "source": self.source != plain,
            "probability": ~np.isnan(self.probability),
            "by": self.who != 0,
            **{side: (self.votes[..., place] != one_vote[..., place]) for place, side in enumerate(VOTES)},
        }
        for kind, cells in differs.items():
            known |= {(int(feature), kind) for feature in np.flatnonzero(cells.any(axis=1))}
        return known

    def to_arrow(
        self, beside: Collection[tuple[int, str]] | None = None, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """One row per example: `id`, `digest`, a column per feature with 1, 0 or null, and then what else is known:
        `NAME (source)`, `NAME (probability)`, `NAME (by)`, and votes where a label is not one vote for what it is."""
        import pyarrow as pa

        names, beside = columns or self.columns, self.known_beside() if beside is None else beside
        made: dict[str, Any] = {"id": pa.array(self.ids, pa.string()), "digest": pa.array(self.digests, pa.string())}
        for place, name in enumerate(names):
            made[name] = pa.array(self.value[place], pa.int8(), mask=self.value[place] == UNKNOWN)
        for place, name in enumerate(names):
            for kind in BESIDE:
                if (place, kind) in beside:
                    made[f"{name} ({kind})"] = self._array(place, kind)
        named = [[feature.name, feature.definition, name] for feature, name in zip(self.features, names, strict=True)]
        return pa.table(made).replace_schema_metadata({FEATURES: json.dumps(named, ensure_ascii=False).encode()})

    def _array(self, place: int, kind: str) -> pa.Array:
        import pyarrow as pa

        if kind == "source":
            return _named(self.source[place], ["", *SOURCES.values()])
        if kind == "by":
            return _named(self.who[place], self.raters)
        if kind == "probability":
            return pa.array(self.probability[place], pa.float32(), mask=np.isnan(self.probability[place]))
        return pa.array(self.votes[place, :, VOTES.index(kind)], pa.uint16())

    def tidy(self, chosen: NDArray[np.bool_] | None = None, columns: Sequence[str] | None = None) -> pa.Table:
        """One row per label with all that is known of it; of all labels, unknown ones included, or of those chosen.
        Features are named by their columns."""
        import pyarrow as pa

        at, row = np.nonzero(np.ones(self.value.shape, np.bool_) if chosen is None else chosen)
        value, probability, votes = self.value[at, row], self.probability[at, row], self.votes[at, row]
        known = {
            "id": _named(row, self.ids),
            "digest": _named(row, self.digests),
            "feature": _named(at, columns or self.columns),
            "label": pa.array(value, pa.int8(), mask=value == UNKNOWN),
            "source": _named(self.source[at, row], ["", *SOURCES.values()]),
            "by": _named(self.who[at, row], self.raters),
            "probability": pa.array(probability, pa.float32(), mask=np.isnan(probability)),
        }
        return pa.table(known | {side: pa.array(votes[:, place]) for place, side in enumerate(VOTES)})

    def frame(self) -> pd.DataFrame:
        """One row per example, one nullable 0/1 column per feature."""
        import pandas as pd

        columns = {
            name: pd.arrays.IntegerArray(value.copy(), value == UNKNOWN)
            for name, value in zip(self.columns, self.value, strict=True)
        }
        return pd.DataFrame(columns, index=pd.Index(self.ids, name="id"))

    @classmethod
    def from_arrow(cls, table: pa.Table) -> LabelTable:
        """The table that `to_arrow` has written. Raises ValueError where it is another one."""
        import pyarrow as pa
        import pyarrow.compute as pc

        named = (table.schema.metadata or {}).get(FEATURES)
        if named is None:
            raise ValueError("this Arrow table holds no labels: its metadata name no features")
        listed = json.loads(named)
        features = [LabelledFeature(name, definition) for name, definition, _ in listed]
        found = cls.empty(table["id"].to_pylist(), table["digest"].to_pylist(), features)
        raters: list[str] = [""]
        for place, (_, _, column) in enumerate(listed):
            found.value[place] = pc.fill_null(table[column], pa.scalar(UNKNOWN, pa.int8()))
            found.source[place] = _asked(found.value[place])
            there = {kind: table[f"{column} ({kind})"] for kind in BESIDE if f"{column} ({kind})" in table.column_names}
            if "source" in there:
                found.source[place] = _places(there["source"], ["", *SOURCES.values()])
            if "probability" in there:
                found.probability[place] = there["probability"].to_numpy()
            if "by" in there:
                raters += [name for name in pc.unique(there["by"]).to_pylist() if name and name not in raters]
                found.who[place] = _places(there["by"], raters)
            found.votes[place] = _one_vote(found.value[place], found.source[place])
            for number, side in enumerate(VOTES):
                if side in there:
                    found.votes[place, :, number] = there[side].to_numpy()
        return replace(found, raters=raters)


def _asked(value: NDArray[np.int8]) -> NDArray[np.uint8]:
    return np.where(value == UNKNOWN, np.uint8(Source.NONE), np.uint8(Source.ASKED))


def _one_vote(value: NDArray[np.int8], source: NDArray[np.uint8]) -> NDArray[np.uint16]:
    """As if each asked label were a single vote."""
    asked = source == Source.ASKED
    return np.stack([asked & (value == 1), asked & (value == 0), np.zeros_like(asked)], axis=-1).astype(np.uint16)


def _alike(cell: Any, value: NDArray[np.int8]) -> NDArray[Any]:
    return np.broadcast_to(cell, value.shape)


def _named(places: NDArray[np.integer[Any]], names: Sequence[str]) -> pa.DictionaryArray:
    """Texts by their places; null for an empty one."""
    import pyarrow as pa

    empty = [place for place, name in enumerate(names) if not name]
    indices = pa.array(places.astype(np.int32), pa.int32(), mask=np.isin(places, empty) if empty else None)
    return pa.DictionaryArray.from_arrays(indices, pa.array(list(names), pa.string()))


def _places(texts: pa.ChunkedArray, names: Sequence[str]) -> NDArray[np.integer[Any]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    known = pc.fill_null(pc.cast(texts, pa.string()), "")
    found: NDArray[np.int32] = pc.index_in(known, value_set=pa.array(list(names), pa.string())).to_numpy()
    return found
