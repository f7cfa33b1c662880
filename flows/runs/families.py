"""The search for a run's families, answer by answer: which groups are asked about next, and what was made of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from discovery import UNKNOWN, same_name
from discovery.families import (
    NOT_ASKED,
    Candidate,
    best_family,
    candidates,
    exclusive,
    fit,
    levels,
    open_rows,
    values_of,
)
from models import SEVERAL, Answer, Feature, Verdict
from reports import Run
from reports.run import SAME, Attribute, Findings, Value

MOST_SEVERAL, FEWEST_SEVERAL = 0.05, 3  # of the examples that may have several values, and how many say anything
USUAL_VOTES = 1.3  # of a value that is asked
LEAST_VOTES = 3  # of a model on a value that stays open, whatever the votes on a label


def votes_on_values(votes: int, kind: str) -> int:
    """At most so many votes of a kind of oracle on a value, where a label takes `votes`. People are not asked for more:
    every vote takes another person."""
    return votes if kind == "human" else max(votes, LEAST_VOTES)


def attributes_of(text: str) -> tuple[Attribute, ...]:
    """The attributes that were made of a run's features, if the text names a run folder."""
    return Run(Path(text)).findings.attributes if os.path.isdir(text) else ()


class Families:
    """Columns are places in `features`, rows those of the findings."""

    def __init__(self, findings: Findings) -> None:
        """Without features that repeat others, or are not labelled in full, or have their attribute already."""
        linked = {value.feature for attribute in findings.attributes for value in attribute.values}
        chosen = [
            found for found in findings.found if not (found.look or found.twin.startswith(SAME) or found.name in linked)
        ]
        self.features = [Feature(found.name, found.definition) for found in chosen]
        self.labels = np.array([found.labels for found in chosen], np.int8).reshape(len(chosen), len(findings.ids)).T
        self.made: list[MadeFamily] = []
        self.rejected: list[str] = []  # a line each
        self._names = {attribute.name for attribute in findings.attributes}
        self._apart: list[frozenset[int]] = []
        self._placed: set[int] = set()
        self._asked: set[Candidate] = set()

    def next_candidates(self) -> list[Candidate]:
        """Groups that were not asked about yet."""
        rows = (self.labels != UNKNOWN).any(axis=1)
        names = [feature.name for feature in self.features]
        found = candidates(self.labels[rows], names, self._apart, self._placed)
        new = [candidate for candidate in found if candidate not in self._asked]
        self._asked.update(new)
        return new

    def learn(self, candidate: Candidate, answer: Answer | None) -> None:
        if answer is None or answer.feature is None:
            self._apart.append(frozenset(candidate.columns))
            if answer is not None and answer.verdict is not Verdict.NONE:
                self.rejected.append(f"not asked again: {self._listed(candidate.columns)} ({answer.note})")
            return
        members = [column for place in answer.shown if (column := candidate.columns[place]) not in self._placed]
        if len(members) < 2:  # another group has them
            return
        known, new = self._known([named.feature for named in answer.more], members)
        chosen = best_family(self.labels, [*members, *known], scale=candidate.scale)
        if len(set(chosen) & set(members)) < 2:
            self._apart.append(frozenset(candidate.columns))
            why = "for their labels do not exclude one another"
            self.rejected.append(f"not made: {answer.feature.name} of {self._listed(members)}, {why}")
            return
        if left := [column for column in members if column not in chosen]:
            self.rejected.append(f"not a value of {answer.feature.name}, by its labels: {self._listed(left)}")
        self._placed.update(chosen)
        attribute = Feature(self._free(answer.feature.name), answer.feature.definition)
        self.made.append(
            MadeFamily(
                attribute,
                tuple(self.features[column] for column in chosen),
                () if candidate.scale else tuple(new),
                self.labels[:, chosen],
                ordered=(answer.ordered or candidate.scale) and not (new or known),
                scale=candidate.scale,
            )
        )

    def _known(self, missing: Sequence[Feature], members: Sequence[int]) -> tuple[list[int], list[Feature]]:
        """Of values that are said to be missing, those that are features of the run, and the others."""
        known: list[int] = []
        new: list[Feature] = []
        for value in missing:
            place = next((n for n, feature in enumerate(self.features) if same_name(feature.name, value.name)), None)
            if place is None:
                new.append(value)
            elif place not in (*members, *known) and place not in self._placed:
                known.append(place)
        return known, new

    def _free(self, name: str) -> str:
        taken, number = self._names, 2
        free = name
        while free in taken:
            free, number = f"{name} {number}", number + 1
        taken.add(free)
        return free

    def _listed(self, columns: Sequence[int]) -> str:
        return ", ".join(self.features[column].name for column in columns)


@dataclass
class MadeFamily:
    """A family of features, the values that no feature stands for, and what was asked of its examples."""

    attribute_feature: Feature
    members: tuple[Feature, ...]
    new: tuple[Feature, ...]
    labels: NDArray[np.int8]  # one row per example, one column per member
    ordered: bool = False
    scale: bool = False
    withdrawn: bool = False  # too many examples have several of its values

    def __post_init__(self) -> None:
        count = len(self.members)
        self._classes = levels(count) if self.scale else exclusive(count, len(self.new))
        self._fitted = fit(self.labels, self._classes)
        self._choices = np.full((len(self.labels), 0), NOT_ASKED, np.int64)
        self._asked: set[int] = set()
        self._with_several: set[int] = set()

    @property
    def name(self) -> str:
        return self.attribute_feature.name

    @property
    def value_features(self) -> tuple[Feature, ...]:
        return (*self.members, *self.new)

    @property
    def can_be_asked(self) -> NDArray[np.bool_]:
        """Examples that have labels. Of a scale labels alone decide: each of its levels was asked."""
        known: NDArray[np.bool_] = (self.labels != UNKNOWN).any(axis=1)
        return known & (not self.scale)

    def is_open(self) -> NDArray[np.bool_]:
        """Examples whose value the labels, and votes so far, do not tell."""
        return self.can_be_asked & open_rows(self._fitted.posterior)

    @property
    def contradicted(self) -> NDArray[np.bool_]:
        """Examples whose labels are not those of any value: some label must be wrong."""
        likely = self._classes[self._fitted.posterior.argmax(axis=1)]
        found: NDArray[np.bool_] = ((self.labels != UNKNOWN) & (self.labels != likely)).any(axis=1)
        return found

    def weigh(self, answers: Mapping[int, Answer]) -> None:
        """One more vote, of some rows, beside the labels and the votes before it."""
        vote = np.full((len(self.labels), 1), NOT_ASKED, np.int64)
        for row, answer in answers.items():
            if answer.verdict is Verdict.FEATURE:
                vote[row] = answer.shown[0]
            elif answer.verdict is Verdict.NONE and answer.note == SEVERAL:
                self._with_several.add(row)
            elif answer.verdict is Verdict.NONE:
                vote[row] = len(self.value_features)
        self._asked |= set(answers)
        self._choices = np.hstack([self._choices, vote])
        self.withdrawn = len(self._with_several) > max(FEWEST_SEVERAL, MOST_SEVERAL * len(self.labels))
        self._fitted = fit(self.labels, self._classes, self._choices)

    def attribute(self) -> Attribute:
        known = (self.labels != UNKNOWN).any(axis=1)
        codes = np.where(known, values_of(self._fitted.posterior), UNKNOWN)
        values = [Value(member.name, member.definition, member.name) for member in self.members]
        values += [Value(value.name, value.definition) for value in self.new]
        attribute = self.attribute_feature
        return Attribute(
            attribute.name,
            attribute.definition,
            tuple(values),
            codes,
            ordered=self.ordered,
            scale=self.scale,
            error=self._fitted.error,
            asked=len(self._asked),
        )
