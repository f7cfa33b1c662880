"""Folders for other programs. `datasets.load_dataset` reads images beside a metadata table, and Parquet with the
content inside; Label Studio and FiftyOne are tools in which people look at labels and correct them.

The library caches what it has loaded by the names of configuration and files, whatever they hold: both have the
export's fingerprint, so that no two exports are taken for one another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

from twothirds.discovery import UNKNOWN
from twothirds.reports.export.card import card_of
from twothirds.reports.export.content import ExportContent, untaken
from twothirds.reports.export.tables import (
    attributes_of,
    corrected_of,
    correctors,
    marked_probability,
    predicted_of,
    wide_table,
)
from twothirds.reports.run import PREDICTED, replaced_folder, write_csv
from twothirds.sources import Example

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_AT_A_TIME = 100  # row groups small enough to be streamed
CORRECTED = "corrected.csv"
CONTROL, ITEM = "features", "item"
LOCAL_FILES = "/data/local-files/?d="  # under Label Studio's LOCAL_FILES_DOCUMENT_ROOT
UNKNOWN_MARK, PREDICTED_MARK = " (unknown)", " (predicted)"


def write_imagefolder(content: ExportContent, folder: Path, *, metadata: str) -> Path:
    """`images/` and `metadata.csv` or `metadata.parquet`, never both: the library refuses two tables."""
    table = wide_table(content)
    pictures = f"images/{content.fingerprint}"
    with replaced_folder(folder) as building:
        names = []
        for number, name in enumerate(content.findings.ids, start=1):
            path, picture = content.picture(number, name)
            names.append(f"{pictures}/{path}")
            _save(building / names[-1], picture)
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


def write_label_studio(content: ExportContent, folder: Path) -> Path:
    """`tasks.json` with the labels as predictions, `config.xml` for the project, and the pictures."""
    with replaced_folder(folder) as building:
        pictured = any(example.image is not None for example in content.examples.values())
        tasks = []
        for row, name in enumerate(content.findings.ids):
            data: dict[str, Any] = {"id": name} | content.own_values(name)
            if pictured:
                path, picture = content.picture(row + 1, name)
                _save(building / "images" / path, picture)
                data["image"] = f"{LOCAL_FILES}{folder.name}/images/{path}"
            if (text := content.example(name).text) is not None:
                data["text"] = text
            if content.probability_columns:
                data[untaken("predicted labels", data)] = predicted_of(content, row)
            if content.corrector_columns:
                data[untaken("corrected labels", data)] = corrected_of(content, row)
            values = attributes_of(content, row)
            data |= {content.attribute_columns[name]: value for name, value in values.items()}
            tasks.append({"data": data, "predictions": [_prediction(content, row)]})
        written = json.dumps(tasks, ensure_ascii=False, indent=1)
        (building / "tasks.json").write_text(written + "\n", encoding="utf-8")
        (building / "config.xml").write_text(_config(content, pictured), encoding="utf-8")
        _mark_sources(content, building)
        (building / "README.md").write_text(card_of(content), encoding="utf-8")
    return folder


def _prediction(content: ExportContent, row: int) -> dict[str, Any]:
    having = [feature.name for feature in content.findings.found if feature.labels[row] == 1]
    result = {"from_name": CONTROL, "to_name": ITEM, "type": "choices", "value": {"choices": having}}
    return {"model_version": content.name, "result": [result] if having else []}


def _config(content: ExportContent, pictured: bool) -> str:
    texts = any(example.text is not None for example in content.examples.values())
    shown = [f'<Image name="{ITEM}" value="$image"/>'] if pictured else [f'<Text name="{ITEM}" value="$text"/>']
    if pictured and texts:
        shown.append('<Text name="words" value="$text"/>')
    choices = [
        f"    <Choice value={_attribute(feature.name)} hint={_attribute(feature.definition)}/>"
        for feature in content.findings.found
    ]
    lines = [f'  <Choices name="{CONTROL}" toName="{ITEM}" choice="multiple">', *choices, "  </Choices>"]
    return "\n".join(["<View>", *(f"  {line}" for line in shown), *lines, "</View>"]) + "\n"


def _attribute(text: str) -> str:
    """What XML cannot hold is left out."""
    return quoteattr("".join(letter for letter in text if letter in "\t\n" or letter.isprintable()))


def write_fiftyone(content: ExportContent, folder: Path) -> Path:
    """The form that FiftyOne calls FiftyOneImageClassificationDataset: `labels.json`, and `data/` with the pictures. An
    example has the names of its features; of a label that is unknown or predicted, the name with a mark."""
    labels: dict[str, list[str]] = {}
    with replaced_folder(folder) as building:
        for row, name in enumerate(content.findings.ids):
            path, picture = content.picture(row + 1, name)
            file = Path(path).name
            _save(building / "data" / file, picture)
            found = content.findings.found
            having = [
                feature.name + PREDICTED_MARK * int(feature.predicted[row])
                for feature in found
                if feature.labels[row] == 1
            ]
            labels[Path(file).stem] = having + [
                feature.name + UNKNOWN_MARK for feature in found if feature.labels[row] == UNKNOWN
            ]
        names = [feature.name for feature in content.findings.found]
        classes = names + [name + UNKNOWN_MARK for name in names]
        classes += [name + PREDICTED_MARK for name in content.probability_columns]
        _mark_sources(content, building)
        written = json.dumps({"classes": classes, "labels": labels}, ensure_ascii=False, indent=1)
        (building / "labels.json").write_text(written + "\n", encoding="utf-8")
        (building / "README.md").write_text(card_of(content), encoding="utf-8")
    return folder


def _mark_sources(content: ExportContent, folder: Path) -> None:
    """Files that list the predicted and the corrected labels, those that are no among them."""
    tables = {}
    if content.probability_columns:
        tables[PREDICTED] = content.findings.predicted_table()
    if content.corrector_columns:
        tables[CORRECTED] = content.findings.corrected_table()
    for name, table in tables.items():
        with (folder / name).open("w", encoding="utf-8", newline="") as file:
            write_csv(file, table)


def _save(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
