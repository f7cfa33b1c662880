"""What an export is made of: the chosen features of a run, its examples, and the data set's own columns."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cached_property
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from twothirds.reports.finished_run import Run
from twothirds.reports.run import Findings, FoundFeature, RunError, doubtful_features, names_of
from twothirds.sources import Example, opened

if TYPE_CHECKING:
    import pandas as pd

RESERVED = {"id", "text", "image", "file_name"}  # columns of the exports themselves
SUFFIX = {
    "PNG": ".png",
    "JPEG": ".jpg",
    "WEBP": ".webp",
    "GIF": ".gif",
    "BMP": ".bmp",
    "TIFF": ".tif",
    "AVIF": ".avif",
    "HEIF": ".heic",
}
FINGERPRINT_DIGITS = 16


@dataclass(frozen=True)
class ExportContent:
    run: Run
    findings: Findings  # with the features that were chosen
    examples: dict[str, Example]  # none where the data set cannot be read
    metadata: pd.DataFrame | None = None  # the data set's own columns, by id
    left_out: Sequence[FoundFeature] = ()  # doubtful features that would be chosen else

    @cached_property
    def own(self) -> pd.DataFrame:
        """The data set's own columns, a row per example in the run's order, in types that every format knows."""
        import pandas as pd

        ids = pd.Index(self.findings.ids, name="id")
        if self.metadata is None:
            return pd.DataFrame(index=ids)
        table = self.metadata.reindex(ids)
        return pd.DataFrame({str(name): _plain(table[name]) for name in table if name not in RESERVED}, index=ids)

    @cached_property
    def columns(self) -> dict[str, str]:
        """The column of each feature: a name that is taken is marked as a feature."""
        return column_names(self.findings, {*RESERVED, "label", *self.own.columns})

    @cached_property
    def probability_columns(self) -> dict[str, str]:
        """By feature with predicted labels: the column that marks them, with the probability of yes there only."""
        taken = {*RESERVED, "label", *self.own.columns, *self.columns.values()}
        marked = {
            feature.name: f"{feature.name} (probability)" for feature in self.findings.found if feature.predicted.any()
        }
        return {name: untaken(column, taken) for name, column in marked.items()}

    @cached_property
    def corrector_columns(self) -> dict[str, str]:
        """By feature with corrected labels: the column that says who corrected them."""
        taken = {*RESERVED, "label", *self.own.columns, *self.columns.values(), *self.probability_columns.values()}
        marked = {
            feature.name: f"{feature.name} (corrected by)" for feature in self.findings.found if feature.corrected
        }
        return {name: untaken(column, taken) for name, column in marked.items()}

    @cached_property
    def attribute_columns(self) -> dict[str, str]:
        """The column of each attribute, which holds one of its values as a text."""
        marks = (*self.probability_columns.values(), *self.corrector_columns.values())
        taken = {*RESERVED, "label", *self.own.columns, *self.columns.values(), *marks}
        columns: dict[str, str] = {}
        for attribute in self.findings.attributes:
            columns[attribute.name] = untaken(attribute.name, {*taken, *columns.values()}, " (attribute)")
        return columns

    @cached_property
    def fingerprint(self) -> str:
        """Of all that the export holds: libraries that cache by names take another export for another data set."""
        digest = hashlib.sha256()
        summary = self.run.summary
        features = [[feature.name, feature.definition] for feature in self.findings.found]
        identity = [
            summary.run_id,
            summary.dataset.digest,
            self.findings.ids,
            features,
            self.own.to_json(orient="split"),
        ]
        digest.update(json.dumps(identity).encode())
        digest.update(self.findings.matrix.tobytes())
        for feature in self.findings.found:
            if feature.chances is not None:
                digest.update(feature.chances.tobytes())
            if feature.corrected:
                corrections = [[row, *astuple(correction)] for row, correction in feature.corrected.items()]
                digest.update(json.dumps([feature.name, corrections]).encode())
        for attribute in self.findings.attributes:
            digest.update(json.dumps([attribute.to_json(), attribute.codes.tolist()]).encode())
        return digest.hexdigest()[:FINGERPRINT_DIGITS]

    @property
    def left_out_line(self) -> str:
        return f"{doubtful_features(names_of(self.left_out))}; left out of this export"

    @property
    def to_check(self) -> Findings:
        """With the doubtful features: their labels are to be put right."""
        return replace(self.findings, found=[*self.findings.found, *self.left_out])

    @property
    def name(self) -> str:
        """One of its own, of letters and digits."""
        return f"{plain_name(self.run.summary.dataset.name) or 'data'}-{self.fingerprint}"

    def example(self, name: str) -> Example:
        if name not in self.examples:
            raise RunError(
                f"example {name!r} is not in the data set any more: restore it, or give the data set with --dataset"
            )
        return self.examples[name]

    def picture(self, number: int, name: str) -> tuple[str, bytes]:
        """A picture and a harmless name for it, in the folder of its class if the data set has such folders."""
        content = self.example(name).image_bytes()
        with opened(content) as image:
            suffix = SUFFIX[str(image.format)]
        folders = [plain_name(part) for part in PurePosixPath(name).parts[:-1]]
        return "/".join([*filter(None, folders), f"{number:06d}{suffix}"]), content

    def own_values(self, name: str) -> dict[str, Any]:
        """As JSON knows them; missing ones are None."""
        import pandas as pd

        row = self.own.loc[name]
        return {str(key): None if pd.isna(value) else _json(value) for key, value in row.items()}


def column_names(findings: Findings, taken: Collection[str]) -> dict[str, str]:
    """The column of each feature in a table that has other columns too: a name that is taken is marked as a feature."""
    columns: dict[str, str] = {}
    for name in names_of(findings.found):
        column = name
        while column in taken or (column != name and column in names_of(findings.found)):
            column += " (feature)"
        columns[name] = column
    return columns


def untaken(column: str, taken: Collection[str], mark: str = " (feature)") -> str:
    while column in taken:
        column += mark
    return column


def plain_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")[:60]


def _plain(column: pd.Series[Any]) -> pd.Series[Any]:
    import pandas as pd

    if pd.api.types.is_bool_dtype(column):
        return column.astype("boolean")
    if pd.api.types.is_integer_dtype(column):
        return column.astype("Int64")
    if pd.api.types.is_float_dtype(column):
        return column.astype("Float64")
    return column.map(lambda value: value if isinstance(value, str) else str(value), na_action="ignore").astype(
        "string"
    )


def _json(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
