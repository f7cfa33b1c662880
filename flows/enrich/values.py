"""Values of attributes for a table that grows, by its labels; empty where these leave a value open.

They are in attributes.parquet beside the labels: `id`, `digest`, and a column of categories per attribute."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from twothirds.discovery import UNKNOWN
from twothirds.discovery.families import open_rows, posterior_of, values_of
from twothirds.reports.run import Attribute, RunError, replace_file
from twothirds.reports.versions import VersionedTable

NAME = "attributes.parquet"
NOTE = b"twothirds"  # the key under which the file's metadata holds what the columns mean


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

    def grown(self, table: VersionedTable, wanted: Sequence[Attribute]) -> ValueTable:
        """The rows of a table of labels. Values are kept where neither the content nor the attribute has changed;
        attributes that are not wanted any more keep theirs."""
        digests = [table.digest(row) for row in range(len(table))]
        before = {digest: row for row, digest in enumerate(self.digests)}
        rows = [before.get(digest, UNKNOWN) for digest in digests]
        earlier = {attribute.name: attribute for attribute in self.attributes}
        learned = [
            *wanted,
            *(attribute for attribute in self.attributes if attribute.name not in {new.name for new in wanted}),
        ]
        made = []
        for attribute in learned:
            old = earlier.get(attribute.name)
            codes = np.full(len(rows), UNKNOWN, np.int64)
            if old is not None and old.values == attribute.values:
                codes = np.array([UNKNOWN if row == UNKNOWN else old.codes[row] for row in rows], np.int64)
            made.append(replace(attribute, codes=codes))
        labels = [_labels(attribute, table) for attribute in made]
        return ValueTable(list(table.ids), digests, tuple(made), labels, tuple(learned[: len(wanted)]))

    def fill(self) -> None:
        """Give every row the values that its labels settle: those of the one feature that it has, or likely ones."""
        for made, learned, labels in zip(self.attributes, self.learned, self.labels, strict=False):
            classes, weights = learned.classes
            missing = np.flatnonzero((made.codes == UNKNOWN) & (labels != UNKNOWN).any(axis=1))
            chances = posterior_of(labels[missing], classes, weights, learned.error)
            likeliest = classes[chances.argmax(axis=1)]
            named = likeliest.any(axis=1) & (likeliest == labels[missing]).all(axis=1)
            settled = named | ~open_rows(chances) | np.bool_(made.scale)
            made.codes[missing[settled]] = values_of(chances[settled])

    def write(self, folder: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if not self.attributes:
            return
        columns = [pa.array(self.ids, pa.string()), pa.array(self.digests, pa.string())]
        columns += [pa.array(attribute.texts(), pa.string()).dictionary_encode() for attribute in self.attributes]
        names = ["id", "digest", *(_column(attribute.name) for attribute in self.attributes)]
        note = json.dumps([attribute.to_json() for attribute in self.attributes], ensure_ascii=False).encode()
        table = pa.table(columns, names=names).replace_schema_metadata({NOTE: note})
        replace_file(folder / NAME, lambda file: pq.write_table(table, file), binary=True)


def _column(name: str) -> str:
    return f"{name} (attribute)" if name in ("id", "digest") else name


def _labels(attribute: Attribute, table: VersionedTable) -> np.ndarray[Any, np.dtype[np.int8]]:
    """Of the features that stand for values, one column each; of one that the table lacks unknown."""
    known = set(table.table_schema.names)
    columns = [
        table.column_labels(value.feature) if value.feature in known else np.full(len(table), UNKNOWN, np.int8)
        for value in attribute.values
        if value.feature
    ]
    return np.stack(columns, axis=1) if columns else np.zeros((len(table), 0), np.int8)
