"""The classes of a column: rare ones are pooled, not refused."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from twothirds.reports.analysis.columns import FEWEST_ROWS, MOST_CLASSES, MetadataColumn, read_column
from twothirds.reports.run import RunError
from twothirds.sources import load_dataset


def column(folder: Path, values: list[str]) -> MetadataColumn:
    ids = [f"e{row}" for row in range(len(values))]
    pd.DataFrame({"id": ids, "text": ids, "kind": values}).to_csv(folder / "t.csv", index=False)
    return read_column(load_dataset(str(folder / "t.csv")), "kind", ids)


def test_of_many_classes_the_rarer_ones_are_one(tmp_path: Path) -> None:
    values = [f"class {number}" for number in range(40) for _ in range(FEWEST_ROWS + 40 - number)]
    found = column(tmp_path, values)
    classes = pd.Series(found.values).value_counts()
    assert len(classes) == MOST_CLASSES
    assert len(found.rows) == len(values)
    assert {f"class {number}" for number in range(MOST_CLASSES - 1)} < set(classes.index)
    assert classes["other (21 values)"] == sum(values.count(f"class {number}") for number in range(19, 40))
    assert found.pooled.startswith("21 rarer values as 'other (21 values)': 'class 19' (26)")
    assert found.left_out == []


def test_classes_of_a_few_examples_are_pooled_if_they_are_enough_together(tmp_path: Path) -> None:
    found = column(tmp_path, ["a"] * 10 + ["b"] * 10 + ["c"] * 3 + ["d"] * 2)
    assert sorted(set(found.values)) == ["a", "b", "other (2 values)"]
    few = column(tmp_path, ["a"] * 10 + ["b"] * 10 + ["c"] * 3)
    assert sorted(set(few.values)) == ["a", "b"]
    assert few.left_out == ["values with fewer than 5 examples: 'c' (3)"]


def test_a_column_of_single_values_is_still_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="two are needed"):
        column(tmp_path, [f"v{row}" for row in range(60)])
