"""Parts of one enrichment that several processes label: each writes what it found, and the last one joins them."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from reports.growing import GrowingTable, read_file, read_table, write_file, write_table
from reports.run import RunError, replace_file

PARTS = "parts"
SUMMED = ("added", "changed", "renamed", "filled", "unchanged", "paid_calls", "cached_calls", "cost_usd")


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
    replace_file(parts / f"{name}.parquet", lambda file: write_file(file, table, rows), binary=True)
    replace_file(
        parts / f"{name}.json",
        lambda file: file.write(json.dumps(summary | {"touched": len(rows)}, ensure_ascii=False)),
    )


def join_parts(folder: Path, version: int, count: int) -> list[dict[str, Any]] | None:
    """Once all parts of a version are there: take them into the table. The summaries of the parts, or None.

    Call it under the lock: whoever comes last joins."""
    names = [_name(version, (place, count)) for place in range(count)]
    files = [folder / PARTS / f"{name}.json" for name in names]
    if not all(file.exists() for file in files):
        return None
    summaries = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    table = read_table(folder)
    meaning_before = table.meaning.columns
    for name in names:
        part = read_file(folder / PARTS / f"{name}.parquet")
        if part.meaning != table.meaning:
            table.define(part.meaning)
        for row, example in enumerate(part.ids):
            place = table.put(example, part.digest(row), int(part.versions[row]))
            table.labels[place] = part.labels[row]
    if meaning_before != table.meaning.columns or any(summary["touched"] for summary in summaries):
        write_table(folder, table)
    for name in names:
        for suffix in ("json", "parquet"):
            (folder / PARTS / f"{name}.{suffix}").unlink()
    return summaries


def joined_summary(summaries: list[dict[str, Any]]) -> dict[str, Any]:
    whole = dict(summaries[0])
    whole.update({key: sum(summary[key] for summary in summaries) for key in SUMMED})
    whole["left_out"] = [one for summary in summaries for one in summary["left_out"]]
    whole["shards"] = len(summaries)
    del whole["touched"]
    return whole


def _name(version: int, part: tuple[int, int]) -> str:
    return f"version-{version}-part-{part[0] + 1}-of-{part[1]}"
