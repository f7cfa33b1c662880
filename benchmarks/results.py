"""Results of benchmarks as tables: in JSON lines, and as Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import ROOT

RESULTS = ROOT / "benchmarks" / "results"
# a number, words, nothing, several of these, or {"mean": …, "error": …}; numbers are rounded before they are stored
Cell = Any


@dataclass(frozen=True)
class RealModel:
    """What a benchmark found with a model that others have trained, for the one table of all such figures."""

    model: str
    data: str
    figure: str
    does_not_show: str


@dataclass(frozen=True)
class Table:
    title: str
    columns: list[str]
    rows: list[list[Cell]]
    notes: list[str] = field(default_factory=list)  # sentences below the table
    missed: list[str] = field(default_factory=list)  # targets
    real_models: list[RealModel] = field(default_factory=list)

    def markdown(self) -> str:
        lines = [self.columns, ["---"] * len(self.columns), *([words(cell) for cell in row] for row in self.rows)]
        table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        below = [*self.notes, *(f"Target missed: {text}." for text in self.missed)]
        return "\n\n".join([table, *below])


@dataclass(frozen=True)
class Result:
    """One run of a benchmark."""

    date: str
    commit: str
    command: str
    machine: str
    quick: bool
    tables: list[Table]

    def append_to(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(self), ensure_ascii=False) + "\n")


def read_results(path: Path) -> list[Result]:
    """In the order in which they were written."""
    if not path.exists():
        return []
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
    return [Result(**record | {"tables": [_table(**table) for table in record["tables"]]}) for record in records]


def _table(real_models: Iterable[Mapping[str, str]] = (), **rest: Any) -> Table:
    return Table(real_models=[RealModel(**found) for found in real_models], **rest)


def last_of_each_table(results: Iterable[Result]) -> list[tuple[Result, Table]]:
    """The last table of each title with the result that it is from; a quick one only where there is no other."""
    last: dict[str, tuple[Result, Table]] = {}
    for result in results:
        for table in result.tables:
            known = last.get(table.title)
            if known is None or known[0].quick or not result.quick:
                last[table.title] = (result, table)
    return list(last.values())


def words(cell: Cell) -> str:
    """A cell as it is printed."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, int | float):
        return f"{cell:,}"
    if isinstance(cell, dict):
        return f"{words(cell['mean'])} ± {words(cell['error'])}"
    if isinstance(cell, list):
        return " / ".join(map(words, cell))
    return str(cell)


def mean_of(values: Sequence[float], digits: int) -> Cell:
    """The mean with its standard error, where there are several values."""
    mean = round(float(np.mean(values)), digits)
    if len(values) < 2:
        return mean
    return {"mean": mean, "error": round(float(np.std(values, ddof=1) / np.sqrt(len(values))), digits)}


def rounded(values: Iterable[float], digits: int) -> list[float]:
    return [round(float(value), digits) for value in values]
