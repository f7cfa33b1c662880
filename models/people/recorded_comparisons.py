"""Answers of people to comparisons, replayed from a table.

The table is a CSV file with the columns question (a kind, e.g. left-right or two-of-three), left, right and answer, and
optionally definition and worker. `left` are the examples that have what the answer names and `right` those that lack
it, separated by |; an empty answer is NONE. Voter k is the k-th row of the table that answers the question."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from discovery import Kind
from models.oracle import Answer, Compare, Feature, Money, OracleError, Usage, Verdict
from sources import Example

COLUMNS = ("question", "left", "right", "answer")
BETWEEN = "|"
NOT_THERE = "not in the table of recorded comparisons"
SIDES = {Kind.TWO_OF_THREE: (2, 1), Kind.PAIR: (1, 1), Kind.ONE_OF_THREE: (1, 2), Kind.TAG: (1, 0)}
GIVEN_SIDES = (Kind.LEFT_RIGHT, Kind.GROUPS)  # the question itself says which example is on which side
Place = tuple[str, tuple[str, ...], tuple[str, ...]]  # what identifies a question: kind, examples, and those opposite


@dataclass(frozen=True, slots=True)
class RecordedComparison:
    """One row of the table; no feature is NONE."""

    kind: Kind
    left: tuple[str, ...]
    right: tuple[str, ...]
    feature: Feature | None
    worker: str

    @property
    def place(self) -> Place:
        return _place(self.kind, self.left, self.right)

    def question(self, of: Mapping[str, Example]) -> Compare | None:
        """As it is put to anybody; None where it is about an example that is not there."""
        left, right = self.place[1:]
        if not all(name in of for name in (*left, *right)):
            return None
        return Compare(self.kind, tuple(of[name] for name in left), tuple(of[name] for name in right))

    def answer(self, question: Compare, price: Money) -> Answer:
        none = Answer(question, Verdict.NONE, self.worker, cost=price, usage=Usage(requests=1))
        if self.feature is None:
            return none
        shown = tuple(place for place, example in enumerate(question.examples) if example.id in self.left)
        if question.kind is Kind.GROUPS:
            shown = tuple(range(len(question.examples)))
        return replace(none, verdict=Verdict.FEATURE, feature=self.feature, shown=shown)


class RecordedComparisons:
    def __init__(self, rows: Iterable[RecordedComparison] = (), *, price: Money = 0) -> None:
        self._price = price
        self._by_place: dict[Place, list[RecordedComparison]] = {}
        for row in rows:
            self._by_place.setdefault(row.place, []).append(row)

    def __len__(self) -> int:
        return len(self._by_place)

    def questions(self, examples: Sequence[Example]) -> list[Compare]:
        """Those that are about these examples only, each once, in the order of the table."""
        of = {example.id: example for example in examples}
        asked = (rows[0].question(of) for rows in self._by_place.values())
        return [question for question in asked if question is not None]

    def answer(self, question: Compare) -> Answer:
        sides = ([example.id for example in side] for side in (question.examples, question.without))
        rows = self._by_place.get(_place(question.kind, *sides), [])
        if question.voter >= len(rows):
            return Answer(question, Verdict.REFUSED, "nobody", note=NOT_THERE)
        return rows[question.voter].answer(question, self._price)


def read_comparisons(
    where: Path, table: csv.DictReader[str], cell: Callable[[str], str], price: Money
) -> RecordedComparisons:
    rows = []
    for number, row in enumerate(table, start=2):
        cells = {name: cell((row.get(name) or "").strip()) for name in (*COLUMNS, "definition", "worker")}
        try:
            rows.append(_row(cells))
        except ValueError as error:
            raise OracleError(f"recorded:{where}, line {number}: {error}") from None
    return RecordedComparisons(rows, price=price)


def _place(kind: Kind, left: Iterable[str], right: Iterable[str]) -> Place:
    first, others = tuple(sorted(left)), tuple(sorted(right))
    return (kind.value, first, others) if kind in GIVEN_SIDES else (kind.value, tuple(sorted((*first, *others))), ())


def _row(cells: Mapping[str, str]) -> RecordedComparison:
    kinds = (*SIDES, *GIVEN_SIDES)
    kind = next((kind for kind in kinds if kind.value == cells["question"]), None)
    if kind is None:
        raise ValueError(f"question {cells['question']!r}: write one of {', '.join(kind.value for kind in kinds)}")
    left, right = (tuple(filter(None, map(str.strip, cells[side].split(BETWEEN)))) for side in ("left", "right"))
    wanted, sizes = SIDES.get(kind), (len(left), len(right))
    if wanted is None:
        if not left or not right:
            raise ValueError(f"a {kind.value} question needs examples in left and in right")
    elif (sum(sizes) != sum(wanted)) if not cells["answer"] else sizes != wanted:
        raise ValueError(
            f"a {kind.value} question has {wanted[0]} in left and {wanted[1]} in right, not {sizes[0]} and {sizes[1]}: "
            f"separate examples by {BETWEEN}"
        )
    feature = Feature(cells["answer"], cells["definition"]) if cells["answer"] else None
    return RecordedComparison(kind, left, right, feature, cells["worker"] or "somebody")
