"""Values of attributes for a table that grows: by its labels, and asked where these leave them open.

They are in attributes.parquet beside the labels: `id`, `digest`, and a column of categories per attribute."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from discovery import UNKNOWN
from discovery.families import NOT_ASKED, open_rows, posterior_of, values_of
from flows.enrich.batches import Labeller
from flows.progress import Display
from flows.runs import votes_on_values
from models import (
    SEVERAL,
    Answer,
    AnswersPending,
    BudgetExhausted,
    Choose,
    Feature,
    OracleError,
    OracleUnavailable,
    Verdict,
)
from reports.drawing import plural
from reports.enrichment import GrowingTable
from reports.run import Attribute, RunError, replace_file
from sources import Example, iter_examples

NAME = "attributes.parquet"
NOTE = b"twothirds"  # the key under which the file's metadata holds what the columns mean
AT_ONCE = 256  # examples that are held at a time


@dataclass
class ValueTable:
    ids: list[str] = field(default_factory=list)
    digests: list[str] = field(default_factory=list)
    attributes: tuple[Attribute, ...] = ()  # with the values of these rows
    labels: list[np.ndarray[Any, np.dtype[np.int8]]] = field(default_factory=list)  # of each attribute's features
    learned: tuple[Attribute, ...] = ()  # as the run has them: how often a value is, and a label wrong

    @classmethod
    def read(cls, folder: Path) -> ValueTable:
        """Empty where there is none."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = folder / NAME
        if not path.exists():
            return cls()
        try:
            table = pq.read_table(path)
            noted = json.loads(table.schema.metadata[NOTE])
            ids = table.column("id").to_pylist()
            made = []
            for place, data in enumerate(noted):
                places = {value[0]: code for code, value in enumerate(data["values"])}
                texts = dict(zip(ids, table.column(place + 2).to_pylist(), strict=True))
                known = {name: places.get(text, len(places)) for name, text in texts.items() if text is not None}
                made.append(Attribute.from_json(data, known, ids))
            return cls(ids, table.column("digest").to_pylist(), tuple(made))
        except (OSError, KeyError, TypeError, ValueError, pa.ArrowException) as error:
            reason = " ".join(str(error).split())
            raise RunError(f"{path} is not what enrich wrote ({reason}): move it away, and enrich again") from None

    def grown(self, table: GrowingTable, wanted: Sequence[Attribute]) -> ValueTable:
        """The rows of a table of labels. Values are kept where neither the content nor the attribute has changed;
        attributes that are not wanted any more keep theirs."""
        digests = [table.digest(row) for row in range(len(table))]
        before = {(name, digest): row for row, (name, digest) in enumerate(zip(self.ids, self.digests, strict=True))}
        rows = [before.get(key, UNKNOWN) for key in zip(table.ids, digests, strict=True)]
        kept = {one.name: one for one in self.attributes}
        learned = [*wanted, *(one for one in self.attributes if one.name not in {new.name for new in wanted})]
        made = []
        for one in learned:
            old = kept.get(one.name)
            codes = np.full(len(rows), UNKNOWN, np.int64)
            if old is not None and old.values == one.values:
                codes = np.array([UNKNOWN if row == UNKNOWN else old.codes[row] for row in rows], np.int64)
            made.append(replace(one, codes=codes))
        labels = [_labels(one, table) for one in made]
        return ValueTable(list(table.ids), digests, tuple(made), labels, tuple(learned[: len(wanted)]))

    def write(self, folder: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if not self.attributes:
            return
        columns = [pa.array(self.ids, pa.string()), pa.array(self.digests, pa.string())]
        columns += [pa.array(one.texts(), pa.string()).dictionary_encode() for one in self.attributes]
        names = ["id", "digest", *(_column(one.name) for one in self.attributes)]
        note = json.dumps([one.to_json() for one in self.attributes], ensure_ascii=False).encode()
        table = pa.table(columns, names=names).replace_schema_metadata({NOTE: note})
        replace_file(folder / NAME, lambda file: pq.write_table(table, file), binary=True)


def _column(name: str) -> str:
    return f"{name} (attribute)" if name in ("id", "digest") else name


def _labels(attribute: Attribute, table: GrowingTable) -> np.ndarray[Any, np.dtype[np.int8]]:
    """Of the features that stand for values, one column each; of one that the table lacks unknown."""
    known = set(table.meaning.names)
    columns = [
        table.column_labels(value.feature) if value.feature in known else np.full(len(table), UNKNOWN, np.int8)
        for value in attribute.values
        if value.feature
    ]
    return np.stack(columns, axis=1) if columns else np.zeros((len(table), 0), np.int8)


@dataclass
class _OpenValue:
    """A value that labels leave open."""

    row: int
    attribute: Attribute  # whose value it becomes
    learned: Attribute
    labels: np.ndarray[Any, np.dtype[np.int8]]
    votes: list[int] = field(default_factory=list)

    def question(self, example: Example) -> Choose:
        return value_question(self.attribute, example, len(self.votes))

    def decide(self) -> bool:
        """Take the likeliest; whether labels and votes settle it."""
        classes, weights = self.learned.classes
        votes = np.array([self.votes], np.int64)
        chances = posterior_of(self.labels[None], classes, weights, self.learned.error, votes)
        self.attribute.codes[self.row] = values_of(chances)[0]
        return not open_rows(chances)[0]


class Valuing:
    """Asks for values at the expense of the run."""

    def __init__(self, labeller: Labeller, display: Display) -> None:
        self._labeller = labeller
        self._display = display
        self.asked = 0

    def fill(self, values: ValueTable) -> OracleError | None:
        """Give every row that has labels its values. Returns what stopped it, if anything did: what is known by then is
        in the table, and the next run goes on."""
        left: dict[str, list[_OpenValue]] = {}
        for made, learned, labels in zip(values.attributes, values.learned, values.labels, strict=False):
            classes, weights = learned.classes
            missing = np.flatnonzero((made.codes == UNKNOWN) & (labels != UNKNOWN).any(axis=1))
            chances = posterior_of(labels[missing], classes, weights, learned.error)
            settled = ~open_rows(chances) | np.bool_(made.scale)
            made.codes[missing[settled]] = values_of(chances[settled])
            for row in missing[~settled].tolist():
                left.setdefault(values.ids[row], []).append(_OpenValue(row, made, learned, labels[row]))
        try:
            self._ask(values, left)
        except (BudgetExhausted, AnswersPending, OracleUnavailable) as stopped:
            return stopped
        return None

    def _ask(self, values: ValueTable, left: dict[str, list[_OpenValue]]) -> None:
        """The data set is read once more for the examples: a table holds none."""
        if not left:
            return
        settings, held = self._labeller.settings, list[Example]()
        with self._display.waiting(f"asking {plural(sum(map(len, left.values())), 'value')}"):
            for found in iter_examples(settings.dataset, settings.columns, wanted=lambda name: name in left):
                if isinstance(found, Example) and found.digest == values.digests[left[found.id][0].row]:
                    held.append(found)
                if len(held) >= AT_ONCE:
                    self._choose([(one, what) for one in held for what in left[one.id]])
                    held = []
            self._choose([(one, what) for one in held for what in left[one.id]])

    def _choose(self, left: list[tuple[Example, _OpenValue]]) -> None:
        """Votes on each value until labels and votes settle it."""
        recorded = self._labeller.recorded()
        for _ in range(votes_on_values(self._labeller.settings.votes, recorded.identity.kind)):
            if not left:
                return
            asked = {what.question(example): (example, what) for example, what in left}
            answers = {answer.question: answer for answer in recorded.ask(list(asked))}
            self.asked += len(answers)
            for question, (_, what) in asked.items():
                what.votes.append(_code(answers.get(question), len(what.attribute.values)))
            left = [one for one in left if not one[1].decide()]


def value_question(attribute: Attribute, example: Example, voter: int) -> Choose:
    values = tuple(Feature(value.name, value.definition) for value in attribute.values)
    return Choose(Feature(attribute.name, attribute.definition), values, example, voter)


def _code(answer: Answer | None, values: int) -> int:
    """The class that an answer names."""
    if answer is not None and answer.verdict is Verdict.FEATURE:
        return answer.shown[0]
    none = answer is not None and answer.verdict is Verdict.NONE and answer.note != SEVERAL
    return values if none else NOT_ASKED
