"""Parts of one enrichment."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from reports.label_table import GrowingTable, Meaning, read_file, read_table, write_file, write_table
from reports.run.files import RunError, replace_file

PARTS = "parts"


@contextmanager
def locked(folder: Path, *, wait: bool) -> Iterator[None]:
    """One writer per table. Raises RunError where another is at work and this one is not to wait."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError:
            raise RunError(f"another enrichment is writing {folder}: wait for it, or give another --out") from None
        yield


def write_part(
    folder: Path, table: GrowingTable, rows: list[int], summary: dict[str, Any], part: tuple[int, int]
) -> None:
    """What one part found, under the version of the table that it is for."""
    parts = folder / PARTS
    parts.mkdir(parents=True, exist_ok=True)
    name = _name(table.meaning.version, part)
    said = {"meaning": asdict(table.meaning), "touched": len(rows), "summary": summary}
    replace_file(parts / f"{name}.parquet", lambda file: write_file(file, table, rows), binary=True)
    replace_file(parts / f"{name}.json", lambda file: file.write(json.dumps(said, ensure_ascii=False)))


def missing_parts(folder: Path, meaning: Meaning, count: int) -> list[str]:
    """Those of which nothing was written yet, or only what an attempt with other features or another oracle found."""
    wanted = json.loads(json.dumps(asdict(meaning)))
    return [f"{place + 1}/{count}" for place in range(count) if _read(folder, meaning, (place, count)) != wanted]


def join_parts(folder: Path, meaning: Meaning, count: int) -> tuple[GrowingTable, list[dict[str, Any]]]:
    """Take all parts of a version into the table: it, and the summaries of the parts.

    Call it under the lock, when no part is missing."""
    names = [_name(meaning.version, (place, count)) for place in range(count)]
    said = [json.loads((folder / PARTS / f"{name}.json").read_text(encoding="utf-8")) for name in names]
    table = read_table(folder)
    if any(one["touched"] for one in said) or not table.meaning.means_the_same_as(meaning):
        table.define(meaning)
        for name in names:
            part = read_file(folder / PARTS / f"{name}.parquet")
            for row, example in enumerate(part.ids):
                place = table.put(example, part.digest(row), int(part.versions[row]))
                table.labels[place] = part.labels[row]
        write_table(folder, table)
    remove_parts(folder, meaning.version)
    return table, [one["summary"] for one in said]


def _read(folder: Path, meaning: Meaning, part: tuple[int, int]) -> Any:
    """What the columns of a part mean; None where it was not written."""
    file = folder / PARTS / f"{_name(meaning.version, part)}.json"
    return json.loads(file.read_text(encoding="utf-8")).get("meaning") if file.exists() else None


def _name(version: int, part: tuple[int, int]) -> str:
    return f"version-{version}-part-{part[0] + 1}-of-{part[1]}"


def remove_parts(folder: Path, version: int) -> None:
    """Whatever parts there are up to a version, those of attempts that were given up too."""
    for file in (folder / PARTS).glob("version-*-part-*"):
        if int(file.name.split("-")[1]) <= version:
            file.unlink(missing_ok=True)
