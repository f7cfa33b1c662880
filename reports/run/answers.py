"""What was asked and answered, read back from a run folder's answers.jsonl."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery import Kind
from twothirds.reports.run.files import RunError

Counts = NDArray[np.int32]

VOTE_VERDICTS = ("yes", "no", "refused", "unreadable")


@dataclass(frozen=True, slots=True)
class AnsweredComparison:
    """One comparison and its answer, in the order of the questions."""

    kind: Kind
    examples: tuple[str, ...]
    without: tuple[str, ...]
    known: tuple[str, ...]
    verdict: str
    by: str
    feature: str | None
    definition: str
    shown: tuple[int, ...]  # positions of the examples that are said to have it
    cost: int
    seconds: float
    raw: str
    note: str
    more: tuple[AnsweredComparison, ...] = ()  # the same question with each further feature, and its part of the cost

    @property
    def by_feature(self) -> tuple[AnsweredComparison, ...]:
        """One by one for the features of the answer, each with its part of the cost."""
        return (replace(self, cost=self.cost - sum(answer.cost for answer in self.more), more=()), *self.more)

    @property
    def having(self) -> list[str]:
        """The examples said to have the feature."""
        if self.kind is Kind.LEFT_RIGHT:
            return list(self.examples)
        everyone = (*self.examples, *self.without)
        return [everyone[place] for place in self.shown]

    @property
    def lacking(self) -> list[str]:
        having = set(self.having)
        return [name for name in (*self.examples, *self.without) if name not in having]


@dataclass
class VoteCounts:
    """The votes on one feature, example by example in the order of the run's ids."""

    cast: Counts  # a row each for yes, no, refused and unreadable
    probability: NDArray[np.float64]  # mean of the votes that gave one; NaN where none did
    cost: int = 0
    notes: dict[str, int] = field(default_factory=dict)  # why votes cannot be used, and how often
    reviewed: set[int] = field(default_factory=set)  # the examples whose label people decided, in a mixed crowd
    with_probability: dict[int, int] = field(default_factory=dict)  # how many votes gave one, by example

    @classmethod
    def empty(cls, n: int) -> VoteCounts:
        return cls(np.zeros((len(VOTE_VERDICTS), n), np.int32), np.full(n, np.nan))

    @property
    def yes(self) -> Counts:
        row: Counts = self.cast[0]
        return row

    @property
    def no(self) -> Counts:
        row: Counts = self.cast[1]
        return row

    @property
    def abstained(self) -> Counts:
        unusable: Counts = self.cast[2] + self.cast[3]
        return unusable

    @property
    def votes(self) -> Counts:
        """How many were cast on each example."""
        total: Counts = self.cast.sum(axis=0, dtype=np.int32)
        return total

    def count(self, row: int, answer: dict[str, Any]) -> None:
        verdict = answer["verdict"] if answer["verdict"] in VOTE_VERDICTS else VOTE_VERDICTS[-1]
        self.cast[VOTE_VERDICTS.index(verdict), row] += 1
        self.cost += answer["cost"]
        if verdict not in ("yes", "no"):
            reason = answer.get("note") or verdict
            self.notes[reason] = self.notes.get(reason, 0) + 1
        if answer.get("probability") is not None:
            seen = self.with_probability[row] = self.with_probability.get(row, 0) + 1
            mean = 0.0 if seen == 1 else self.probability[row]
            self.probability[row] = mean + (answer["probability"] - mean) / seen


@dataclass(frozen=True)
class Answers:
    comparisons: list[AnsweredComparison]
    tallies: dict[str, VoteCounts]  # by the name of the feature


def read_answers(folder: Path, ids: Sequence[str]) -> Answers:
    """Read line by line: of the label votes only the counts stay in memory."""
    row_of = {name: row for row, name in enumerate(ids)}
    comparisons: list[AnsweredComparison] = []
    tallies: dict[str, VoteCounts] = {}
    for question, answer in _lines(folder / "answers.jsonl"):
        if "examples" in question:
            comparisons.append(_asked(question, answer))
        if question["kind"] not in (Kind.LABEL, Kind.SAME):
            continue
        name = question["feature"]
        if name not in tallies:
            tallies[name] = VoteCounts.empty(len(ids))
        if question["kind"] == Kind.SAME:  # what it took to tell the feature from others is part of its cost
            tallies[name].cost += answer["cost"]
        elif (row := row_of.get(question["example"])) is not None:
            tallies[name].count(row, answer)
            if question.get("people"):
                tallies[name].reviewed.add(row)
    return Answers(comparisons, tallies)


def _asked(question: dict[str, Any], answer: dict[str, Any]) -> AnsweredComparison:
    name, definition = answer["feature"] or (None, "")
    shown_of = len(question["examples"]) + len(question["without"])
    if not all(0 <= place < shown_of for place in answer["shown"]):
        raise ValueError(f"shown {answer['shown']} are not among the examples")
    asked = AnsweredComparison(
        kind=Kind(question["kind"]),
        examples=tuple(map(str, question["examples"])),
        without=tuple(map(str, question["without"])),
        known=tuple(map(str, question["known"])),
        verdict=str(answer["verdict"]),
        by=str(answer["by"]),
        feature=name,
        definition=definition,
        shown=tuple(map(int, answer["shown"])),
        cost=int(answer["cost"]),
        seconds=float(answer["seconds"]),
        raw=str(answer["raw"]),
        note=str(answer.get("note", "")),
    )
    more = answer.get("more", ())
    part = asked.cost // (1 + len(more))
    others = ((str(name), str(words), tuple(map(int, shown))) for name, words, shown in more)
    named = (replace(asked, feature=name, definition=words, shown=shown, cost=part) for name, words, shown in others)
    return replace(asked, more=tuple(named))


def _lines(path: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    try:
        with path.open(encoding="utf-8") as file:
            for line in file:
                row = json.loads(line)
                yield row["question"], row["answer"]
    except (OSError, ValueError, KeyError) as error:
        raise RunError(f"{path} cannot be read ({error}): run discover again") from None
