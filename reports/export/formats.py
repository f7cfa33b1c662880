"""Exports of a run's labels, each a file or a folder that other programs load."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twothirds.discovery import as_dot, as_json
from twothirds.reports.export.card import card_of
from twothirds.reports.export.content import Export
from twothirds.reports.export.folders import (
    write_fiftyone,
    write_imagefolder,
    write_label_studio,
    write_parquet_with_content,
)
from twothirds.reports.export.origins import Marks, of_run, of_table
from twothirds.reports.export.tables import doubtful_table, json_rows, tidy_table, wide_table
from twothirds.reports.finished_run import Run
from twothirds.reports.run import RunError, check_replaceable, check_writable, replace_file, write_csv
from twothirds.sources import Dataset

if TYPE_CHECKING:
    import pandas as pd


Write = Callable[[Export, Path], Path]


def _csv(name: str, table: Callable[[Export], pd.DataFrame]) -> Write:
    return lambda export, folder: _file(folder / name, lambda file: write_csv(file, table(export)))


def _parquet(name: str, table: Callable[[Export], pd.DataFrame]) -> Write:
    def write(export: Export, folder: Path) -> Path:
        return _file(folder / name, lambda file: table(export).to_parquet(file, index=False), binary=True)

    return write


def _text(name: str, text: Callable[[Export], str]) -> Write:
    return lambda export, folder: _file(folder / name, lambda file: file.write(text(export)))


def _lines(export: Export) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in json_rows(export))


def _folder(name: str) -> Write:
    return lambda export, folder: FOLDERS[name](export, folder / name)


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
    "tidy-parquet": _parquet("tidy.parquet", tidy_table),
    "tidy-csv": _csv("tidy.csv", tidy_table),
    "jsonl": _text("labels.jsonl", _lines),
    **{name: _folder(name) for name in FOLDERS},
    "features": _csv("features.csv", lambda export: export.features),
    "card": _text("README.md", card_of),
    "tree-json": _text("tree.json", lambda export: json.dumps(as_json(export.tree), indent=2) + "\n"),
    "tree-dot": _text("tree.dot", lambda export: as_dot(export.tree) + "\n"),
    "doubtful": _csv("doubtful.csv", lambda export: doubtful_table(export)),
}

NEED_VOTES = {"doubtful"}  # which tables do not keep
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
    marks: Marks = Marks(),  # noqa: B008  # it is frozen
    say: Callable[[str], object] = lambda _: None,
) -> list[Path]:
    """Write the formats into `folder` (default: `export` in the run's); each replaces what it wrote before. A folder
    that holds anything else is refused before anything is written. `say` hears what is left out."""
    export = of_run(run, dataset, marks)
    written = _write(export, names, dataset, folder or run.folder / "export")
    if export.left_out:
        say(f"{export.left_out_line}, unless it has --with doubtful")
    return written


def export_table(table: Path, names: Sequence[str], dataset: Dataset | None, folder: Path | None = None) -> list[Path]:
    """The same of a nightly table, in the folder that enrich wrote."""
    return _write(of_table(table, dataset), names, dataset, folder or table / "export")


def _write(export: Export, names: Sequence[str], dataset: Dataset | None, into: Path) -> list[Path]:
    wanted = formats_named(names)
    everything = any("all" in name.split(",") for name in names)
    of_images = any(example.image is not None for example in export.examples.values())
    unfit = dict[str, str]()
    if dataset is None:
        unfit |= dict.fromkeys(FOLDERS, "needs the data set, which cannot be read: give --dataset")
    elif not of_images:
        texts = "is for images, and this data set has texts: choose huggingface or wide-parquet"
        unfit |= dict.fromkeys(NEED_IMAGES, texts)
    if export.findings is None:
        unfit |= dict.fromkeys(NEED_VOTES, "needs votes, which a table does not keep: choose tidy-parquet")
    fit = [name for name in wanted if name not in unfit]
    if not everything and len(fit) < len(wanted):
        name = min(name for name in wanted if name in unfit)
        raise RunError(f"{name} {unfit[name]}")
    for name in FOLDERS.keys() & set(fit):
        check_replaceable(into / name)
    check_writable(into)
    return [FORMATS[name](export, into) for name in fit]
