from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twothirds.reports.run.folder import STARTS_A_FORMULA, defuse, defused, restore, restored

texts = st.text() | st.builds(lambda start, rest: start + rest, st.sampled_from(["'", *STARTS_A_FORMULA]), st.text())


@given(texts)
def test_no_cell_begins_like_a_formula(text: str) -> None:
    assert not str(defuse(text)).startswith(STARTS_A_FORMULA)


@given(texts)
def test_a_defused_cell_is_read_back_as_it_was(text: str) -> None:
    assert restore(defuse(text)) == text


@pytest.mark.parametrize("cell", [-3, 0, 1.5, None, True])
def test_numbers_and_empty_cells_stay_as_they_are(cell: object) -> None:
    assert defuse(cell) is cell


def test_names_of_columns_are_defused_too() -> None:
    table = pd.DataFrame({"=SUM(A1)": [-1, 2], "id": ["@a", "b"]})
    written = defused(table)
    assert list(written.columns) == ["'=SUM(A1)", "id"]
    assert written["id"].tolist() == ["'@a", "b"]
    assert written["'=SUM(A1)"].tolist() == [-1, 2]
    pd.testing.assert_frame_equal(restored(written), table)
