"""What an export is made of: the labels of the chosen features, the examples, and the data set's own columns."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np

from twothirds.discovery import UNKNOWN, FeatureTree, feature_tree
from twothirds.reports.column_names import column_names, untaken
from twothirds.reports.label_table import OWN_COLUMNS, LabelTable, Source
from twothirds.reports.run import Attribute, Findings, FoundFeature, RunError, doubtful_features, names_of
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
class Export:
    """Of a run or of a nightly table."""

    dataset: str  # its name
    labels: LabelTable
    provenance: Mapping[str, str]  # where the labels come from, for the card
    version: str  # of the labels, by which libraries tell two exports apart
    examples: Mapping[str, Example]  # none where the data set cannot be read
    metadata: pd.DataFrame | None = None  # the data set's own columns, by id
    attributes: tuple[Attribute, ...] = ()
    findings: Findings | None = None  # of a run: with votes and questions
    left_out: Sequence[FoundFeature] = ()  # doubtful features that would be chosen else
    changes: Mapping[str, Sequence[str]] = field(default_factory=dict)  # what people did, lines under each heading
    certificates: Sequence[Mapping[str, Any]] = ()  # of the predicted labels
    simulated: bool = False

    @cached_property
    def own(self) -> pd.DataFrame:
        """The data set's own columns, a row per example in the order of the labels, in types that every format
        knows."""
        import pandas as pd

        ids = pd.Index(self.labels.ids, name="id")
        if self.metadata is None:
            return pd.DataFrame(index=ids)
        table = self.metadata.reindex(ids)
        own = [name for name in table if name not in RESERVED]
        return pd.DataFrame({str(name): _plain(table[name]) for name in own}, index=ids)

    @cached_property
    def columns(self) -> list[str]:
        """The column of each feature: one that the data set has is marked as a feature."""
        named = [(feature.name, feature.definition) for feature in self.labels.features]
        return column_names(named, {*OWN_COLUMNS, *self.own.columns})

    @cached_property
    def attribute_columns(self) -> dict[str, str]:
        """The column of each attribute, which holds one of its values as a text."""
        taken = {name.casefold() for name in (*OWN_COLUMNS, *self.own.columns, *self.columns)}
        columns: dict[str, str] = {}
        for attribute in self.attributes:
            columns[attribute.name] = untaken(attribute.name, taken, "attribute")
            taken.add(columns[attribute.name].casefold())
        return columns

    @cached_property
    def predicted(self) -> list[int]:
        """The features with predicted labels."""
        return np.flatnonzero((self.labels.source == Source.PREDICTED).any(axis=1)).tolist()

    @cached_property
    def corrected(self) -> list[int]:
        """The features with labels that people have corrected."""
        return np.flatnonzero((self.labels.source == Source.CORRECTED).any(axis=1)).tolist()

    @cached_property
    def fingerprint(self) -> str:
        """Of all that the export holds: libraries that cache by names take another export for another data set."""
        labels, digest = self.labels, hashlib.sha256()
        features = [[feature.name, feature.definition] for feature in labels.features]
        attributes = [[attribute.to_json(), attribute.codes.tolist()] for attribute in self.attributes]
        own = self.own.to_json(orient="split")
        digest.update(json.dumps([self.version, list(labels.ids), features, labels.raters, attributes, own]).encode())
        for matrix in (labels.value, labels.source, labels.probability, labels.who, labels.votes):
            digest.update(np.ascontiguousarray(matrix).tobytes())
        return digest.hexdigest()[:FINGERPRINT_DIGITS]

    @property
    def tree(self) -> FeatureTree:
        names = [feature.name for feature in self.labels.features]
        known = (self.labels.value != UNKNOWN).any(axis=0)
        return feature_tree(self.labels.value[:, known], names, tolerance=0.1, support=4)

    @property
    def features(self) -> pd.DataFrame:
        """The columns of features.csv; of a table those that it knows."""
        import pandas as pd

        if self.findings is not None:
            return self.findings.provenance_table().assign(column=self.columns)
        value = self.labels.value
        return pd.DataFrame(
            {
                "order": np.arange(1, len(value) + 1),
                "name": [feature.name for feature in self.labels.features],
                "column": self.columns,
                "definition": [feature.definition for feature in self.labels.features],
                "positives": (value == 1).sum(axis=1),
                "labelled": (value != UNKNOWN).sum(axis=1),
            }
        )

    @property
    def name(self) -> str:
        """One of its own, of letters and digits."""
        return f"{plain_name(self.dataset) or 'data'}-{self.fingerprint}"

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

    def own_values(self, row: int) -> dict[str, Any]:
        """As JSON knows them; missing ones are None."""
        import pandas as pd

        values = self.own.iloc[row].items()
        return {str(key): None if pd.isna(value) else _json(value) for key, value in values}

    def marks(self, row: int) -> dict[str, dict[str, Any]]:
        """Of an example how probable yes was where a label is predicted, and who has corrected one, by column; nothing
        where no label of the export is."""
        labels, found = self.labels, dict[str, dict[str, Any]]()
        if self.predicted:
            places = [place for place in self.predicted if labels.source[place, row] == Source.PREDICTED]
            chances = labels.probability[:, row].astype(float).round(4)
            found["predicted"] = {self.columns[place]: float(chances[place]) for place in places}
        if self.corrected:
            places = [place for place in self.corrected if labels.source[place, row] == Source.CORRECTED]
            found["corrected"] = {self.columns[place]: labels.raters[labels.who[place, row]] for place in places}
        return found

    @property
    def left_out_line(self) -> str:
        return f"{doubtful_features(names_of(self.left_out))}; left out of this export"


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
