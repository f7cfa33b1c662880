"""Folders that `datasets.load_dataset` reads: images beside a metadata table, and Parquet with the content inside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from discovery import UNKNOWN
from reports.export.card import card_of
from reports.export.tables import column_names
from reports.finished_run import Run
from reports.run import RunError, replaced_folder, write_csv
from sources import Example, opened

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
ROWS_AT_A_TIME = 100  # row groups small enough to be streamed
SPLIT = "data/train-00000-of-00001.parquet"


def write_imagefolder(run: Run, examples: dict[str, Example], folder: Path, *, metadata: str) -> Path:
    """`images/` and `metadata.csv` or `metadata.parquet`, never both: the library refuses two tables."""
    findings = run.findings
    columns = column_names(findings, {"id", "file_name", "image", "label"})
    table = findings.label_table().rename(columns=columns).reset_index()
    with replaced_folder(folder) as building:
        (building / "images").mkdir()
        names = []
        for number, name in enumerate(findings.ids, start=1):
            content = _example(examples, name).image_bytes()
            names.append(f"images/{number:06d}{_suffix(content)}")
            (building / names[-1]).write_bytes(content)
        table.insert(0, "file_name", names)
        if metadata == "csv":
            with (building / "metadata.csv").open("w", encoding="utf-8", newline="") as file:
                write_csv(file, table)
        else:
            table.to_parquet(building / "metadata.parquet", index=False)
        (building / "README.md").write_text(card_of(run), encoding="utf-8")
    return folder


def write_parquet_with_content(run: Run, examples: dict[str, Example], folder: Path) -> Path:
    """One row per example: `id`, its `image`, its `text` or both, then the features; the library decodes images."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    findings = run.findings
    shown = [_example(examples, name) for name in findings.ids]
    contents = [kind for kind in ("image", "text") if any(getattr(one, kind) is not None for one in shown)]
    columns = column_names(findings, {"id", "image", "text"})
    schema = _schema(contents, list(columns.values()))
    with replaced_folder(folder) as building:
        path = building / SPLIT
        path.parent.mkdir()
        with pq.ParquetWriter(path, schema) as writer:
            for start in range(0, len(findings.ids), ROWS_AT_A_TIME):
                rows = range(start, min(start + ROWS_AT_A_TIME, len(findings.ids)))
                values: dict[str, list[Any]] = {
                    "id": [findings.ids[row] for row in rows],
                    **{kind: [_content(shown[row], kind) for row in rows] for kind in contents},
                }
                for feature in findings.found:
                    labels = [int(feature.labels[row]) for row in rows]
                    values[columns[feature.name]] = [None if label == UNKNOWN else label for label in labels]
                writer.write_table(pa.table(values, schema=schema))
        head = {"configs": [{"config_name": "default", "data_files": [{"split": "train", "path": SPLIT}]}]}
        (building / "README.md").write_text(card_of(run, head), encoding="utf-8")
    return folder


def _schema(contents: list[str], features: list[str]) -> Any:
    import pyarrow as pa

    kinds = {"id": {"dtype": "string", "_type": "Value"}}
    kinds |= {kind: {"_type": "Image"} if kind == "image" else dict(kinds["id"]) for kind in contents}
    kinds |= {name: {"dtype": "int8", "_type": "Value"} for name in features}
    image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    fields = [("id", pa.string()), *((kind, image if kind == "image" else pa.string()) for kind in contents)]
    fields += [(name, pa.int8()) for name in features]
    return pa.schema(fields, metadata={"huggingface": json.dumps({"info": {"features": kinds}})})


def _content(example: Example, kind: str) -> Any:
    if kind == "text" or example.image is None:
        return example.text if kind == "text" else None
    return {"bytes": example.image_bytes(), "path": None}


def _example(examples: dict[str, Example], name: str) -> Example:
    if name not in examples:
        raise RunError(
            f"example {name!r} is not in the data set any more: restore it, or give the data set with --dataset"
        )
    return examples[name]


def _suffix(content: bytes) -> str:
    with opened(content) as image:
        return SUFFIX[str(image.format)]
