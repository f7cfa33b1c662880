"""Exports of a run's labels, each a file or a folder that other programs load."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discovery import as_dot, as_json
from reports.export.card import card_of
from reports.export.huggingface import write_imagefolder, write_parquet_with_content
from reports.export.tables import doubtful_table, json_rows, tidy_table, wide_table
from reports.finished_run import Run
from reports.run import RunError, check_replaceable, check_writable, replace_file, write_csv
from sources import Dataset, Example

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Export:
    run: Run
    examples: dict[str, Example]
    folder: Path

    @property
    def of_images(self) -> bool:
        return any(example.image is not None for example in self.examples.values())


def _csv(name: str, table: Callable[[Export], pd.DataFrame]) -> Callable[[Export], Path]:
    def write(export: Export) -> Path:
        made = table(export)
        return _file(export.folder / name, lambda file: write_csv(file, made))

    return write


def _parquet(name: str, table: Callable[[Export], pd.DataFrame]) -> Callable[[Export], Path]:
    def write(export: Export) -> Path:
        made = table(export)
        return _file(export.folder / name, lambda file: made.to_parquet(file, index=False), binary=True)

    return write


def _jsonl(export: Export) -> Path:
    rows = json_rows(export.run.findings, export.examples)
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return _file(export.folder / "labels.jsonl", lambda file: file.write(text))


def _text(path: Path, text: str) -> Path:
    return _file(path, lambda file: file.write(text + "\n"))


def _file(path: Path, write: Callable[[Any], object], *, binary: bool = False) -> Path:
    replace_file(path, write, binary=binary)
    return path


NEED_CONTENT = {"imagefolder", "imagefolder-parquet", "huggingface"}
NEED_IMAGES = {"imagefolder", "imagefolder-parquet"}
FORMATS: dict[str, Callable[[Export], Path]] = {
    "wide-parquet": _parquet("wide.parquet", lambda export: wide_table(export.run.findings)),
    "wide-csv": _csv("wide.csv", lambda export: wide_table(export.run.findings)),
    "tidy-parquet": _parquet("tidy.parquet", lambda export: tidy_table(export.run.findings)),
    "tidy-csv": _csv("tidy.csv", lambda export: tidy_table(export.run.findings)),
    "jsonl": _jsonl,
    "imagefolder": lambda e: write_imagefolder(e.run, e.examples, e.folder / "imagefolder", metadata="csv"),
    "imagefolder-parquet": lambda e: write_imagefolder(
        e.run, e.examples, e.folder / "imagefolder-parquet", metadata="parquet"
    ),
    "huggingface": lambda e: write_parquet_with_content(e.run, e.examples, e.folder / "huggingface"),
    "card": lambda e: _file(e.folder / "README.md", lambda file: file.write(card_of(e.run))),
    "tree-json": lambda e: _text(e.folder / "tree.json", json.dumps(as_json(e.run.findings.tree()), indent=2)),
    "tree-dot": lambda e: _text(e.folder / "tree.dot", as_dot(e.run.findings.tree())),
    "doubtful": _csv("doubtful.csv", lambda export: doubtful_table(export.run.findings, export.examples)),
}


def formats_named(names: Sequence[str]) -> list[str]:
    """The formats asked for, `all` spelled out. Raises RunError for an unknown one."""
    wanted: list[str] = []
    for name in (part.strip() for given in names for part in given.split(",")):
        if name != "all" and name not in FORMATS:
            raise RunError(f"unknown format {name!r}: choose among {', '.join(FORMATS)} or all")
        wanted += list(FORMATS) if name == "all" else [name]
    return list(dict.fromkeys(wanted))


def export_run(run: Run, names: Sequence[str], dataset: Dataset | None, folder: Path | None = None) -> list[Path]:
    """Write the formats into `folder` (default: `export` in the run's); each replaces what it wrote before. A folder
    that holds anything else is refused before anything is written."""
    wanted = formats_named(names)
    everything = any("all" in name.split(",") for name in names)
    if dataset is None and not everything and NEED_CONTENT & set(wanted):
        raise RunError(f"{min(NEED_CONTENT & set(wanted))} needs the data set, which cannot be read: give --dataset")
    examples = {example.id: example for example in dataset.examples} if dataset else {}
    export = Export(run, examples, folder or run.folder / "export")
    if not export.of_images and not everything and NEED_IMAGES & set(wanted):
        raise RunError("imagefolder is for images, and this data set has texts: choose huggingface or wide-parquet")
    unfit = (NEED_CONTENT if dataset is None else set()) | (set() if export.of_images else NEED_IMAGES)
    fit = [name for name in wanted if name not in unfit]
    for name in NEED_CONTENT & set(fit):
        check_replaceable(export.folder / name)
    check_writable(export.folder)
    return [FORMATS[name](export) for name in fit]
