"""Exports of a run's labels, each a file or a folder that other programs load."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discovery import as_dot, as_json
from reports.export.annotation_tools import write_fiftyone, write_label_studio
from reports.export.card import card_of
from reports.export.content import ExportContent
from reports.export.huggingface import write_imagefolder, write_parquet_with_content
from reports.export.tables import doubtful_table, json_rows, tidy_table, wide_table
from reports.finished_run import Run
from reports.run import SAME, Findings, RunError, check_replaceable, check_writable, replace_file, write_csv
from sources import Dataset, read_metadata

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Export:
    content: ExportContent
    folder: Path

    @property
    def of_images(self) -> bool:
        return any(example.image is not None for example in self.content.examples.values())


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
    rows = json_rows(export.content)
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return _file(export.folder / "labels.jsonl", lambda file: file.write(text))


def _text(path: Path, text: str) -> Path:
    return _file(path, lambda file: file.write(text + "\n"))


def _folder(name: str) -> Callable[[Export], Path]:
    return lambda export: FOLDERS[name](export.content, export.folder / name)


def _file(path: Path, write: Callable[[Any], object], *, binary: bool = False) -> Path:
    replace_file(path, write, binary=binary)
    return path


FOLDERS: dict[str, Callable[[ExportContent, Path], Path]] = {
    "imagefolder": partial(write_imagefolder, metadata="csv"),
    "imagefolder-parquet": partial(write_imagefolder, metadata="parquet"),
    "huggingface": write_parquet_with_content,
    "label-studio": write_label_studio,
    "fiftyone": write_fiftyone,
}
NEED_IMAGES = {"imagefolder", "imagefolder-parquet", "fiftyone"}
FORMATS: dict[str, Callable[[Export], Path]] = {
    "wide-parquet": _parquet("wide.parquet", lambda export: wide_table(export.content)),
    "wide-csv": _csv("wide.csv", lambda export: wide_table(export.content)),
    "tidy-parquet": _parquet("tidy.parquet", lambda export: tidy_table(export.content.findings)),
    "tidy-csv": _csv("tidy.csv", lambda export: tidy_table(export.content.findings)),
    "jsonl": _jsonl,
    **{name: _folder(name) for name in FOLDERS},
    "features": _csv("features.csv", lambda export: export.content.findings.provenance_table()),
    "card": lambda e: _file(e.folder / "README.md", lambda file: file.write(card_of(e.content))),
    "tree-json": lambda e: _text(e.folder / "tree.json", json.dumps(as_json(e.content.findings.tree()), indent=2)),
    "tree-dot": lambda e: _text(e.folder / "tree.dot", as_dot(e.content.findings.tree())),
    "doubtful": _csv("doubtful.csv", lambda e: doubtful_table(e.content.findings, e.content.examples)),
}

ONLY, WITHOUT = ("interesting", "distinct"), ("doubtful", "duplicates")  # marks by which features are chosen
FILES = tuple(name for name in FORMATS if name not in FOLDERS)


def formats_named(names: Sequence[str]) -> list[str]:
    """The formats asked for, `all` spelled out. Raises RunError for an unknown one."""
    wanted: list[str] = []
    for name in (part.strip() for given in names for part in given.split(",")):
        if name != "all" and name not in FORMATS:
            raise RunError(f"unknown format {name!r}: choose among {', '.join(FORMATS)} or all")
        wanted += list(FORMATS) if name == "all" else [name]
    return list(dict.fromkeys(wanted))


def export_run(
    run: Run,
    names: Sequence[str],
    dataset: Dataset | None,
    folder: Path | None = None,
    *,
    only: Sequence[str] = (),
    without: Sequence[str] = (),
) -> list[Path]:
    """Write the formats into `folder` (default: `export` in the run's); each replaces what it wrote before. A folder
    that holds anything else is refused before anything is written."""
    wanted = formats_named(names)
    everything = any("all" in name.split(",") for name in names)
    if dataset is None and not everything and FOLDERS.keys() & set(wanted):
        raise RunError(f"{min(FOLDERS.keys() & set(wanted))} needs the data set, which cannot be read: give --dataset")
    examples = {example.id: example for example in dataset.examples} if dataset else {}
    content = ExportContent(
        run, _selected(run.findings, only, without), examples, read_metadata(dataset) if dataset else None
    )
    export = Export(content, folder or run.folder / "export")
    if not export.of_images and not everything and NEED_IMAGES & set(wanted):
        unfit = min(NEED_IMAGES & set(wanted))
        raise RunError(f"{unfit} is for images, and this data set has texts: choose huggingface or wide-parquet")
    left_out = (set(FOLDERS) if dataset is None else set()) | (set() if export.of_images else NEED_IMAGES)
    fit = [name for name in wanted if name not in left_out]
    for name in FOLDERS.keys() & set(fit):
        check_replaceable(export.folder / name)
    check_writable(export.folder)
    return [FORMATS[name](export) for name in fit]


def _selected(findings: Findings, only: Sequence[str], without: Sequence[str]) -> Findings:
    """With the features that have all marks of `only` and none of `without`, judged among all of the run."""
    wanted, unwanted = _marks_named(only, "--only", ONLY), _marks_named(without, "--without", WITHOUT)
    chosen = []
    for feature, (interesting, distinct) in zip(findings.found, findings.marks, strict=True):
        has = {
            "interesting": interesting,
            "distinct": distinct,
            "doubtful": feature.is_doubtful,
            "duplicates": feature.twin.startswith(SAME),
        }
        if all(has[mark] for mark in wanted) and not any(has[mark] for mark in unwanted):
            chosen.append(feature)
    return replace(findings, found=chosen)


def _marks_named(texts: Sequence[str], option: str, marks: Sequence[str]) -> list[str]:
    named = [name.strip() for text in texts for name in text.split(",")]
    for name in named:
        if name not in marks:
            raise RunError(f"{option} {name!r} is no mark of features: choose among {', '.join(marks)}")
    return named
