"""The table that grows, how features drift, and where features come from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from twothirds.discovery.questions import UNKNOWN
from twothirds.flows.discover.known import read_features
from twothirds.flows.errors import UsageError
from twothirds.models.oracle import Feature
from twothirds.reports.analysis.groups import Share, drift_of, fisher, newcombe
from twothirds.reports.label_table import SOURCES
from twothirds.reports.versions.table import Column, TableSchema, VersionedTable
from twothirds.reports.versions.table_file import read_file, read_table, write_file, write_table

MEANING = TableSchema(3, (Column("red", "It is red.", 0), Column("id", "", 2)), {"kind": "simulated"}, 5)


def digest(number: int) -> str:
    return f"{number:064x}"


def test_a_table_is_read_back_as_it_was(tmp_path: Path) -> None:
    table = VersionedTable(MEANING)
    for number in range(3000):
        row = table.put(f"example {number}", digest(number), 3)
        table.labels[row] = [number % 2, UNKNOWN if number % 3 else 1]
    with (tmp_path / "labels.parquet").open("wb") as file:
        write_file(file, table)
    read = read_file(tmp_path / "labels.parquet")
    assert read.table_schema == MEANING
    assert read.ids == table.ids
    assert (read.labels == table.labels[: len(table)]).all()
    assert [read.digest(row) for row in (0, 7, 2999)] == [digest(0), digest(7), digest(2999)]
    assert read.row("example 7") == 7


def test_a_row_is_found_by_its_content() -> None:
    table = VersionedTable(MEANING, ["a", "b", "c"])
    for row, number in enumerate((5, 2**255, 9)):
        table.digests[row] = np.frombuffer(bytes.fromhex(digest(number)), np.uint8)
    assert [table.row_with(digest(number)) for number in (9, 2**255, 5, 6)] == [2, 1, 0, None]


def test_another_content_forgets_the_labels_and_the_same_keeps_them() -> None:
    table = VersionedTable(MEANING)
    row = table.put("a", digest(1), 1)
    table.labels[row] = [1, 0]
    assert table.put("a", digest(1), 2) == row
    assert table.labels[row].tolist() == [1, 0]
    table.put("a", digest(2), 3)
    assert table.labels[row].tolist() == [UNKNOWN, UNKNOWN]


NEXT = TableSchema(4, (Column("new", "", 4), Column("red", "It is red.", 0)), MEANING.oracle, MEANING.votes)


@pytest.mark.parametrize(
    ("table_schema", "kept"),
    [
        (NEXT, 1),
        (replace(NEXT, votes=3), UNKNOWN),
        (replace(NEXT, oracle={"kind": "human"}), UNKNOWN),
        (replace(NEXT, columns=(Column("new", "", 4), Column("red", "It is reddish.", 0))), UNKNOWN),
    ],
)
def test_a_column_that_means_the_same_keeps_its_labels_and_no_other_does(table_schema: TableSchema, kept: int) -> None:
    table = VersionedTable(MEANING)
    row = table.put("a", digest(1), 1)
    table.labels[row] = [1, 0]
    table.define(table_schema)
    assert table.labels[0].tolist() == [UNKNOWN, kept]


def test_contents_that_have_swapped_their_names_are_both_known() -> None:
    table = VersionedTable(MEANING, ["a", "b"])
    for row, number in enumerate((1, 2)):
        table.digests[row] = np.frombuffer(bytes.fromhex(digest(number)), np.uint8)
        table.labels[row], table.versions[row] = [row, row], number
    for name, number in (("a", 2), ("b", 1)):
        known = table.known_content(digest(number))
        assert known is not None
        assert (known.labels.tolist(), known.version) == ([number - 1] * 2, number)
        table.restore(table.put(name, digest(number), known.version), known)
    assert table.known_content(digest(3)) is None


def test_predicted_labels_are_marked_written_read_and_replaced_by_the_oracles_only(tmp_path: Path) -> None:
    table, both = VersionedTable(MEANING), np.array([0, 1])
    for number in (1, 2):
        row = table.put(f"e{number}", digest(number), 3)
        table.set_asked(row, both[:1], np.array([1], np.int8))
    table.set_predicted(0, both[1:], np.array([0], np.int8), np.array([0.25]))
    with pytest.raises(ValueError, match="must not replace the oracle's"):
        table.set_predicted(0, both, np.array([0, 0], np.int8), np.array([0.1, 0.1]))
    write_table(tmp_path, table)
    kept = read_table(tmp_path)
    assert [kept.is_predicted(row).tolist() for row in (0, 1)] == [[False, True], [False, False]]
    assert kept.predicted_count == 1
    marked = kept.table()
    assert (SOURCES[int(marked.source[1, 0])], float(marked.probability[1, 0])) == ("predicted", 0.25)
    renamed = kept.known_content(digest(1))
    assert renamed is not None
    kept.restore(kept.put("other name", digest(1), 4), renamed)
    assert kept.is_predicted(2).tolist() == [False, True]
    kept.set_asked(0, both, np.array([1, UNKNOWN], np.int8))  # refused: the predicted label stays
    assert (kept.labels[0].tolist(), kept.is_predicted(0).tolist()) == ([1, 0], [False, True])
    kept.set_asked(0, both, np.array([1, 1], np.int8))
    assert (kept.labels[0].tolist(), kept.predicted_count) == ([1, 1], 1)
    kept.put("e1", digest(9), 5)
    kept.put("other name", digest(8), 5)
    assert kept.predicted_count == 0


def test_drift_is_newcombe_fisher_and_holm() -> None:
    labels = np.array([1] * 25 + [0] * 15 + [-1] * 5, np.int8)
    before, now, steady = Share(10, 100), Share.of(labels[:20]) + Share.of(labels[20:]), Share(50, 100)
    moved, same, unknown = drift_of(["a", "b", "c"], [before, steady, Share(0, 0)], [now, Share(20, 40), now])
    assert (moved.low, moved.high) == newcombe(25, 40, 10, 100)
    assert moved.p == pytest.approx(fisher(25, 40, 10, 100))
    assert moved.corrected == pytest.approx(3 * moved.p)
    assert (moved.moved, same.moved, unknown.moved) == (True, False, False)
    assert (unknown.before, unknown.low) == (None, None)


def test_of_very_many_examples_the_test_still_answers_at_once() -> None:
    (drift,) = drift_of(["a"], [Share(10_000, 1_000_000)], [Share(20_000, 500_000)])
    assert drift.moved


def test_features_are_written_by_hand_or_in_a_table(tmp_path: Path) -> None:
    assert read_features("glasses: The person wears glasses.; smile") == [
        Feature("glasses", "The person wears glasses."),
        Feature("smile"),
    ]
    table = tmp_path / "features.csv"
    table.write_text('\ufeffname,definition,share\nglasses,"They, too, count.",3\n\'=cmd,x,\n,,\n', encoding="utf-8")
    assert read_features(str(table)) == [Feature("glasses", "They, too, count."), Feature("=cmd", "x")]


@pytest.mark.parametrize("text", ["nowhere/features.csv", "missing.csv", " ; ", "a; a: twice"])
def test_features_that_cannot_be_had_are_reported_in_one_line(text: str) -> None:
    with pytest.raises(UsageError, match="--features") as caught:
        read_features(text)
    assert "\n" not in str(caught.value)
