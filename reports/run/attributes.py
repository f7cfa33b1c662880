"""Attributes with values: one column of categories, made of features that are its values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery import UNKNOWN

if TYPE_CHECKING:
    import pandas as pd

NONE_OF_THESE = "none of these"


@dataclass(frozen=True, slots=True)
class Value:
    name: str
    definition: str = ""
    feature: str = ""  # that stands for it; empty where none does


@dataclass(frozen=True, eq=False)
class Attribute:
    name: str
    definition: str
    values: tuple[Value, ...]
    codes: NDArray[np.int64]  # of each example the place of its value, or one after the last for none; UNKNOWN
    ordered: bool = False  # the values are in their order
    scale: bool = False  # the features include one another, the widest first: levels rather than values
    error: float = 0.0  # share of the features' labels that must be wrong if it is one
    asked: int = 0  # examples whose value was asked

    @property
    def categories(self) -> list[str]:
        return [*(value.name for value in self.values), NONE_OF_THESE]

    @property
    def counts(self) -> list[tuple[str, int]]:
        """How many examples have each value, those without one at the end."""
        counted = Counter(self.codes.tolist())
        return [(name, counted[place]) for place, name in enumerate(self.categories)]

    @property
    def unknown(self) -> int:
        return int((self.codes == UNKNOWN).sum())

    @property
    def coverage(self) -> float:
        """Share of the examples whose value is known that have one."""
        known = int((self.codes != UNKNOWN).sum())
        return int(((self.codes != UNKNOWN) & (self.codes < len(self.values))).sum()) / max(known, 1)

    def text(self, row: int) -> str | None:
        code = int(self.codes[row])
        return None if code == UNKNOWN else self.categories[code]

    def texts(self) -> list[str | None]:
        names = self.categories
        return [None if code == UNKNOWN else names[code] for code in self.codes.tolist()]

    def column(self, index: pd.Index[Any] | None = None) -> pd.Series[Any]:
        """A categorical column, null where the value is not known. The order of a scale is from none up."""
        import pandas as pd

        names = self.categories
        order = [names[-1], *names[:-1]] if self.ordered else names
        made = pd.Categorical(self.texts(), categories=order, ordered=self.ordered)
        return pd.Series(made, index=index, name=self.name)

    @property
    def classes(self) -> tuple[NDArray[np.int8], NDArray[np.float64]]:
        """Which features each value has, and then none of them; and how often it was found."""
        linked = [place for place, value in enumerate(self.values) if value.feature]
        patterns = np.zeros((len(self.values) + 1, len(linked)), np.int8)
        for column, place in enumerate(linked):
            patterns[place : len(self.values) if self.scale else place + 1, column] = 1
        counts = np.array([count for _, count in self.counts], np.float64) + 0.1
        return patterns, counts / counts.sum()

    def codes_by_id(self, ids: Sequence[str]) -> dict[str, int]:
        return {name: code for name, code in zip(ids, self.codes.tolist(), strict=True) if code != UNKNOWN}

    def to_json(self) -> dict[str, Any]:
        """All but the values of examples."""
        return {
            "name": self.name,
            "definition": self.definition,
            "values": [[value.name, value.definition, value.feature] for value in self.values],
            "ordered": self.ordered,
            "scale": self.scale,
            "error": round(self.error, 6),
            "asked": self.asked,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], by_id: Mapping[str, int], ids: Sequence[str]) -> Attribute:
        values = tuple(Value(name, definition, feature) for name, definition, feature in data["values"])
        codes = np.array([by_id.get(name, UNKNOWN) for name in ids], np.int64)
        codes[(codes < 0) | (codes > len(values))] = UNKNOWN
        terms = {key: data[key] for key in ("ordered", "scale", "error", "asked") if key in data}
        return cls(data["name"], data["definition"], values, codes, **terms)


def relinked(
    attributes: Sequence[Attribute], features: Collection[str], renamed: Mapping[str, str]
) -> tuple[Attribute, ...]:
    """The attributes after features were renamed or taken out: a value stays without its feature."""
    return tuple(
        replace(made, values=tuple(_linked(value, features, renamed) for value in made.values)) for made in attributes
    )


def _linked(value: Value, features: Collection[str], renamed: Mapping[str, str]) -> Value:
    name = renamed.get(value.feature, value.feature)
    return replace(value, feature=name if name in features else "")
