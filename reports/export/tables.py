"""The labels of a run as tables: one row per example, one row per label, and the labels in doubt."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from twothirds.discovery import UNKNOWN
from twothirds.reports.export.content import ExportContent
from twothirds.reports.finished_run import Run
from twothirds.reports.run import Findings, FoundFeature, names_of
from twothirds.sources import Example, without_secrets

if TYPE_CHECKING:
    import pandas as pd


LABEL_COLUMNS = ("id", "feature", "label", "source", "yes", "no", "abstained", "probability", "doubtful")


def wide_table(content: ExportContent) -> pd.DataFrame:
    """One row per example: `id`, the data set's own columns, then a nullable 0/1 column per feature; after that of a
    feature with predicted labels their probability, which is null where the oracle was asked, and of one with corrected
    labels who corrected them. Attributes come last, a column of categories each."""
    import pandas as pd

    labels = content.findings.label_table().rename(columns=content.columns)
    for feature in content.findings.found:
        place = list(labels.columns).index(content.columns[feature.name]) + 1
        if column := content.corrector_columns.get(feature.name):
            labels.insert(place, column, pd.Series(correctors(feature), index=labels.index, dtype="string"))
        if column := content.probability_columns.get(feature.name):
            labels.insert(place, column, pd.Series(marked_probability(feature), index=labels.index))
    for attribute in content.findings.attributes:
        labels[content.attribute_columns[attribute.name]] = attribute.column(labels.index)
    return content.own.join(labels).reset_index()


def selection_as_parquet(run: Run, own: pd.DataFrame | None, rows: Sequence[int]) -> bytes:
    """Of some examples what `wide.parquet` has of all; `own` are the data set's own columns by id."""
    written = io.BytesIO()
    wide_table(ExportContent(run, run.findings, {}, own)).iloc[list(rows)].to_parquet(written, index=False)
    return written.getvalue()


def tidy_table(findings: Findings) -> pd.DataFrame:
    """One row per label, unknown ones included, with the votes behind it, and who corrected it if somebody did."""
    import pandas as pd

    tables = [_label_rows(findings.ids, feature) for feature in findings.found]
    if not tables:
        return pd.DataFrame(columns=[*LABEL_COLUMNS])
    table = pd.concat(tables, ignore_index=True)
    if any(feature.corrected for feature in findings.found):
        made = findings.corrected_table().drop(columns="label")
        table = table.merge(made, on=["id", "feature"], how="left", validate="one_to_one")
    return table


def doubtful_table(findings: Findings, examples: dict[str, Example]) -> pd.DataFrame:
    """The labels worth a second look, the most divided first, with an empty column for a person's label."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for feature in findings.found:
        worth_a_look = feature.doubtful | feature.contradicted(findings.ids)
        for row in np.flatnonzero(worth_a_look):
            rows.append(_doubt(feature, int(row), findings.ids[row], examples))
    rows.sort(key=lambda row: -row["against"])
    columns = ["id", "feature", "definition", "label", "source", "why", "yes", "no", "abstained"]
    columns += ["probability", "example", "corrected"]
    table = pd.DataFrame(rows, columns=columns)
    return table.astype({"label": "Int8", "yes": "Int32", "no": "Int32", "abstained": "Int32"})


def json_rows(content: ExportContent) -> list[dict[str, Any]]:
    """One object per example; an unknown label is null."""
    findings, examples, own = content.findings, content.examples, bool(len(content.own.columns))
    matrix = findings.matrix.T.tolist()
    names = names_of(findings.found)
    return [
        {"id": name}
        | ({"text": examples[name].text} if name in examples and examples[name].text is not None else {})
        | ({"columns": content.own_values(name)} if own else {})
        | {"labels": {key: None if value == UNKNOWN else value for key, value in zip(names, values, strict=True)}}
        | ({"predicted": predicted_of(content, row)} if content.probability_columns else {})
        | ({"corrected": corrected_of(content, row)} if content.corrector_columns else {})
        | ({"attributes": attributes_of(content, row)} if findings.attributes else {})
        for row, (name, values) in enumerate(zip(findings.ids, matrix, strict=True))
    ]


def attributes_of(content: ExportContent, row: int) -> dict[str, str | None]:
    """Of an example its value of each attribute."""
    return {attribute.name: attribute.text(row) for attribute in content.findings.attributes}


def predicted_of(content: ExportContent, row: int) -> dict[str, float]:
    """Of an example's predicted labels how probable yes was, by feature; its other labels are the oracle's."""
    marked = [feature for feature in content.findings.found if feature.predicted[row]]
    return {feature.name: round(float(feature.probability[row]), 4) for feature in marked}


def corrected_of(content: ExportContent, row: int) -> dict[str, dict[str, Any]]:
    """Of an example's corrected labels who corrected them, when, and what they were before, by feature."""
    marked = {feature.name: feature.corrected[row] for feature in content.findings.found if row in feature.corrected}
    return {
        name: {
            "by": correction.by,
            "at": correction.at,
            "before": None if correction.before == UNKNOWN else correction.before,
        }
        for name, correction in marked.items()
    }


def correctors(feature: FoundFeature) -> list[str | None]:
    """Of each label who corrected it."""
    return [feature.corrected[row].by if row in feature.corrected else None for row in range(len(feature.labels))]


def marked_probability(feature: FoundFeature) -> pd.arrays.FloatingArray:
    """Of yes where a label is predicted; null where it was asked."""
    import pandas as pd

    return pd.arrays.FloatingArray(np.where(feature.predicted, feature.probability, 0.0).round(4), ~feature.predicted)


def sources_of(feature: FoundFeature) -> list[str]:
    """Of each label where it comes from; empty where nobody was asked."""
    asked = (feature.vote_counts.votes > 0) | (feature.labels != UNKNOWN)
    known = [feature.is_corrected, feature.predicted, asked]
    return [str(origin) for origin in np.select(known, ["corrected", "predicted", "asked"], "")]


def _label_rows(ids: list[str], feature: FoundFeature) -> pd.DataFrame:
    import pandas as pd

    vote_counts = feature.vote_counts
    return pd.DataFrame(
        {
            "id": ids,
            "feature": feature.name,
            "label": pd.arrays.IntegerArray(feature.labels.copy(), feature.labels == UNKNOWN),
            "source": sources_of(feature),
            "yes": vote_counts.yes,
            "no": vote_counts.no,
            "abstained": vote_counts.abstained,
            "probability": feature.probability,
            "doubtful": feature.doubtful,
        }
    )


def _doubt(feature: FoundFeature, row: int, name: str, examples: dict[str, Example]) -> dict[str, Any]:
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
        "source": sources_of(feature)[row],
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
