"""The one table of labels survives Arrow unchanged, and reads as a table with a column per feature."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twothirds.discovery import UNKNOWN
from twothirds.reports.label_table import LabelledFeature, LabelTable, Source

MATRICES = ("value", "source", "probability", "votes")


def made(names: list[str], examples: int, seed: int) -> LabelTable:
    draw = np.random.default_rng(seed)
    shape = (len(names), examples)
    return LabelTable(
        ids=[f"ü {row}" for row in range(examples)],
        digests=[f"{row:064x}" for row in range(examples)],
        features=[LabelledFeature(name, f"what {name} is") for name in names],
        value=draw.integers(-1, 2, shape).astype(np.int8),
        source=draw.integers(0, 4, shape).astype(np.uint8),
        probability=np.where(draw.random(shape) < 0.5, np.nan, draw.random(shape)).astype(np.float32),
        who=draw.integers(0, 3, shape).astype(np.uint16),
        votes=draw.integers(0, 400, (*shape, 3)).astype(np.uint16),
        raters=("", "Ann", "Bob"),
    )


def equal(table: LabelTable, other: LabelTable) -> None:
    assert (list(table.ids), list(table.digests)) == (list(other.ids), list(other.digests))
    assert list(table.features) == list(other.features)
    assert [table.by(place) for place in range(len(table.features))] == [
        other.by(place) for place in range(len(other.features))
    ]
    for name in MATRICES:
        np.testing.assert_array_equal(getattr(table, name), getattr(other, name))
        assert getattr(table, name).dtype == getattr(other, name).dtype


@given(st.lists(st.text(max_size=12), max_size=4), st.integers(0, 9), st.integers(0, 1000))
def test_arrow_gives_back_what_it_got(names: list[str], examples: int, seed: int) -> None:
    table = made(names, examples, seed)
    equal(LabelTable.from_arrow(table.to_arrow()), table)


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 1000))
def test_parts_of_a_table_make_it_again(cut: int, more: int, seed: int) -> None:
    table = made(["red", "id"], cut + more, seed)
    parts = [table.take(range(cut)), table.take(range(cut, cut + more))]
    equal(LabelTable.concat([parts[0], replace(parts[1], raters=["", "Ann", "Bob"])]), table)


def test_plain_labels_need_a_column_per_feature_and_nothing_else() -> None:
    value = np.array([[1, 0, UNKNOWN]], np.int8)
    table = LabelTable.of(["a", "b", "c"], ["", "", ""], [LabelledFeature("The Stripes")], value)
    assert table.to_arrow().to_pydict() == {"id": ["a", "b", "c"], "digest": [""] * 3, "stripe": [1, 0, None]}


def test_what_else_is_known_of_labels_stands_beside_them() -> None:
    table = LabelTable.empty(["a", "b"], ["", ""], [LabelledFeature("red")])
    table.value[0] = [1, 0]
    table.source[0] = [Source.CORRECTED, Source.PREDICTED]
    table.who[0, 0] = 1
    table.probability[0, 1] = 0.25
    read = replace(table, raters=["", "Ann"]).to_arrow().to_pydict()
    assert read["red (source)"] == ["corrected", "predicted"]
    assert read["red (by)"] == ["Ann", None]
    assert read["red (probability)"] == [None, 0.25]
    assert "red (yes)" not in read


def test_parts_of_other_sizes_are_refused() -> None:
    table = LabelTable.empty(["a"], ["x"], [LabelledFeature("blue")])
    with pytest.raises(ValueError, match="1 features × 2 examples"):
        replace(table, ids=["a", "b"], digests=["x", "y"])


def test_a_table_of_something_else_is_refused() -> None:
    table = made(["blue"], 2, 0).to_arrow().replace_schema_metadata({})
    with pytest.raises(ValueError, match="holds no labels"):
        LabelTable.from_arrow(table)
