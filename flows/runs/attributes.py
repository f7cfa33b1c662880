"""Make attributes with values of a run's features: hair colour of black, blonde and grey hair.

Labels say which features may exclude one another, the oracle which of them are values of one attribute, and labels
again whether they are: a family that does not exclude is not forced. What the labels leave open is then asked, one
value for each example. All of it is one change in the log of the run, which `features RUN undo` takes back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discovery import UNKNOWN
from discovery.families import Candidate, best_family, exclusive, fit, groups_by_words, open_rows
from flows.discover.preparation import Prepared
from flows.estimate import Measuring, forecast_of
from flows.progress import SILENT, Display
from flows.runs.curate import CurationRequest, CurationResult, asking
from flows.runs.families import USUAL_VOTES, Families, MadeFamily, votes_on_values
from models import MICRO, Answer, Choose, Family, Feature, Money, Question, Recorded, in_usd
from models.people import RecordedCrowd
from reports import Run
from reports.curation import plan_change, record_change
from reports.drawing import plural
from reports.run import RunError
from sources import Example
from store import ActiveRun

ROUNDS = 3  # of questions for names: what one leaves over is put together anew
SHOWN = 3  # examples that seem to have none of a family's features
FEW_WITHOUT = 0.1  # share of the examples below which no value is looked for
SAMPLE = 100  # examples whose question is priced


def attributes(
    run: Run,
    *,
    confirmed: bool = False,
    budget: str | None = None,
    store: str | None = None,
    dataset: str | None = None,
    display: Display = SILENT,
) -> CurationResult:
    """Propose attributes and say what they cost; make them if that is confirmed or a budget is given."""
    families = Families(run.findings)
    found = families.next_candidates()
    if not found:
        return CurationResult({"families": [], "done": False}, ["no features of this run seem to exclude one another"])
    wanted = CurationRequest("attributes", [], budget=budget, store=store, dataset=dataset)
    with asking(run, wanted, display) as (prepared, recorded, record):
        making = _Making(run, families, prepared, recorded, record, display)
        price, lines = making.price(found)
        if not confirmed and budget is None and not display.confirm(lines):
            return CurationResult(price | {"done": False}, [*lines, "nothing was changed: add --yes to do it"])
        made = making.make(found)
    return _result(made, families, price)


@dataclass
class _Making:
    run: Run
    families: Families
    prepared: Prepared
    recorded: Recorded | RecordedCrowd
    record: ActiveRun
    display: Display

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
            record_change(self.run, change, {}, self.recorded.cost / MICRO, codes)
        self.record.status = "done"
        return made

    def _name(self, found: list[Candidate]) -> None:
        for _ in range(ROUNDS):
            questions = [self._family(candidate) for candidate in found]
            with self.display.waiting(f"asking what {plural(len(questions), 'group')} of features have in common"):
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
            with self.display.waiting(f"asking {plural(len(rows), 'value')} of {family.name}"):
                answers = self._ask(list(asked))
            family.weigh({asked[question]: answer for question, answer in answers.items()})

    def _ask(self, questions: Sequence[Question]) -> dict[Any, Answer]:
        return {answer.question: answer for answer in self.recorded.ask(questions)}

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
        who = self.recorded.labels if isinstance(self.recorded, RecordedCrowd) else self.recorded
        return votes_on_values(self.prepared.settings.votes, who.identity.kind)

    def _example(self, row: int) -> Example:
        name = self.run.findings.ids[row]
        if name not in self._by_id:
            raise RunError(f"example {name!r} is not in the data set any more: say where it is with --dataset")
        return self._by_id[name]

    def __post_init__(self) -> None:
        self._by_id = {example.id: example for example in self.prepared.dataset.examples}
        measured = Measuring(self.prepared.dataset.examples)
        self._forecast = partial(forecast_of, self.prepared.oracle, measured=measured, doubtful=0.0)

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
        attribute, values = (
            Feature("an attribute"),
            tuple(self.families.features[column] for column in candidate.columns),
        )
        likely, most = self._cost([self._choice(attribute, values, row, 0) for row in sample])
        times = len(rows) / max(len(sample), 1)
        return round(likely * times * USUAL_VOTES), round(most * times * self._votes)

    def _cost(self, questions: Sequence[Question]) -> tuple[Money, Money]:
        """Likely and at most; nothing for what is kept."""
        bounds = self.recorded.estimate(questions) if questions else []
        unknown = [question for question, bound in zip(questions, bounds, strict=True) if bound]
        expected = self._forecast(questions=unknown)
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
