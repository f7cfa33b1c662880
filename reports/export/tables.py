"""Labels as tables: one row per example, one row per label, and the labels in doubt."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from twothirds.discovery import UNKNOWN
from twothirds.reports.export.content import Export
from twothirds.reports.label_table import SOURCES
from twothirds.reports.run import FoundFeature
from twothirds.sources import Example, without_secrets

if TYPE_CHECKING:
    import pandas as pd


def wide_table(export: Export) -> pd.DataFrame:
    """One row per example: `id`, the data set's own columns, then a nullable 0/1 column per feature; after these where
    labels come from, of features of which some are predicted or corrected. Attributes come last, a column of categories
    each."""
    import pandas as pd

    marked = {(place, "source") for place in (*export.predicted, *export.corrected)}
    marked |= {(place, "probability") for place in export.predicted} | {(place, "by") for place in export.corrected}
    labels = export.labels.to_arrow(marked, export.columns).drop_columns(["digest"])
    kinds = {"int8": pd.Int8Dtype(), "float": pd.Float32Dtype()}
    frame: pd.DataFrame = labels.to_pandas(types_mapper=lambda kind: kinds.get(str(kind))).set_index("id")
    texts = {name: "string" for name, kind in frame.dtypes.items() if isinstance(kind, pd.CategoricalDtype)}
    frame = frame.astype(texts)
    for attribute in export.attributes:
        frame[export.attribute_columns[attribute.name]] = attribute.column(frame.index)
    return pd.concat([export.own, frame.set_index(export.own.index)], axis=1).reset_index()


def wide_parquet(export: Export, rows: Sequence[int]) -> bytes:
    """Of some examples what `wide.parquet` has of all."""
    written = io.BytesIO()
    wide_table(export).iloc[list(rows)].to_parquet(written, index=False)
    return written.getvalue()


def tidy_table(export: Export) -> pd.DataFrame:
    """One row per label, unknown ones included, with the votes behind it and who corrected it."""
    import pandas as pd

    kinds = {"int8": pd.Int8Dtype()}
    frame = export.labels.tidy(columns=export.columns).drop_columns(["digest"])
    table: pd.DataFrame = frame.to_pandas(types_mapper=lambda kind: kinds.get(str(kind)))
    table = table.astype(dict.fromkeys(("id", "feature", "source", "by"), "string"))
    if export.findings is not None:
        doubtful = [feature.doubtful for feature in export.findings.found]
        table["doubtful"] = np.concatenate(doubtful) if doubtful else np.zeros(0, np.bool_)
    return table


def doubtful_table(export: Export) -> pd.DataFrame:
    """The labels of a run worth a second look, the most divided first, with an empty column for a person's label."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    ids, found = list(export.labels.ids), export.findings.found if export.findings else ()
    for feature in (*found, *export.left_out):
        worth_a_look = feature.doubtful | feature.contradicted(ids)
        for row in np.flatnonzero(worth_a_look):
            rows.append(_doubt(feature, int(row), ids[row], export.examples))
    rows.sort(key=lambda row: -row["against"])
    columns = ["id", "feature", "definition", "label", "source", "why", "yes", "no", "abstained"]
    columns += ["probability", "example", "corrected"]
    table = pd.DataFrame(rows, columns=columns)
    return table.astype({"label": "Int8", "yes": "Int32", "no": "Int32", "abstained": "Int32"})


def json_rows(export: Export) -> list[dict[str, Any]]:
    """One object per example; an unknown label is null."""
    examples, own = export.examples, bool(len(export.own.columns))
    return [
        {"id": name}
        | ({"text": examples[name].text} if name in examples and examples[name].text is not None else {})
        | ({"columns": export.own_values(row)} if own else {})
        | {"labels": dict(zip(export.columns, [None if v == UNKNOWN else v for v in values], strict=True))}
        | export.marks(row)
        | ({"attributes": attributes_of(export, row)} if export.attributes else {})
        for row, (name, values) in enumerate(zip(export.labels.ids, export.labels.value.T.tolist(), strict=True))
    ]


def attributes_of(export: Export, row: int) -> dict[str, str | None]:
    """Of an example its value of each attribute."""
    return {export.attribute_columns[attribute.name]: attribute.text(row) for attribute in export.attributes}


def _doubt(feature: FoundFeature, row: int, name: str, examples: Mapping[str, Example]) -> dict[str, Any]:
    yes, no, abstained = (
        int(side[row]) for side in (feature.vote_counts.yes, feature.vote_counts.no, feature.vote_counts.abstained)
    )
    label = None if feature.labels[row] == UNKNOWN else int(feature.labels[row])
    probability = float(feature.probability[row])
    example = examples.get(name)
    return {
        "id": name,
        "feature": feature.name,
        "definition": feature.definition,
        "label": label,
        "source": SOURCES.get(int(feature.source[row]), ""),
        "why": reason_for_doubt(feature, row),
        "yes": yes,
        "no": no,
        "abstained": abstained,
        "probability": None if np.isnan(probability) else round(probability, 4),
        "example": (example.text or without_secrets(example.image or "")) if example else None,
        "corrected": None,
        "against": 0.5 if label is None else min(yes, no) / max(yes + no, 1),
    }


def reason_for_doubt(feature: FoundFeature, row: int) -> str:
    if feature.labels[row] == UNKNOWN:
        return "undecided"
    if not feature.doubtful[row]:
        return "contradicts the question that brought the feature out"
    return (
        "divided votes" if min(feature.vote_counts.yes[row], feature.vote_counts.no[row]) else "probability near a half"
    )
