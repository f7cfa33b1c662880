"""The run folder: run.json, features.csv, labels.parquet, labels.csv and answers.jsonl, each replaced atomically."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discovery import UNKNOWN
from reports.run.csv_cells import restored, write_csv
from reports.run.files import RunError, replace_file
from reports.run.predictions import COLUMNS as PREDICTED_COLUMNS
from reports.run.predictions import PREDICTED
from reports.run.summary import RunSummary
from reports.run.twins import twins_of

if TYPE_CHECKING:
    import pandas as pd

FEATURE_COLUMNS = (
    *("order", "name", "definition", "question", "examples"),
    *("positives", "labelled", "interesting", "distinct", "consistent", "twin", "look", "given_by", "cost_usd"),
)
CURATION = "curation.jsonl"
LIVE = "live.jsonl"  # what a discovery does, while it does it
STEER = "steer.jsonl"  # what people who watch it want
FEATURE_ID = "id (feature)"


@dataclass(frozen=True)
class RunFolder:
    """What discover wrote, read from its folder: uncurated."""

    folder: Path

    @cached_property
    def summary(self) -> RunSummary:
        return RunSummary.read(self.folder)

    @cached_property
    def found_features(self) -> pd.DataFrame:
        """As discovered."""
        import pandas as pd

        kinds = dict.fromkeys(("name", "definition", "question", "examples"), str) | {"positives": int}

        def read(path: Path) -> pd.DataFrame:
            table = pd.read_csv(path, keep_default_na=False, dtype=kinds)
            if missing := kinds.keys() - table.columns:
                raise KeyError(f"no column {min(missing)}")
            return self._completed(restored(table))

        return self._read("features.csv", read)

    def _completed(self, table: pd.DataFrame) -> pd.DataFrame:
        """With the columns that earlier versions did not write."""
        if "labelled" not in table.columns:
            known = self.found_labels.notna().sum()
            place = list(table.columns).index("positives") + 1
            table.insert(place, "labelled", [int(known[name]) for name in table["name"]])
        if "twin" not in table.columns:
            compared, names = self.summary.dataset.compared_ids, [str(name) for name in table["name"]]
            labels = self.found_labels if compared is None else self.found_labels.loc[compared]
            twins = twins_of(names, [np.asarray(labels[name].fillna(UNKNOWN), np.int8) for name in names])
            table.insert(len(table.columns) - 1, "twin", twins)
        if "look" not in table.columns:
            table.insert(len(table.columns) - 1, "look", "")
        if "given_by" not in table.columns:
            table.insert(len(table.columns) - 1, "given_by", "")
        return table

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
        run = self.summary
        found = f"{run.features} feature{'' if run.features == 1 else 's'}"
        return f"<Run {self.folder}: {found}, queries: {run.queries}, {run.cost_usd} USD>"


def write_run(
    folder: Path,
    *,
    summary: RunSummary,
    features: Iterable[dict[str, Any]],
    ids: list[str],
    labels: dict[str, NDArray[np.int8]],
    answers: Iterable[dict[str, Any]],
    predicted: Iterable[dict[str, Any]] | None = None,
) -> None:
    """Every file replaces its predecessor at once, run.json last."""
    import pandas as pd

    table = pd.DataFrame({"id": ids} | {column_of(name): _nullable(values) for name, values in labels.items()})
    listed = pd.DataFrame(list(features), columns=list(FEATURE_COLUMNS))
    replace_file(folder / "features.csv", lambda file: write_csv(file, listed))
    replace_file(folder / "labels.csv", lambda file: write_csv(file, table))
    replace_file(folder / "labels.parquet", lambda file: table.to_parquet(file, index=False), binary=True)
    replace_file(folder / "answers.jsonl", lambda file: _write_lines(file, answers))
    if predicted is not None:
        marked = pd.DataFrame(list(predicted), columns=list(PREDICTED_COLUMNS))
        replace_file(folder / PREDICTED, lambda file: write_csv(file, marked))
    else:
        (folder / PREDICTED).unlink(missing_ok=True)
    summary.write(folder)


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
