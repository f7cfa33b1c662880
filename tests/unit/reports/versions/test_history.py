"""The history of a table, replayed, is the table; and says where labels come from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twothirds.discovery.questions import UNKNOWN
from twothirds.reports.versions.history import NewVersion, write_history
from twothirds.reports.versions.table import Column, CorrectedCell, TableSchema, VersionedTable

ORACLE = {"kind": "openai", "model": "gpt-x"}


def digest(number: int) -> str:
    return f"{number:064x}"


def replayed(folder: Path) -> pd.DataFrame:
    parts = sorted(folder.glob("history/*/*.parquet"), key=lambda path: int(path.parent.name.partition("=")[2]))
    read = [pq.ParquetFile(path).read().to_pandas(types_mapper=pd.ArrowDtype) for path in parts]
    rows = pd.concat(read).drop_duplicates("id", keep="last")
    here: pd.DataFrame = rows[~rows["gone"].astype(bool)].drop(columns="gone").set_index("id").sort_index()
    return here


def cells(folder: Path, version: int) -> pd.DataFrame:
    path = folder / "provenance" / f"version={version}" / "cells.parquet"
    found: pd.DataFrame = pq.ParquetFile(path).read().to_pandas()
    return found


@given(
    nights=st.lists(
        st.tuples(
            st.dictionaries(st.integers(0, 9), st.tuples(st.integers(0, 99), st.sampled_from([0, 1, UNKNOWN]))),
            st.sets(st.integers(0, 9)),
            st.booleans(),
        ),
        max_size=6,
    )
)
def test_the_latest_row_of_each_id_is_the_tables(
    nights: list[tuple[dict[int, tuple[int, int]], set[int], bool]], tmp_path_factory: object
) -> None:
    folder = tmp_path_factory.mktemp("table")  # type: ignore[attr-defined]
    table, names = VersionedTable(), ["red"]
    for version, (written, dropped, more) in enumerate(nights, 1):
        names += [f"feature {version}"] if more else []
        table.define(TableSchema(version, tuple(Column(name, "", 0) for name in names), ORACLE))
        rows = []
        for number, (content, label) in written.items():
            row = table.put(f"e{number}", digest(content), version)
            table.labels[row] = label
            rows.append(row)
        gone = np.array([name in {f"e{number}" for number in dropped} for name in table.ids], np.bool_)
        names_gone = [(table.ids[row], table.digest(row)) for row in np.flatnonzero(gone).tolist()]
        kept = [row for row in rows if not gone[row]]
        now_at = table.drop(gone)
        write_history(folder, table, NewVersion("run", now_at[kept].tolist(), [], names_gone))
    if not nights:
        return
    now = replayed(folder)
    assert sorted(now.index) == sorted(table.ids)
    for name in table.ids:
        at = table.ids.index(name)
        assert now["digest"][name] == table.digest(at)
        found = [now[column].astype("float").fillna(UNKNOWN)[name] for column in names]
        assert found == table.labels[at].tolist()


def test_a_label_is_reported_with_its_source_and_one_that_is_missing_is_not(tmp_path: Path) -> None:
    table = VersionedTable(TableSchema(2, (Column("red", "", 0), Column("round", "", 0)), ORACLE))
    both = np.array([0, 1])
    for number in range(3):
        table.put(f"e{number}", digest(number), 2)
    table.set_asked(0, both, np.array([1, 0], np.int8))
    table.set_asked(1, both[:1], np.array([0], np.int8))
    table.set_predicted(1, both[1:], np.array([1], np.int8), np.array([0.9]))
    table.correct([CorrectedCell("round", digest(2), 1, "Ann", "now")])
    new = NewVersion("run 7", [0, 1, 2], [table.table()], (), "sentences")
    write_history(tmp_path, table, new)
    found = cells(tmp_path, 2)
    assert found[["id", "feature", "label", "source", "by"]].to_numpy().tolist() == [
        ["e0", "red", True, "asked", "openai:gpt-x"],
        ["e1", "red", False, "asked", "openai:gpt-x"],
        ["e0", "round", False, "asked", "openai:gpt-x"],
        ["e1", "round", True, "predicted", "sentences"],
        ["e2", "round", True, "corrected", "Ann"],
    ]
    assert found["probability"].fillna(-1).tolist() == pytest.approx([-1, -1, -1, 0.9, -1])
    assert set(found["run"]) == {"run 7"}
    schema = pq.ParquetFile(tmp_path / "provenance" / "version=2" / "cells.parquet").schema_arrow
    assert schema.field("feature").type == pa.string()
    rows = pq.ParquetFile(tmp_path / "history" / "version=2" / "rows.parquet").schema_arrow
    assert rows.field("red").type == pa.bool_()
    assert rows.field("red").nullable
