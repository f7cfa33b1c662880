"""The one table of labels survives Arrow unchanged."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twothirds.discovery import UNKNOWN
from twothirds.reports.label_table import LabelledFeature, LabelTable, Source


def made(names: list[str], examples: int, seed: int) -> LabelTable:
    draw = np.random.default_rng(seed)
    shape = (len(names), examples)
    features = tuple(LabelledFeature(name, f"what {name} is") for name in names)
    return LabelTable(
        ids=tuple(f"ü {row}" for row in range(examples)),
        digests=tuple(f"{row:064x}" for row in range(examples)),
        features=features,
        value=draw.integers(-1, 2, shape).astype(np.int8),
        source=draw.integers(0, 4, shape).astype(np.uint8),
        probability=np.where(draw.random(shape) < 0.5, np.nan, draw.random(shape)).astype(np.float32),
        votes=draw.integers(0, 400, (*shape, 3)).astype(np.uint16),
    )


@given(st.lists(st.text(max_size=12), max_size=4), st.integers(0, 9), st.integers(0, 1000))
def test_arrow_gives_back_what_it_got(names: list[str], examples: int, seed: int) -> None:
    table = made(names, examples, seed)
    back = LabelTable.from_arrow(table.to_arrow())
    assert (back.ids, back.digests, back.features) == (table.ids, table.digests, table.features)
    for name in ("value", "source", "probability", "votes"):
        np.testing.assert_array_equal(getattr(back, name), getattr(table, name))
        assert getattr(back, name).dtype == getattr(table, name).dtype


def test_an_empty_table_knows_nothing() -> None:
    table = LabelTable.empty(["a", "b"], ["x", "y"], [LabelledFeature("blue")])
    assert (table.value == UNKNOWN).all()
    assert (table.source == Source.NONE).all()
    assert np.isnan(table.probability).all()


def test_parts_of_other_sizes_are_refused() -> None:
    table = LabelTable.empty(["a"], ["x"], [LabelledFeature("blue")])
    with pytest.raises(ValueError, match="1 features × 2 examples"):
        LabelTable(
            ids=("a", "b"),
            digests=("x", "y"),
            features=table.features,
            value=table.value,
            source=table.source,
            probability=table.probability,
            votes=table.votes,
        )


def test_a_table_of_something_else_is_refused() -> None:
    table = made(["blue"], 2, 0).to_arrow().replace_schema_metadata({})
    with pytest.raises(ValueError, match="holds no labels"):
        LabelTable.from_arrow(table)
