"""The run folder: run.json, features.csv, labels.parquet, labels.csv and answers.jsonl, written whole or not at all.

What run.json must hold for a report or an export, so that a folder which nothing of ours wrote is one line."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reports.run.csv_cells import restored, write_csv

if TYPE_CHECKING:
    import pandas as pd

    from reports.page.page import Page
    from reports.run.findings import Findings

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
UNFINISHED = ".twothirds"  # how the names of files end that are being written


class RunError(Exception):
    """A run folder that cannot be read or written; the message is one line with the remedy."""


@dataclass(frozen=True)
class Run:
    """A finished run, read from its folder."""

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
    def features(self) -> pd.DataFrame:
        """As curated, where somebody has renamed, merged, split or dropped some."""
        curated = (self.folder / CURATION).exists()
        return self.findings.feature_table() if curated else self.found_features

    @cached_property
    def labels(self) -> pd.DataFrame:
        """One row per example, one nullable 0/1 column per feature, as curated."""
        curated = (self.folder / CURATION).exists()
        return self.findings.label_table() if curated else self.found_labels

    @cached_property
    def findings(self) -> Findings:
        """The features with their labels, votes and questions, as curated."""
        from reports.curation.log import curated_findings

        return curated_findings(self)

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

    def report(self, **options: Any) -> Page:
        """Write report.html and return it; a notebook shows the page. Options as in `reports.page.page.write_page`."""
        from reports.page.page import write_page

        return write_page(self, **options)

    def _read(self, name: str, read: Callable[[Path], pd.DataFrame]) -> pd.DataFrame:
        try:
            return read(self.folder / name)
        except (OSError, ValueError, KeyError) as error:
            reason = " ".join(str(error).split())
            raise RunError(f"{self.folder / name} cannot be read ({reason}): run discover again") from None

    def __repr__(self) -> str:
        found, queries = self.summary["features"], self.summary["queries"]
        return f"<Run {self.folder}: {found} features from {queries} queries, {self.summary['cost_usd']} USD>"


def check_writable(folder: Path) -> None:
    """Fail before anything is spent if the run folder cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise RunError(f"cannot write to {folder} ({error.strerror}): give another folder with --out") from None


def write_run(
    folder: Path,
    *,
    summary: dict[str, Any],
    features: Iterable[dict[str, Any]],
    ids: list[str],
    labels: dict[str, NDArray[np.int8]],
    answers: Iterable[dict[str, Any]],
) -> Run:
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
    return Run(folder)


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


def replace_file(path: Path, write: Callable[[IO[Any]], object], *, binary: bool = False) -> None:
    """Written whole or not at all. What a process that was killed left of an earlier attempt is removed."""
    _remove_abandoned(path)
    options: dict[str, Any] = {"mode": "wb"} if binary else {"mode": "w", "encoding": "utf-8", "newline": ""}
    handle, name = _unfinished(path)
    try:
        with os.fdopen(handle, **options) as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
            os.replace(name, path)  # before it is closed, and with that unlocked
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _unfinished(path: Path) -> tuple[int, str]:
    """A new hidden file beside the path, locked while it is open: that is how others know that somebody writes it."""
    while True:
        name = str(path.parent / f".{path.name}.{secrets.token_hex(6)}{UNFINISHED}")
        handle = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)  # less what the user's umask takes away
        with suppress(OSError):  # a file system without locks, on which nothing is taken for abandoned
            fcntl.flock(handle, fcntl.LOCK_EX)
        if os.path.exists(name):
            return handle, name
        os.close(handle)  # it was taken for abandoned in the moment before it was locked


def _remove_abandoned(path: Path) -> None:
    for entry in list(os.scandir(path.parent)):
        if entry.name.startswith(f".{path.name}.") and entry.name.endswith(UNFINISHED):
            with suppress(OSError), open(entry.path, "rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails where somebody writes it
                os.unlink(entry.path)


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


def check_shape(run: Run) -> None:
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
