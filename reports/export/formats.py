"""Exports of a run's labels, each a file or a folder that other programs load."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twothirds.discovery import as_dot, as_json
from twothirds.reports.export.card import card_of
from twothirds.reports.export.content import ExportContent
from twothirds.reports.export.folders import (
    write_fiftyone,
    write_imagefolder,
    write_label_studio,
    write_parquet_with_content,
)
from twothirds.reports.export.tables import doubtful_table, json_rows, tidy_table, wide_table
from twothirds.reports.finished_run import Run
from twothirds.reports.run import (
    SAME,
    Findings,
    FoundFeature,
    RunError,
    check_replaceable,
    check_writable,
    replace_file,
    write_csv,
)
from twothirds.sources import Dataset, read_metadata

if TYPE_CHECKING:
    import pandas as pd


Write = Callable[[ExportContent, Path], Path]


def _csv(name: str, table: Callable[[ExportContent], pd.DataFrame]) -> Write:
    return lambda content, folder: _file(folder / name, lambda file: write_csv(file, table(content)))


def _parquet(name: str, table: Callable[[ExportContent], pd.DataFrame]) -> Write:
    def write(content: ExportContent, folder: Path) -> Path:
        return _file(folder / name, lambda file: table(content).to_parquet(file, index=False), binary=True)

    return write


def _text(name: str, text: Callable[[ExportContent], str]) -> Write:
    return lambda content, folder: _file(folder / name, lambda file: file.write(text(content)))


def _lines(content: ExportContent) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in json_rows(content))


def _folder(name: str) -> Write:
    return lambda content, folder: FOLDERS[name](content, folder / name)


def _file(path: Path, write: Callable[[Any], object], *, binary: bool = False) -> Path:
    replace_file(path, write, binary=binary)
    return path


FOLDERS: dict[str, Write] = {
    "imagefolder": partial(write_imagefolder, metadata="csv"),
    "imagefolder-parquet": partial(write_imagefolder, metadata="parquet"),
    "huggingface": write_parquet_with_content,
    "label-studio": write_label_studio,
    "fiftyone": write_fiftyone,
}
NEED_IMAGES = {"imagefolder", "imagefolder-parquet", "fiftyone"}
FORMATS: dict[str, Write] = {
    "wide-parquet": _parquet("wide.parquet", wide_table),
    "wide-csv": _csv("wide.csv", wide_table),
    "tidy-parquet": _parquet("tidy.parquet", lambda content: tidy_table(content.findings)),
    "tidy-csv": _csv("tidy.csv", lambda content: tidy_table(content.findings)),
    "jsonl": _text("labels.jsonl", _lines),
    **{name: _folder(name) for name in FOLDERS},
    "features": _csv("features.csv", lambda content: content.findings.provenance_table()),
    "card": _text("README.md", card_of),
    "tree-json": _text("tree.json", lambda content: json.dumps(as_json(content.findings.tree()), indent=2) + "\n"),
    "tree-dot": _text("tree.dot", lambda content: as_dot(content.findings.tree()) + "\n"),
    "doubtful": _csv("doubtful.csv", lambda content: doubtful_table(content.to_check, content.examples)),
}

# Marks by which features are chosen; those of WITH are left out unless they are named.
ONLY, WITHOUT, WITH = ("interesting", "distinct"), ("doubtful", "divided", "duplicates"), ("doubtful",)
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
    with_: Sequence[str] = (),
    say: Callable[[str], object] = lambda _: None,
) -> list[Path]:
    """Write the formats into `folder` (default: `export` in the run's); each replaces what it wrote before. A folder
    that holds anything else is refused before anything is written. `say` hears what is left out."""
    wanted = formats_named(names)
    everything = any("all" in name.split(",") for name in names)
    if dataset is None and not everything and FOLDERS.keys() & set(wanted):
        raise RunError(f"{min(FOLDERS.keys() & set(wanted))} needs the data set, which cannot be read: give --dataset")
    examples = {example.id: example for example in dataset.examples} if dataset else {}
    chosen = _selected(run.findings, only, without)
    left_out = [] if _marks_named(with_, "--with", WITH) else [found for found in chosen if found.is_doubtful]
    content = ExportContent(
        run=run,
        findings=replace(run.findings, found=[found for found in chosen if found not in left_out]),
        examples=examples,
        metadata=read_metadata(dataset) if dataset else None,
        left_out=left_out,
    )
    into = folder or run.folder / "export"
    of_images = any(example.image is not None for example in examples.values())
    if not of_images and not everything and NEED_IMAGES & set(wanted):
        unfit = min(NEED_IMAGES & set(wanted))
        raise RunError(f"{unfit} is for images, and this data set has texts: choose huggingface or wide-parquet")
    unfit_formats = (set(FOLDERS) if dataset is None else set()) | (set() if of_images else NEED_IMAGES)
    fit = [name for name in wanted if name not in unfit_formats]
    for name in FOLDERS.keys() & set(fit):
        check_replaceable(into / name)
    check_writable(into)
    written = [FORMATS[name](content, into) for name in fit]
    if left_out:
        say(f"{content.left_out_line}, unless it has --with doubtful")
    return written


def _selected(findings: Findings, only: Sequence[str], without: Sequence[str]) -> list[FoundFeature]:
    """The features that have all marks of `only` and none of `without`, judged among all of the run."""
    wanted, unwanted = _marks_named(only, "--only", ONLY), _marks_named(without, "--without", WITHOUT)
    chosen = []
    for feature, (interesting, distinct) in zip(findings.found, findings.marks, strict=True):
        has = {
            "interesting": interesting,
            "distinct": distinct,
            "doubtful": feature.is_doubtful,
            "divided": feature.is_divided,
            "duplicates": feature.twin.startswith(SAME),
        }
        if all(has[mark] for mark in wanted) and not any(has[mark] for mark in unwanted):
            chosen.append(feature)
    return chosen


def _marks_named(texts: Sequence[str], option: str, marks: Sequence[str]) -> list[str]:
    named = [name.strip() for text in texts for name in text.split(",")]
    for name in named:
        if name not in marks:
            raise RunError(f"{option} {name!r} is no mark of features: choose among {', '.join(marks)}")
    return named
