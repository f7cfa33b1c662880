"""predicted.csv: the labels of a run that were predicted and not asked, and how probable yes was."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reports.run.csv_cells import restored
from reports.run.files import RunError
from reports.run.summary import RunSummary

PREDICTED = "predicted.csv"
COLUMNS = ("id", "feature", "label", "probability")
Chances = NDArray[np.float64]


def read_chances(folder: Path, summary: RunSummary, ids: list[str]) -> dict[str, Chances]:
    """Of yes, by feature: NaN where the label was asked. Raises RunError where the file lacks what run.json counts, so
    that no predicted label passes for the oracle's."""
    wanted = int((summary.predicted or {}).get("predicted_labels", 0))
    if not wanted:
        return {}
    path = folder / PREDICTED
    try:
        chances, count = _read(path, {name: row for row, name in enumerate(ids)})
    except (OSError, ValueError, KeyError) as error:
        reason = " ".join(str(error).split())
        raise RunError(f"{path} cannot be read ({reason}): run discover again") from None
    if count != wanted:
        raise RunError(f"{path} marks {count:,} labels and run.json counts {wanted:,}: run discover again")
    return chances


def _read(path: Path, rows: Mapping[str, int]) -> tuple[dict[str, Chances], int]:
    import pandas as pd

    kinds: dict[str, Any] = {"id": str, "feature": str, "label": "int8", "probability": "float64"}
    table = restored(pd.read_csv(path, keep_default_na=False, dtype=kinds))
    chances: dict[str, Chances] = {}
    for feature, part in table.groupby("feature", sort=False):
        of_one = chances[str(feature)] = np.full(len(rows), np.nan)
        of_one[[rows[str(name)] for name in part["id"]]] = part["probability"]
    return chances, sum(int((~np.isnan(of_one)).sum()) for of_one in chances.values())


def certificates_of(summary: RunSummary) -> dict[str, dict[str, Any]]:
    """By feature; none of a feature that was asked in full."""
    listed = (summary.predicted or {}).get("certificates", [])
    return {one["feature"]: one["certificate"] for one in listed if one["certificate"]}
