"""Data sets that a form offers: those that ship, and what looks like one below the folders that the studio serves."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from sources import is_image, is_table

SHIPPED = Path(__file__).parents[2] / "datasets"
OURS = {
    "run.json",
    "enrich.json",
    "comparison.json",
    "live.jsonl",
    "start.json",
}  # results, in whose folders no data is
DEPTH, LOOKED_AT, MOST = 3, 500, 100
ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")
BESIDE = ("truth.", "metadata.")  # parts of a data set


def known_datasets(roots: Sequence[Path]) -> list[str]:
    """As a command would name them from here."""
    found = (path for root in (SHIPPED, *roots) for path in _below(root, DEPTH))
    return list(dict.fromkeys(_written(path) for path in islice(found, MOST)))


def _written(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _below(folder: Path, depth: int) -> Iterator[Path]:
    """A folder with examples in it is one data set; tables and archives are one each."""
    try:
        with os.scandir(folder) as listed:
            entries = sorted(islice(listed, LOOKED_AT), key=lambda one: one.name)
            folders = [one.path for one in entries if one.is_dir(follow_symlinks=False) and one.name[0] != "."]
            names = [one.name for one in entries if one.is_file(follow_symlinks=False)]
    except OSError:
        return
    if OURS.intersection(names):
        return
    if any(is_image(name) or (name.startswith("metadata.") and is_table(name)) for name in names):
        yield folder
        return
    single = (name for name in names if is_table(name) or name.lower().endswith(ARCHIVES))
    yield from (folder / name for name in single if not name.startswith(BESIDE))
    if depth:
        for path in folders:
            yield from _below(Path(path), depth - 1)
