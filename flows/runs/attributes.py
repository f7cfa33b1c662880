"""Make attributes with values of a run's features: hair colour of black, blonde and grey hair.

Labels say which features may exclude one another, the oracle which of them are values of one attribute, and labels
again whether they are: a family that does not exclude is not forced. What the labels leave open is then asked, one
value for each example. All of it is one change in the log of the run, which `features RUN undo` takes back."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery import UNKNOWN, same_name
from twothirds.discovery.families import (
    NOT_ASKED,
    Candidate,
    best_family,
    candidates,
    exclusive,
    fit,
    groups_by_words,
    levels,
    open_rows,
    values_of,
)
from twothirds.flows.discover.preparation import Prepared
from twothirds.flows.estimate import Confirm, Pricing, nobody, unanswered_by
from twothirds.flows.events import SILENT, Events
from twothirds.flows.runs.curate import CurationRequest, CurationResult, asking
from twothirds.models import (
    MICRO,
    SEVERAL,
    Answer,
    Choose,
    Crowd,
    Family,
    Feature,
    Money,
    Question,
    Verdict,
    in_usd,
)
from twothirds.reports import Run
from twothirds.reports.curation import plan_change, record_change
from twothirds.reports.run import SAME, Attribute, Findings, RunError, Value
from twothirds.sources import Example
from twothirds.store import ActiveRun
from twothirds.studio.web import plural

ROUNDS = 3  # of questions for names: what one leaves over is put together again
SHOWN = 3  # examples that seem to have none of a family's features
FEW_WITHOUT = 0.1  # share of the examples below which no value is looked for
SAMPLE = 100  # examples whose question is priced
MOST_SEVERAL, FEWEST_SEVERAL = 0.05, 3  # of the examples that may have several values, and how many say anything
USUAL_VOTES = 1.3  # of a value that is asked
LEAST_VOTES = 3  # of a model on a value that stays open, whatever the votes on a label


def attributes(
    run: Run,
    *,
    confirm: Confirm = nobody,
    budget: str | None = None,
    store: str | None = None,
    dataset: str | None = None,
    events: Events = SILENT,
) -> CurationResult:
    """Propose attributes and say what they cost; make them if that is confirmed or a budget is given."""
    families = Families(run.findings)
    found = families.next_candidates()
    if not found:
        return CurationResult({"families": [], "done": False}, ["no features of this run seem to exclude one another"])
    wanted = CurationRequest("attributes", [], budget=budget, store=store, dataset=dataset)
    with asking(run, wanted, events) as (prepared, crowd, record):
        making = _Making(run, families, prepared, crowd, record, events)
        price, lines = making.price(found)
        if budget is None and not confirm(lines):
            return CurationResult(price | {"done": False}, [*lines, "nothing was changed: add --yes to do it"])
        made = making.make(found)
    return _result(made, families, price)


@dataclass
class _Making:
    run: Run
    families: Families
    prepared: Prepared
    crowd: Crowd
    record: ActiveRun
    events: Events

    def make(self, candidates: list[Candidate]) -> list[MadeFamily]:
        """Ask for names, then for values. Raises where the budget or the oracle stops it; what came is kept."""
        self.record.status = "failed"
        self._name(candidates)
        hard = hard_for([family.contradicted for family in self.families.made])
        for family, rows in zip(self.families.made, hard, strict=True):
            self._choose(family, rows)
        made = [family for family in self.families.made if not family.withdrawn]
        if made:
            found = [family.attribute() for family in made]
            change = plan_change(self.run, "attributes", {"attributes": [attribute.to_json() for attribute in found]})
            codes = {attribute.name: attribute.codes_by_id(self.run.findings.ids) for attribute in found}
            record_change(self.run, change, {}, self.crowd.ledger.cost / MICRO, codes)
        self.record.status = "done"
        return made

    def _name(self, found: list[Candidate]) -> None:
        for _ in range(ROUNDS):
            questions = [self._family(candidate) for candidate in found]
            with self.events.waiting(f"asking what {plural(len(questions), 'group')} of features have in common"):
                answers = self._ask(questions)
            for candidate, question in zip(found, questions, strict=True):
                self.families.learn(candidate, answers.get(question))
            found = self.families.next_candidates()
            if not found:
                return

    def _choose(self, family: MadeFamily, hard: NDArray[np.bool_]) -> None:
        """Votes on what is open, until labels and votes settle it; a vote at least on what is hard."""
        for voter in range(self._votes):
            rows = np.flatnonzero(family.is_open() | (hard & family.can_be_asked if voter == 0 else False)).tolist()
            if not rows:
                return
            asked = {self._choice(family.attribute_feature, family.value_features, row, voter): row for row in rows}
            with self.events.waiting(f"asking {plural(len(rows), 'value')} of {family.name}"):
                answers = self._ask(list(asked))
            family.weigh({asked[question]: answer for question, answer in answers.items()})

    def _ask(self, questions: Sequence[Question]) -> dict[Any, Answer]:
        return {answer.question: answer for answer in self.crowd.ask(questions)}

    def _family(self, candidate: Candidate) -> Family:
        """With some examples that seem to have none of the features, where there are more than a few."""
        labels = self.families.labels[:, list(candidate.columns)]
        without = np.flatnonzero((labels == 0).all(axis=1))
        shown = SHOWN if len(without) > FEW_WITHOUT * len(labels) and not candidate.scale else 0
        examples = tuple(self._example(row) for row in without[:shown].tolist())
        return Family(tuple(self.families.features[column] for column in candidate.columns), examples, candidate.scale)

    def _choice(self, attribute: Feature, values: tuple[Feature, ...], row: int, voter: int) -> Choose:
        return Choose(attribute, values, self._example(row), voter)

    @property
    def _votes(self) -> int:
        """At most, of a value that votes and labels leave open."""
        return votes_on_values(self.prepared.settings.votes, self.prepared.members.labels.identity.kind)

    def _example(self, row: int) -> Example:
        name = self.run.findings.ids[row]
        if name not in self._by_id:
            raise RunError(f"example {name!r} is not in the data set any more: say where it is with --dataset")
        return self._by_id[name]

    def __post_init__(self) -> None:
        self._by_id = {example.id: example for example in self.prepared.dataset.examples}
        self._pricing = Pricing(self.prepared.members)
        self._unanswered = unanswered_by(self.prepared.members, self.prepared.store)

    def price(self, found: list[Candidate]) -> tuple[dict[str, Any], list[str]]:
        """What is asked, likely and at most: of the groups that look like an attribute, and of all of them."""
        names: list[Question] = [self._family(candidate) for candidate in found]
        likely, most = self._cost(names)
        most *= ROUNDS
        hopeful = [candidate for candidate in map(self._hopeful, found) if candidate is not None]
        values, everyone = 0, np.arange(len(self.families.labels))
        for candidate in hopeful:
            rows = self._likely_open(candidate)
            likely += self._values_cost(candidate, rows)[0]
            values += len(rows)
        exclusive_ones = [candidate for candidate in found if not candidate.scale]
        most += sum(self._values_cost(candidate, everyone)[1] for candidate in exclusive_ones)
        most_calls = len(names) * ROUNDS + len(exclusive_ones) * len(everyone) * self._votes
        groups = [self._names(candidate) for candidate in hopeful]
        lines = [
            f"may be {'levels of one scale' if candidate.scale else 'values of one attribute'}: {', '.join(names)}"
            for candidate, names in zip(hopeful, groups, strict=True)
        ]
        calls = f"{plural(len(names), 'question')} for names and likely {plural(values, 'question')} for values"
        lines.append(f"asks {calls}, {most_calls:,} in all at most")
        lines.append(f"that is likely {in_usd(likely, at_most=True)} and {in_usd(most, at_most=True)} at most")
        usd = {"likely_usd": likely / MICRO, "usd": most / MICRO}
        return {"proposed": groups, "calls": len(names) + values, "most_calls": most_calls} | usd, lines

    def _hopeful(self, candidate: Candidate) -> Candidate | None:
        """What of a group is likely to be an attribute: names that share a word, or all if they leave few examples
        out; and labels that support it."""
        columns, labels = candidate.columns, self.families.labels
        group = next(iter(groups_by_words(self._names(candidate))), None)
        if group is not None and not candidate.scale:
            columns = tuple(columns[place] for place in group.members)
        elif (labels[:, list(columns)] == 0).all(axis=1).mean() > FEW_WITHOUT:
            return None
        members = best_family(labels, columns, scale=candidate.scale)
        return Candidate(tuple(members), candidate.scale) if members else None

    def _names(self, candidate: Candidate) -> list[str]:
        return [self.families.features[column].name for column in candidate.columns]

    def _likely_open(self, candidate: Candidate) -> Any:
        if candidate.scale:
            return np.arange(0)
        labels = self.families.labels[:, list(candidate.columns)]
        new = int((labels == 0).all(axis=1).mean() > FEW_WITHOUT)
        return np.flatnonzero(open_rows(fit(labels, exclusive(len(candidate.columns), new)).posterior))

    def _values_cost(self, candidate: Candidate, rows: Any) -> tuple[Money, Money]:
        """Of a sample of the examples, taken for all."""
        sample = rows[:: max(len(rows) // SAMPLE, 1)].tolist()
        attribute, values = Feature("an attribute"), tuple(self.families.features[n] for n in candidate.columns)
        likely, most = self._cost([self._choice(attribute, values, row, 0) for row in sample])
        times = len(rows) / max(len(sample), 1)
        return round(likely * times * USUAL_VOTES), round(most * times * self._votes)

    def _cost(self, questions: Sequence[Question]) -> tuple[Money, Money]:
        """Likely and at most; nothing for what is kept."""
        expected = self._pricing.taken(self._unanswered(questions), doubtful=0.0)
        return expected.cost, expected.most


def hard_for(contradicted: Sequence[NDArray[np.bool_]]) -> list[NDArray[np.bool_]]:
    """For each family the examples whose labels contradict another one: wrong labels come together."""
    counts = np.sum(contradicted, axis=0) if contradicted else np.zeros(0)
    return [counts - own > 0 for own in contradicted]


def _result(made: list[MadeFamily], families: Families, price: dict[str, Any]) -> CurationResult:
    lines, data = [], []
    for family in made:
        attribute = family.attribute()
        counted = ", ".join(f"{name} {count:,}" for name, count in attribute.counts if count)
        unknown = f", unknown {attribute.unknown:,}" if attribute.unknown else ""
        lines.append(f"{attribute.name}: {counted}{unknown} ({attribute.asked:,} asked)")
        data.append(
            {
                "name": attribute.name,
                "values": dict(attribute.counts),
                "features": [value.feature for value in attribute.values if value.feature],
                "ordered": attribute.ordered,
                "coverage": round(attribute.coverage, 4),
                "unknown": int((attribute.codes == UNKNOWN).sum()),
                "asked": attribute.asked,
                "label_error": round(attribute.error, 4),
            }
        )
    lines += families.rejected
    if made:
        lines.append("done: `report`, `export` and `enrich` use them from now on; `features RUN undo` takes them back")
    else:
        lines.append("no attribute was made, and nothing was changed")
    return CurationResult(price | {"families": data, "rejected": families.rejected, "done": bool(made)}, lines)


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
