"""The run folder: run.json, features.csv, labels.parquet, labels.csv and answers.jsonl, written whole or not at all.

What run.json must hold for a report or an export, so that a folder which nothing of ours wrote is one line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reports.run.csv_cells import restored, write_csv
from reports.run.files import RunError, replace_file

if TYPE_CHECKING:
    import pandas as pd

FEATURE_COLUMNS = (
    "order",
    "name",
    "definition",
    "question",
    "examples",
    "positives",
    "interesting",
    "distinct",
    "consistent",
    "cost_usd",
)
CURATION = "curation.jsonl"
FEATURE_ID = "id (feature)"


@dataclass(frozen=True)
class RunFolder:
    """What discover wrote, read from its folder: uncurated."""

    folder: Path

    @cached_property
    def summary(self) -> dict[str, Any]:
        path = self.folder / "run.json"
        try:
            summary: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            raise RunError(
                f"{self.folder} is not a run folder (it has no run.json): give one that discover wrote"
            ) from None
        except (ValueError, RecursionError) as error:
            raise RunError(f"{path} cannot be read ({error}): run discover again to write it anew") from None
        if not isinstance(summary, dict):
            raise RunError(f"{path} holds no object: run discover again to write it anew")
        return summary

    @cached_property
    def found_features(self) -> pd.DataFrame:
        """As discovered."""
        import pandas as pd

        kinds = dict.fromkeys(("name", "definition", "question", "examples"), str) | {"positives": int}

        def read(path: Path) -> pd.DataFrame:
            table = pd.read_csv(path, keep_default_na=False, dtype=kinds)
            if missing := kinds.keys() - table.columns:
                raise KeyError(f"no column {min(missing)}")
            return restored(table)

        return self._read("features.csv", read)

    @cached_property
    def found_labels(self) -> pd.DataFrame:
        return self._read("labels.parquet", _read_labels)

    def _read(self, name: str, read: Callable[[Path], pd.DataFrame]) -> pd.DataFrame:
        try:
            return read(self.folder / name)
        except (OSError, ValueError, KeyError) as error:
            reason = " ".join(str(error).split())
            raise RunError(f"{self.folder / name} cannot be read ({reason}): run discover again") from None

    def __repr__(self) -> str:
        found, queries = self.summary["features"], self.summary["queries"]
        return f"<Run {self.folder}: {found} features from {queries} queries, {self.summary['cost_usd']} USD>"


def write_run(
    folder: Path,
    *,
    summary: dict[str, Any],
    features: Iterable[dict[str, Any]],
    ids: list[str],
    labels: dict[str, NDArray[np.int8]],
    answers: Iterable[dict[str, Any]],
) -> None:
    """Every file replaces its predecessor at once, run.json last."""
    import pandas as pd

    table = pd.DataFrame({"id": ids} | {column_of(name): _nullable(values) for name, values in labels.items()})
    listed = pd.DataFrame(list(features), columns=list(FEATURE_COLUMNS))
    replace_file(folder / "features.csv", lambda file: write_csv(file, listed))
    replace_file(folder / "labels.csv", lambda file: write_csv(file, table))
    replace_file(folder / "labels.parquet", lambda file: table.to_parquet(file, index=False), binary=True)
    replace_file(folder / "answers.jsonl", lambda file: _write_lines(file, answers))
    text = json.dumps(summary, indent=2, ensure_ascii=False) + "\n"
    replace_file(folder / "run.json", lambda file: file.write(text))


def column_of(feature: str) -> str:
    """The feature's column in a table that also has the examples' `id`."""
    return FEATURE_ID if feature == "id" else feature


def _read_labels(path: Path) -> pd.DataFrame:
    import pandas as pd

    return pd.read_parquet(path).set_index("id").rename(columns={FEATURE_ID: "id"}).astype("Int8")


def _nullable(values: NDArray[np.int8]) -> pd.arrays.IntegerArray:
    import pandas as pd

    return pd.arrays.IntegerArray(values.copy(), values < 0)


def _write_lines(file: IO[Any], rows: Iterable[dict[str, Any]]) -> None:
    for row in rows:
        file.write(json.dumps(row, ensure_ascii=False) + "\n")


NUMBER = (int, float)
ORACLE = {"kind": str, "model": str, "parameters": dict, "prompts": str}
LEFT_OUT = {"id": str, "reason": str}
SHAPE: dict[str, Any] = {
    "settings": {"dataset": str, "strategy": str, "votes": int, "seed": int},
    "dataset": {"name": str, "digest": str, "examples": int, "compared": int, "left_out": [LEFT_OUT]},
    "oracle": ORACLE,
    "run_id": str,
    "queries": int,
    "g_curve": [NUMBER],
    "g?": NUMBER,
    "unresolved?": NUMBER,
    "seconds?": NUMBER,
    "stopped_because": str,
    "cost_usd": NUMBER,
    "paid_calls": int,
    "cached_calls": int,
    "versions": dict,
}


def check_shape(run: RunFolder) -> None:
    if problem := _problem(run.summary, SHAPE, ""):
        path = run.folder / "run.json"
        raise RunError(f"{path} is not what discover writes ({problem}): run discover again to write it anew")


def _problem(value: Any, shape: Any, at: str) -> str | None:
    """Where a value is not of its shape: a type, some of them, the members of an object, of which those with a ? may be
    missing, or what a list is of."""
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return f"{at.rstrip('.') or 'all of it'} is no object"
        missing = next((name for name in shape if not name.endswith("?") and name not in value), None)
        if missing is not None:
            return f"{at}{missing} is missing"
        there = [(name.rstrip("?"), inner) for name, inner in shape.items() if name.rstrip("?") in value]
        found = (_problem(value[name], inner, f"{at}{name}.") for name, inner in there)
        return next((problem for problem in found if problem), None)
    if isinstance(shape, list):
        if not isinstance(value, list):
            return f"{at.rstrip('.')} is no list"
        return next((problem for one in value if (problem := _problem(one, shape[0], f"{at}each."))), None)
    fits = isinstance(value, shape) and not isinstance(value, bool)
    return None if fits else f"{at.rstrip('.')} is {type(value).__name__}"
