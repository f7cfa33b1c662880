"""What a name may be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.prompting.feature_names import clean, is_negation, name_problem


@pytest.mark.parametrize("name", ["not red", "no hat", "non-smoker", "hat missing", "doesn't smile", "never open"])
def test_negations_are_recognised(name: str) -> None:
    assert is_negation(name)


@pytest.mark.parametrize("name", ["knot", "nose", "notebook", "no parking sign", "snow", "Norwegian flag", "unseen"])
def test_words_that_only_look_like_negations_are_not(name: str) -> None:
    assert not is_negation(name)


@pytest.mark.parametrize(
    "name", ["striped", "red hat", "haar-locken", "黒い帽子", "mentions price", "3 stars", "smiling"]
)
def test_ordinary_names_may_be_used(name: str) -> None:
    assert name_problem(name) == ""


@given(st.text(max_size=80))
def test_cleaning_is_stable_and_leaves_one_line(text: str) -> None:
    once = clean(text)
    assert clean(once) == once
    assert "\n" not in once
