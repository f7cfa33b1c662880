"""What a person has chosen to see, as an address holds it. The page's own script reads and writes the same words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

MARKS = ("unknown", "doubtful", "contradicted", "corrected", "predicted")  # of a label, beside yes and no
OF_A_FEATURE = ("yes", "no", *MARKS)
MOST_WORDS = 20


@dataclass(frozen=True)
class BrowseChoice:
    """`features` are pairs of a mark and a feature, `any` marks that any feature may have. Columns are named by
    `is.NAME` (one of these values), `empty.NAME`, `from.NAME` and `to.NAME`; `look` finds values by a part of them."""

    features: tuple[tuple[str, str], ...] = ()
    any: tuple[str, ...] = ()
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    empty: frozenset[str] = frozenset()
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    look: Mapping[str, str] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    sort: str = "order"
    reverse: bool = False

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> BrowseChoice:
        """Of what an address says; what it says beside that is ignored."""
        features, marks, values, empty = list[tuple[str, str]](), list[str](), dict[str, list[str]](), set[str]()
        low, high, look, plain = dict[str, float](), dict[str, float](), dict[str, str](), dict[str, str]()
        for key, value in pairs:
            kind, dot, name = key.partition(".")
            if not dot and kind in OF_A_FEATURE:
                features.append((kind, value))
            elif not dot and kind == "any" and value in MARKS:
                marks.append(value)
            elif not dot:
                plain.setdefault(kind, value)
            elif kind == "is":
                values.setdefault(name, []).append(value)
            elif kind == "empty":
                empty.add(name)
            elif kind in ("from", "to") and (number := _number(value)) is not None:
                (low if kind == "from" else high)[name] = number
            elif kind == "look":
                look[name] = value
        return cls(
            features=tuple(dict.fromkeys(features)),
            any=tuple(dict.fromkeys(marks)),
            values={name: tuple(dict.fromkeys(chosen)) for name, chosen in values.items()},
            empty=frozenset(empty),
            ranges={name: (low.get(name, -math.inf), high.get(name, math.inf)) for name in {**low, **high}},
            look=look,
            words=tuple(plain.get("q", "").lower().split()[:MOST_WORDS]),
            sort=plain.get("sort", "order"),
            reverse=plain.get("reverse") == "1",
        )

    @property
    def columns(self) -> set[str]:
        return {*self.values, *self.empty, *self.ranges}


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
