"""Folders for other programs. `datasets.load_dataset` reads images beside a metadata table, and Parquet with the
content inside; Label Studio and FiftyOne are tools in which people look at labels and correct them.

The library caches what it has loaded by the names of configuration and files, whatever they hold: both have the
export's fingerprint, so that no two exports are taken for one another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

import numpy as np

from twothirds.discovery import UNKNOWN
from twothirds.reports.column_names import untaken
from twothirds.reports.export.card import card_of
from twothirds.reports.export.content import Export
from twothirds.reports.export.tables import attributes_of, wide_table
from twothirds.reports.label_table import Source
from twothirds.reports.run import replaced_folder, write_csv
from twothirds.sources import Example

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_AT_A_TIME = 100  # row groups small enough to be streamed
SOURCES = "sources.csv"  # the labels that nobody was asked for, or that people have corrected
CONTROL, ITEM = "features", "item"
LOCAL_FILES = "/data/local-files/?d="  # under Label Studio's LOCAL_FILES_DOCUMENT_ROOT
UNKNOWN_MARK, PREDICTED_MARK = " (unknown)", " (predicted)"


def write_imagefolder(export: Export, folder: Path, *, metadata: str) -> Path:
    """`images/` and `metadata.csv` or `metadata.parquet`, never both: the library refuses two tables."""
    table = wide_table(export)
    pictures = f"images/{export.fingerprint}"
    with replaced_folder(folder) as building:
        names = []
        for number, name in enumerate(export.labels.ids, start=1):
            path, picture = export.picture(number, name)
            names.append(f"{pictures}/{path}")
            _save(building / names[-1], picture)
        table.insert(0, "file_name", names)
        if metadata == "csv":
            with (building / "metadata.csv").open("w", encoding="utf-8", newline="") as file:
                write_csv(file, table)
        else:
            table.to_parquet(building / "metadata.parquet", index=False)
        files = [f"metadata.{metadata}", f"{pictures}/**"]
        (building / "README.md").write_text(card_of(export, _configuration(export, files)), encoding="utf-8")
    return folder


def write_parquet_with_content(export: Export, folder: Path) -> Path:
    """One row per example: `id`, its `image`, its `text` or both, the data set's columns, then the features.

    The library decodes images."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    shown = [export.example(name) for name in export.labels.ids]
    contents = [kind for kind in ("image", "text") if any(getattr(example, kind) is not None for example in shown)]
    wide = pa.Table.from_pandas(wide_table(export), preserve_index=False)
    plain = [pa.field(field.name, _plain(field.type)) for field in wide.schema]
    wide = wide.cast(pa.schema(plain))
    image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    fields = [plain[0], *(pa.field(kind, image if kind == "image" else pa.string()) for kind in contents), *plain[1:]]
    info = {"features": {field.name: _kind(field.type) for field in fields}}
    schema = pa.schema(fields, metadata={"huggingface": json.dumps({"info": info})})
    split = f"data/train-00000-of-00001-{export.fingerprint}.parquet"
    with replaced_folder(folder) as building:
        (building / "data").mkdir()
        with pq.ParquetWriter(building / split, schema) as writer:
            for start in range(0, len(shown), ROWS_AT_A_TIME):
                part = wide.slice(start, ROWS_AT_A_TIME)
                columns = {name: part[name] for name in part.column_names}
                for kind in contents:
                    cells = [_content(example, kind) for example in shown[start : start + len(part)]]
                    columns[kind] = pa.array(cells, schema.field(kind).type)
                writer.write_table(pa.table({name: columns[name] for name in schema.names}, schema=schema))
        (building / "README.md").write_text(card_of(export, _configuration(export, [split])), encoding="utf-8")
    return folder


def _configuration(export: Export, files: list[str]) -> list[dict[str, Any]]:
    """For the head of the card."""
    data = [{"split": "train", "path": files if len(files) > 1 else files[0]}]
    return [{"config_name": export.name, "default": True, "data_files": data}]


def _plain(kind: pa.DataType) -> pa.DataType:
    """Texts as the library knows them."""
    import pyarrow as pa

    return pa.string() if pa.types.is_large_string(kind) or pa.types.is_dictionary(kind) else kind


def _kind(kind: pa.DataType) -> dict[str, str]:
    """The library's names of types."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return {"_type": "Image"}
    return {"dtype": {"double": "float64", "float": "float32"}.get(str(kind), str(kind)), "_type": "Value"}


def _content(example: Example, kind: str) -> Any:
    if kind == "text" or example.image is None:
        return example.text if kind == "text" else None
    return {"bytes": example.image_bytes(), "path": None}


def write_label_studio(export: Export, folder: Path) -> Path:
    """`tasks.json` with the labels as predictions, `config.xml` for the project, and the pictures."""
    with replaced_folder(folder) as building:
        pictured = any(example.image is not None for example in export.examples.values())
        tasks = []
        for row, name in enumerate(export.labels.ids):
            data: dict[str, Any] = {"id": name} | export.own_values(row)
            if pictured:
                path, picture = export.picture(row + 1, name)
                _save(building / "images" / path, picture)
                data["image"] = f"{LOCAL_FILES}{folder.name}/images/{path}"
            if (text := export.example(name).text) is not None:
                data["text"] = text
            marks = export.marks(row)
            data |= {untaken(f"{kind} labels", {*data}, "feature"): labels for kind, labels in marks.items()}
            data |= attributes_of(export, row)
            tasks.append({"data": data, "predictions": [_prediction(export, row)]})
        written = json.dumps(tasks, ensure_ascii=False, indent=1)
        (building / "tasks.json").write_text(written + "\n", encoding="utf-8")
        (building / "config.xml").write_text(_config(export, pictured), encoding="utf-8")
        _mark_sources(export, building)
        (building / "README.md").write_text(card_of(export), encoding="utf-8")
    return folder


def _prediction(export: Export, row: int) -> dict[str, Any]:
    having = [export.columns[place] for place in np.flatnonzero(export.labels.value[:, row] == 1)]
    result = {"from_name": CONTROL, "to_name": ITEM, "type": "choices", "value": {"choices": having}}
    return {"model_version": export.name, "result": [result] if having else []}


def _config(export: Export, pictured: bool) -> str:
    texts = any(example.text is not None for example in export.examples.values())
    shown = [f'<Image name="{ITEM}" value="$image"/>'] if pictured else [f'<Text name="{ITEM}" value="$text"/>']
    if pictured and texts:
        shown.append('<Text name="words" value="$text"/>')
    choices = [
        f"    <Choice value={_attribute(column)} hint={_attribute(feature.definition)}/>"
        for column, feature in zip(export.columns, export.labels.features, strict=True)
    ]
    lines = [f'  <Choices name="{CONTROL}" toName="{ITEM}" choice="multiple">', *choices, "  </Choices>"]
    return "\n".join(["<View>", *(f"  {line}" for line in shown), *lines, "</View>"]) + "\n"


def _attribute(text: str) -> str:
    """What XML cannot hold is left out."""
    return quoteattr("".join(letter for letter in text if letter in "\t\n" or letter.isprintable()))


def write_fiftyone(export: Export, folder: Path) -> Path:
    """The form that FiftyOne calls FiftyOneImageClassificationDataset: `labels.json`, and `data/` with the pictures. An
    example has the names of its features; of a label that is unknown or predicted, the name with a mark."""
    labels: dict[str, list[str]] = {}
    with replaced_folder(folder) as building:
        for row, name in enumerate(export.labels.ids):
            path, picture = export.picture(row + 1, name)
            file = Path(path).name
            _save(building / "data" / file, picture)
            value, source = export.labels.value[:, row], export.labels.source[:, row]
            predicted = [PREDICTED_MARK * int(each == Source.PREDICTED) for each in source]
            having = [export.columns[place] + predicted[place] for place in np.flatnonzero(value == 1)]
            unknown = [export.columns[place] + UNKNOWN_MARK for place in np.flatnonzero(value == UNKNOWN)]
            labels[Path(file).stem] = having + unknown
        classes = [*export.columns, *(column + UNKNOWN_MARK for column in export.columns)]
        classes += [export.columns[place] + PREDICTED_MARK for place in export.predicted]
        _mark_sources(export, building)
        written = json.dumps({"classes": classes, "labels": labels}, ensure_ascii=False, indent=1)
        (building / "labels.json").write_text(written + "\n", encoding="utf-8")
        (building / "README.md").write_text(card_of(export), encoding="utf-8")
    return folder


def _mark_sources(export: Export, folder: Path) -> None:
    """A file that lists the predicted and the corrected labels, those that are no among them."""
    source = export.labels.source
    chosen = (source == Source.PREDICTED) | (source == Source.CORRECTED)
    if chosen.any():
        columns = ["id", "feature", "label", "source", "by", "probability"]
        table = export.labels.tidy(chosen, export.columns).select(columns).to_pandas()
        texts = dict.fromkeys(("id", "feature", "source", "by"), object)
        with (folder / SOURCES).open("w", encoding="utf-8", newline="") as file:
            write_csv(file, table.astype(texts))


def _save(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
