"""Import files of tools in which people look at labels and correct them: Label Studio and FiftyOne."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

from discovery import UNKNOWN
from reports.export.card import card_of
from reports.export.content import ExportContent, untaken
from reports.export.tables import attributes_of, corrected_of, predicted_of
from reports.run import PREDICTED, replaced_folder, write_csv

CORRECTED = "corrected.csv"
CONTROL, ITEM = "features", "item"
LOCAL_FILES = "/data/local-files/?d="  # under Label Studio's LOCAL_FILES_DOCUMENT_ROOT
UNKNOWN_MARK, PREDICTED_MARK = " (unknown)", " (predicted)"


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
