"""The examples of a run with all that they can be chosen, searched and sorted by.

report.html does the same in its own script (catalogue.js): a test holds that both answer alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery import UNKNOWN
from twothirds.reports.browse.columns import BINS, BrowsedColumn, natural_order
from twothirds.reports.run import Findings, FoundFeature

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


Rows = NDArray[np.bool_]
Vectors = NDArray[np.float32]
MOST_VALUES = 12  # of a column that are listed, the most frequent first; others are found by a part of them
ITSELF = -1
NOTHING = -1  # in place of a percentage
Notes = Callable[[int], str]


class LabelMarks:
    """Of one feature, with a row per example. Scores (how much speaks for yes) and doubts are percentages."""

    def __init__(self, found: FoundFeature, ids: Sequence[str]) -> None:
        self.name, self.definition, self.labels = found.name, found.definition, found.labels
        self.by_name: dict[str, NDArray[np.bool_]] = {
            "yes": found.labels == 1,
            "no": found.labels == 0,
            "unknown": found.labels == UNKNOWN,
            "doubtful": found.doubtful,
            "contradicted": found.contradicted(ids),
            "corrected": found.is_corrected,
            "predicted": found.predicted & ~found.is_corrected,
        }
        self.scores = scores_of(found)
        self.doubts = self._doubts(found)

    def _doubts(self, found: FoundFeature) -> NDArray[np.int16]:
        doubts = np.where(self.scores == NOTHING, NOTHING, 100 - np.abs(2 * self.scores - 100))
        undecided = self.by_name["unknown"] & (found.vote_counts.votes > 0)
        doubts[undecided | self.by_name["contradicted"]] = 100
        doubts[self.by_name["corrected"]] = 0
        return doubts.astype(np.int16)


def scores_of(found: FoundFeature) -> NDArray[np.int16]:
    """A person's label; else the probability, the share of yes among the votes, or the label that is known."""
    yes, cast = found.vote_counts.yes, found.vote_counts.yes + found.vote_counts.no
    chance = np.where(cast > 0, yes / np.maximum(cast, 1), np.where(found.labels == UNKNOWN, np.nan, found.labels))
    chance = np.where(np.isnan(found.probability), chance, found.probability)
    chance = np.where(found.is_corrected & (found.labels != UNKNOWN), found.labels, chance)
    return np.where(np.isnan(chance), NOTHING, np.round(100 * np.nan_to_num(chance))).astype(np.int16)


class ExampleCatalogue:
    """`vectors` gives a unit vector per example, zeros where there is none; it is asked for once it is needed."""

    def __init__(
        self,
        findings: Findings,
        texts: Sequence[str | None],
        columns: Sequence[BrowsedColumn],
        vectors: Callable[[], Vectors | None] | None = None,
    ) -> None:
        self.ids, self.texts = findings.ids, texts
        self.features = [LabelMarks(found, findings.ids) for found in findings.found]
        self.columns = {column.name: column for column in columns}
        self._matrix, self._vectors = findings.matrix, vectors
        self._by_name = {feature.name: feature for feature in self.features}
        none = np.zeros(len(self.ids), np.bool_)
        self._any = {
            mark: np.any([none, *(feature.by_name[mark] for feature in self.features)], axis=0) for mark in MARKS
        }
        self._rows = {name: row for row, name in enumerate(self.ids)}
        self._ranks: NDArray[np.intp] | None = None

    def row(self, name: str) -> int | None:
        return self._rows.get(name)

    @property
    def embedded(self) -> bool:
        return self._vectors is not None

    def find(self, choice: BrowseChoice, start: int = 0, count: int = 0) -> dict[str, Any]:
        """How many match, how many would if something else were chosen too, and some of those that match."""
        masks = dict(self._masks(choice))
        fails = np.zeros(len(self.ids), np.int32)
        for mask in masks.values():
            fails += ~mask

        def without(*facets: tuple[str, str]) -> Rows:
            """What matches if these are not chosen."""
            own = [masks[facet] for facet in facets if facet in masks]
            left: Rows = fails == np.sum([~mask for mask in own], axis=0) if own else fails == 0
            return left

        order, note = self._ordered(choice, np.flatnonzero(fails == 0))
        return {
            "total": len(self.ids),
            "matching": len(order),
            "features": [self._feature_counts(feature, without) for feature in self.features],
            "any": [int((without(("any", mark)) & self._any[mark]).sum()) for mark in MARKS],
            "columns": [self._column_counts(column, choice, without) for column in self.columns.values()],
            "places": order[start : start + count].tolist(),
            "notes": [note(row) for row in order[start : start + count].tolist()],
            "ignored": self._ignored(choice),
        }

    def matching(self, choice: BrowseChoice) -> list[int]:
        masks = [mask for _, mask in self._masks(choice)]
        rows = np.logical_and.reduce(masks) if masks else np.ones(len(self.ids), np.bool_)
        return [int(row) for row in np.flatnonzero(rows)]

    def _masks(self, choice: BrowseChoice) -> Iterator[tuple[tuple[str, str], Rows]]:
        """Of every facet that is chosen which examples it leaves."""
        for mark, name in choice.features:
            if name in self._by_name:
                yield (mark, name), self._by_name[name].by_name[mark]
        for mark in choice.any:
            yield ("any", mark), self._any[mark]
        for name in sorted(choice.columns & self.columns.keys()):
            yield ("column", name), self._in_column(self.columns[name], choice)
        if choice.words:
            yield ("words", ""), self._having(choice.words)

    def _in_column(self, column: BrowsedColumn, choice: BrowseChoice) -> Rows:
        chosen = column.empty if column.name in choice.empty else np.zeros(len(self.ids), np.bool_)
        if column.numbers is not None:
            if column.name in choice.ranges:
                low, high = choice.ranges[column.name]
                chosen = chosen | ((column.numbers >= low) & (column.numbers <= high))
            return chosen
        wanted = set(choice.values.get(column.name, ()))
        places = [place for place, value in enumerate(column.values) if value in wanted]
        return chosen | np.isin(np.asarray(column.codes), places)

    def _having(self, words: Sequence[str]) -> Rows:
        """Each word in the id or in the text; capitals do not matter."""
        found = np.empty(len(self.ids), np.bool_)
        for row, (name, text) in enumerate(zip(self.ids, self.texts, strict=True)):
            searched = f"{name}\n{text or ''}".lower()
            found[row] = all(word in searched for word in words)
        return found

    def _feature_counts(self, feature: LabelMarks, without: Callable[..., Rows]) -> list[int]:
        """Yes, no and unknown take one another's place; the other marks are chosen beside them."""
        name, sides = feature.name, ("yes", "no", "unknown")
        left = without(*((side, name) for side in sides))
        rest = {mark: left if mark in sides else without((mark, name)) for mark in OF_A_FEATURE}
        return [int(np.count_nonzero(feature.by_name[mark] & rest[mark])) for mark in OF_A_FEATURE]

    def _column_counts(
        self, column: BrowsedColumn, choice: BrowseChoice, without: Callable[..., Rows]
    ) -> dict[str, Any]:
        rows = without(("column", column.name))
        empty = int(np.count_nonzero(column.empty & rows))
        if column.numbers is not None:
            return {"bins": _histogram(column.numbers[rows & ~column.empty], *column.span), "empty": empty}
        counted = np.bincount(np.asarray(column.codes)[rows & ~column.empty], minlength=len(column.values))
        part, chosen = choice.look.get(column.name, "").lower(), set(choice.values.get(column.name, ()))
        ranked = np.argsort(-counted, kind="stable")[: np.count_nonzero(counted)].tolist()
        if part:
            ranked = [place for place in ranked if part in column.values[place].lower()]
        own = [place for place, value in enumerate(column.values) if value in chosen] if chosen else []
        listed = list(dict.fromkeys([*ranked[:MOST_VALUES], *own]))
        values = [[column.values[place], int(counted[place])] for place in listed]
        return {"values": values, "more": max(0, len(ranked) - MOST_VALUES), "empty": empty}

    def _ordered(self, choice: BrowseChoice, rows: NDArray[np.intp]) -> tuple[NDArray[np.intp], Notes]:
        """Those rows in the order that is wanted, and what to say of one of them; what has no value is last."""
        kind, _, name = choice.sort.partition(".")
        keys, note, descending = self._sort_keys(kind, name)
        if keys is None:
            return rows[::-1] if choice.reverse else rows, note
        keys = keys[rows].astype(np.float64)
        missing = np.isnan(keys)
        keys = np.where(missing, np.inf, -keys if choice.reverse != descending else keys)
        return rows[np.lexsort((rows, keys, missing))], note

    def _sort_keys(self, kind: str, name: str) -> tuple[NDArray[Any] | None, Notes, bool]:
        """The keys, their notes, and whether the largest come first unless asked otherwise."""
        if kind == "id":
            return self.ranks, _silent, False
        if kind == "column" and name in self.columns:
            column = self.columns[name]
            return np.where(column.empty, np.nan, column.keys), lambda row: column.text(row) or "no value", False
        if kind in ("score", "doubt") and name in self._by_name:
            percents = getattr(self._by_name[name], f"{kind}s")
            return _or_nan(percents), lambda row: _percent(int(percents[row]), kind), True
        if kind == "doubt" and not name and self.features:
            doubts = np.max([feature.doubts for feature in self.features], axis=0)
            return _or_nan(doubts), lambda row: _percent(int(doubts[row]), kind), True
        if kind == "near" and name in self._rows:
            apart = self._apart(self._rows[name])
            return apart, lambda row: _difference(int(apart[row]), len(self.features)), False
        if kind == "embedding" and name in self._rows and self._vectors and (vectors := self._vectors()) is not None:
            alike = vectors @ vectors[self._rows[name]]
            alike[~vectors.any(axis=1)] = np.nan
            return alike, lambda row: "" if np.isnan(alike[row]) else f"{alike[row]:.2f} alike", True
        return None, _silent, False

    @property
    def ranks(self) -> NDArray[np.intp]:
        """Of each example the place of its id, numbers by their value."""
        if self._ranks is None:
            order = sorted(range(len(self.ids)), key=lambda row: natural_order(self.ids[row]))
            self._ranks = np.empty(len(order), np.intp)
            self._ranks[order] = np.arange(len(order))
        return self._ranks

    def _apart(self, row: int) -> NDArray[np.int32]:
        """Twice the features in which each example differs from one, ITSELF for that one; what is unknown of either
        counts half."""
        own = self._matrix[:, [row]]
        unknown = (self._matrix == UNKNOWN) | (own == UNKNOWN)
        apart: NDArray[np.int32] = np.where(unknown, 1, 2 * (self._matrix != own)).sum(axis=0, dtype=np.int32)
        apart[row] = ITSELF
        return apart

    def _ignored(self, choice: BrowseChoice) -> list[str]:
        """What the address names and the run does not have, now."""
        features = [name for _, name in choice.features if name not in self._by_name]
        values = [
            f"{name}: {value}"
            for name in sorted(choice.values.keys() & self.columns.keys())
            for value in choice.values[name]
            if value not in self.columns[name].values
        ]
        return list(dict.fromkeys([*features, *sorted(choice.columns - self.columns.keys()), *values]))


def _histogram(numbers: NDArray[np.float64], low: float, high: float) -> list[int]:
    shares = (numbers - low) / (high - low) if high > low else np.zeros(len(numbers))
    counted: list[int] = np.bincount(np.minimum(BINS - 1, (BINS * shares).astype(np.intp)), minlength=BINS).tolist()
    return counted


def _difference(twice: int, features: int) -> str:
    return "itself" if twice == ITSELF else f"differs in {_halves(twice)} of {features}"


def _halves(twice: int) -> str:
    return f"{twice // 2}½" if twice % 2 and twice > 1 else "½" if twice == 1 else str(twice // 2)


def _percent(percent: int, kind: str) -> str:
    if percent == NOTHING:
        return "not asked"
    return f"{percent}\N{NO-BREAK SPACE}% {'yes' if kind == 'score' else 'doubt'}"


def _or_nan(percents: NDArray[np.int16]) -> NDArray[np.float64]:
    return np.where(percents == NOTHING, np.nan, percents)


def _silent(row: int) -> str:
    del row
    return ""
