"""Folders that `datasets.load_dataset` reads: images beside a metadata table, and Parquet with the content inside.

The library caches what it has loaded by the names of configuration and files, whatever they hold: both have the
export's fingerprint, so that no two exports are taken for one another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discovery import UNKNOWN
from reports.export.card import card_of
from reports.export.content import ExportContent
from reports.export.tables import correctors, marked_probability, wide_table
from reports.run import replaced_folder, write_csv
from sources import Example

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_AT_A_TIME = 100  # row groups small enough to be streamed


def write_imagefolder(content: ExportContent, folder: Path, *, metadata: str) -> Path:
    """`images/` and `metadata.csv` or `metadata.parquet`, never both: the library refuses two tables."""
    table = wide_table(content)
    pictures = f"images/{content.fingerprint}"
    with replaced_folder(folder) as building:
        names = []
        for number, name in enumerate(content.findings.ids, start=1):
            path, picture = content.picture(number, name)
            names.append(f"{pictures}/{path}")
            (building / names[-1]).parent.mkdir(parents=True, exist_ok=True)
            (building / names[-1]).write_bytes(picture)
        table.insert(0, "file_name", names)
        if metadata == "csv":
            with (building / "metadata.csv").open("w", encoding="utf-8", newline="") as file:
                write_csv(file, table)
        else:
            table.to_parquet(building / "metadata.parquet", index=False)
        files = [f"metadata.{metadata}", f"{pictures}/**"]
        (building / "README.md").write_text(card_of(content, _configuration(content, files)), encoding="utf-8")
    return folder


def write_parquet_with_content(content: ExportContent, folder: Path) -> Path:
    """One row per example: `id`, its `image`, its `text` or both, the data set's columns, then the features.

    The library decodes images."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    findings = content.findings
    shown = [content.example(name) for name in findings.ids]
    contents = [kind for kind in ("image", "text") if any(getattr(question, kind) is not None for question in shown)]
    own = pa.Table.from_pandas(content.own, preserve_index=False)
    marked = {column: name for name, column in content.probability_columns.items()}
    valued = {
        content.corrector_columns[feature.name]: correctors(feature) for feature in findings.found if feature.corrected
    }
    valued |= {content.attribute_columns[attribute.name]: attribute.texts() for attribute in findings.attributes}
    schema = _schema(contents, own.schema, list(content.columns.values()), list(marked), list(valued))
    chances = {
        feature.name: marked_probability(feature) for feature in findings.found if feature.name in marked.values()
    }
    split = f"data/train-00000-of-00001-{content.fingerprint}.parquet"
    with replaced_folder(folder) as building:
        (building / "data").mkdir()
        with pq.ParquetWriter(building / split, schema) as writer:
            for start in range(0, len(findings.ids), ROWS_AT_A_TIME):
                rows = range(start, min(start + ROWS_AT_A_TIME, len(findings.ids)))
                values: dict[str, Any] = {
                    "id": [findings.ids[row] for row in rows],
                    **{kind: [_content(shown[row], kind) for row in rows] for kind in contents},
                    **{name: own.column(name).slice(start, len(rows)).to_pylist() for name in own.column_names},
                }
                for feature in findings.found:
                    labels = [int(feature.labels[row]) for row in rows]
                    values[content.columns[feature.name]] = [None if label == UNKNOWN else label for label in labels]
                values |= {column: texts[rows.start : rows.stop] for column, texts in valued.items()}
                for column, name in marked.items():
                    values[column] = pa.array(chances[name][rows.start : rows.stop], from_pandas=True)
                writer.write_table(pa.table(values, schema=schema))
        (building / "README.md").write_text(card_of(content, _configuration(content, [split])), encoding="utf-8")
    return folder


def _configuration(content: ExportContent, files: list[str]) -> dict[str, Any]:
    """For the head of the card."""
    data = [{"split": "train", "path": files if len(files) > 1 else files[0]}]
    return {"configs": [{"config_name": content.name, "default": True, "data_files": data}]}


def _schema(
    contents: list[str], own: pa.Schema, features: list[str], marked: list[str], valued: list[str]
) -> pa.Schema:
    import pyarrow as pa

    fields = [pa.field("id", pa.string())]
    image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    fields += [pa.field(kind, image if kind == "image" else pa.string()) for kind in contents]
    fields += [
        pa.field(column.name, pa.string() if pa.types.is_large_string(column.type) else column.type) for column in own
    ]
    fields += [pa.field(name, pa.int8()) for name in features]
    fields += [pa.field(name, pa.float64()) for name in marked]
    fields += [pa.field(name, pa.string()) for name in valued]
    kinds = {field.name: _kind(field.type) for field in fields}
    return pa.schema(fields, metadata={"huggingface": json.dumps({"info": {"features": kinds}})})


def _kind(kind: pa.DataType) -> dict[str, str]:
    """The library's names of types."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return {"_type": "Image"}
    return {"dtype": {"double": "float64"}.get(str(kind), str(kind)), "_type": "Value"}


def _content(example: Example, kind: str) -> Any:
    if kind == "text" or example.image is None:
        return example.text if kind == "text" else None
    return {"bytes": example.image_bytes(), "path": None}
