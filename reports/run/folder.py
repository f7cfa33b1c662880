"""The run folder: run.json, features.csv, labels.parquet, labels.csv and answers.jsonl, each replaced atomically.

Cells of CSV files that a spreadsheet would run as a formula are written with an apostrophe before them, and read back
without."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, TypeVar

from twothirds.reports.label_table import LabelTable
from twothirds.reports.run.files import RunError, replace_file
from twothirds.reports.run.summary import RunSummary

if TYPE_CHECKING:
    import pandas as pd

Read = TypeVar("Read")
STARTS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def defuse(cell: Any) -> Any:
    """Numbers stay as they are. A text that has an apostrophe already gets one more, so that `restore` is exact."""
    return f"'{cell}" if isinstance(cell, str) and cell.lstrip("'").startswith(STARTS_A_FORMULA) else cell


def restore(cell: Any) -> Any:
    defused = isinstance(cell, str) and cell.startswith("'") and cell.lstrip("'").startswith(STARTS_A_FORMULA)
    return cell[1:] if defused else cell


def defused(table: pd.DataFrame) -> pd.DataFrame:
    """The table with its texts and column names defused."""
    return _texts(table, defuse)


def write_csv(file: IO[str], table: pd.DataFrame) -> None:
    """Without what a spreadsheet would run, and with lone carriage returns quoted."""
    made = defused(table)
    texts = made.select_dtypes(exclude="number")
    made.to_csv(file, index=False, quoting=quoting_of([*made.columns, *texts.to_numpy().flat]))


def quoting_of(cells: Iterable[Any]) -> Literal[0, 1]:
    """For Python's writers: everything is quoted where a cell holds a carriage return, of which one row became two."""
    return csv.QUOTE_ALL if any("\r" in str(cell) for cell in cells) else csv.QUOTE_MINIMAL


def restored(table: pd.DataFrame) -> pd.DataFrame:
    return _texts(table, restore)


def _texts(table: pd.DataFrame, change: Callable[[Any], Any]) -> pd.DataFrame:
    import pandas as pd

    made = table.copy()
    for place, kind in enumerate(table.dtypes):
        if not pd.api.types.is_numeric_dtype(kind):
            made.isetitem(place, table.iloc[:, place].map(change).array)
    made.columns = pd.Index([change(name) for name in table.columns])
    return made


FEATURE_COLUMNS = (
    *("order", "name", "column", "definition", "question", "examples"),
    *("positives", "labelled", "sampled_positives", "sampled"),
    *("interesting", "distinct", "consistent", "twin", "look", "added_by", "cost_usd"),
)
CURATION = "curation.jsonl"
LIVE = "live.jsonl"  # what a discovery does, while it does it
STEER = "steer.jsonl"  # what people who watch it want
LABELS = "labels.parquet"


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

        kinds = dict.fromkeys(("name", "column", "definition", "question", "examples"), str) | {"positives": int}

        def read(path: Path) -> pd.DataFrame:
            table = pd.read_csv(path, keep_default_na=False, dtype=kinds)
            if missing := set(FEATURE_COLUMNS) - set(table.columns):
                raise KeyError(f"no column {min(missing)}")
            return restored(table)

        return self._read("features.csv", read)

    @cached_property
    def found_labels(self) -> LabelTable:
        """As discovered: asked and predicted ones. How the votes fell is in answers.jsonl."""

        def read(path: Path) -> LabelTable:
            import pyarrow.parquet as pq

            return LabelTable.from_arrow(pq.read_table(path))

        return self._read(LABELS, read)

    def _read(self, name: str, read: Callable[[Path], Read]) -> Read:
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
    labels: LabelTable,
    answers: Iterable[dict[str, Any]],
) -> None:
    """Every file replaces its predecessor at once, run.json last."""
    import pandas as pd
    import pyarrow.parquet as pq

    listed = pd.DataFrame(list(features), columns=list(FEATURE_COLUMNS)).assign(column=labels.columns)
    replace_file(folder / "features.csv", lambda file: write_csv(file, listed))
    replace_file(folder / "labels.csv", lambda file: write_csv(file, labels.frame().reset_index()))
    replace_file(folder / LABELS, lambda file: pq.write_table(labels.to_arrow(), file), binary=True)
    lines = (json.dumps(answer, ensure_ascii=False) + "\n" for answer in answers)
    replace_file(folder / "answers.jsonl", lambda file: file.writelines(lines))
    summary.write(folder)


def certificates_of(summary: RunSummary) -> dict[str, dict[str, Any]]:
    """By feature; none of a feature that was asked in full."""
    listed = (summary.predicted or {}).get("certificates", [])
    return {entry["feature"]: entry["certificate"] for entry in listed if entry["certificate"]}
