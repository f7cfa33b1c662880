"""Croissant metadata (MLCommons, version 1.0) of an exported folder: what each column of its table means."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from reports.export.content import ExportContent
from reports.run import public_source

NAME = "croissant.json"
SPECIFICATION = "http://mlcommons.org/croissant/1.0"
CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
FORMATS = {".parquet": "application/x-parquet", ".csv": "text/csv"}


def write_croissant(content: ExportContent, folder: Path, table: str, schema: pa.Schema) -> None:
    """Beside the card of a folder whose one table is the file `table`, with the columns of `schema`."""
    file = folder / table
    summary = content.run.summary
    meanings = {content.columns[one.name]: one.definition or one.name for one in content.findings.found}
    meanings |= {
        column: f"How probable {name!r} was where its label is predicted; empty where the oracle was asked."
        for name, column in content.probability_columns.items()
    }
    meanings |= {
        column: f"Who corrected {name!r}; empty where nobody did." for name, column in content.corrector_columns.items()
    }
    meanings |= {
        content.attribute_columns[one.name]: one.definition or f"One of {', '.join(one.categories)}."
        for one in content.findings.attributes
    }
    metadata = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "name": content.name,
        "description": f"{public_source(summary)} with features that twothirds discovered: 1 has it, 0 lacks it.",
        "conformsTo": SPECIFICATION,
        "version": "1.0.0",
        "datePublished": summary.finished_at[:10],
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": table,
                "name": table,
                "contentUrl": table,
                "encodingFormat": FORMATS[file.suffix],
                "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
            }
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": "examples",
                "name": "examples",
                "field": [_field(number, one, table, meanings) for number, one in enumerate(schema)],
            }
        ],
    }
    (folder / NAME).write_text(json.dumps(metadata, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _field(number: int, column: pa.Field, table: str, meanings: dict[str, str]) -> dict[str, Any]:
    """Its id is a number: a name may be anything."""
    source: dict[str, Any] = {"fileObject": {"@id": table}, "extract": {"column": column.name}}
    if pa.types.is_struct(column.type):  # a picture: its bytes, and a path that is empty
        source["transform"] = {"jsonPath": "bytes"}
    return {
        "@type": "cr:Field",
        "@id": f"examples/column-{number}",
        "name": column.name,
        "description": meanings.get(column.name, "A column of the data set."),
        "dataType": _kind(column.type),
        "source": source,
    }


def _kind(kind: pa.DataType) -> str:
    if pa.types.is_struct(kind):
        return "sc:ImageObject"
    if pa.types.is_boolean(kind):
        return "sc:Boolean"
    if pa.types.is_integer(kind):
        return "sc:Integer"
    return "sc:Float" if pa.types.is_floating(kind) else "sc:Text"
