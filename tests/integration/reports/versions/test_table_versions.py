"""What the files of a table tell: its columns now, and every night."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.growing_worlds import World, night
from twothirds.reports.run.files import RunError
from twothirds.reports.versions.table_file import read_table
from twothirds.reports.versions.table_versions import ListedTable, column_figures, nights_of


def test_columns_and_nights_are_what_the_table_holds(tmp_path: Path) -> None:
    world = World(tmp_path, 30)
    night(world, run_id="first")
    world.add(12)
    night(world, run_id="second")
    out = tmp_path / "out"
    table = read_table(out)
    for one in column_figures(out):
        labels = table.column_labels(one.column.name)
        assert (one.share.positives, one.rows) == (int((labels == 1).sum()), 42)
        assert (one.asked, one.predicted, one.corrected, one.missing) == (42, 0, 0, 0)
    first, second = nights_of(out)
    assert [(one.version, one.rows, one.run) for one in (first, second)] == [(1, 30, "first-1"), (2, 12, "second-2")]
    assert first.labels == {"asked": 90, "predicted": 0, "corrected": 0}
    assert first.drift == ()
    assert {one.feature for one in second.drift} == {"red", "round", "heavy"}
    assert [one.examples_now for one in second.drift] == [12] * 3
    assert ListedTable.read(out).version == 2


def test_a_night_is_read_once_and_one_that_is_damaged_damages_no_other(tmp_path: Path) -> None:
    world = World(tmp_path, 10)
    night(world, run_id="first")
    world.add(5)
    night(world, run_id="second")
    out = tmp_path / "out"
    (out / "history" / "version=1" / "rows.parquet").write_bytes(b"nonsense")
    known: dict[Path, object] = {}
    first, second = nights_of(out, known)  # type: ignore[arg-type]
    assert (first.rows, second.rows) == (0, 5)
    (out / "history" / "version=2" / "rows.parquet").write_bytes(b"nonsense")
    assert nights_of(out, known)[1].rows == 5  # type: ignore[arg-type]


def test_predicted_and_corrected_labels_are_counted_apart(tmp_path: Path) -> None:
    world = World(tmp_path, 300, ("red",))
    night(world, agree=0.6)
    [red] = column_figures(tmp_path / "out")
    assert red.asked + red.predicted == 300
    assert ListedTable.read(tmp_path / "out").predicted_labels == red.predicted


def test_a_folder_without_a_table_is_reported(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="enrich again"):
        column_figures(tmp_path)
    with pytest.raises(RunError, match="enrich again"):
        ListedTable.read(tmp_path)
    assert nights_of(tmp_path) == []
