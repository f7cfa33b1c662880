"""The columns of features have one normal form, and no two are the same."""

from __future__ import annotations

import pytest

from twothirds.reports.column_names import column_names


@pytest.mark.parametrize(
    ("name", "definition", "column"),
    [
        ("The Bright Eyes", "eyes that are bright", "bright eye"),
        ("a striped pattern.", "stripes all over", "striped pattern"),
        ("wears glasses", "", "wears glasses"),
        ("Star above the cross", "", "star above cross"),
        ("letter A", "the letter A is shown", "letter a"),
        ("men with  HATS", "", "man with hat"),
        ("leaves", "green leaves", "leaves"),  # the lemma is that of "to leave"
        ("Die roten Streifen", "quer über das Bild", "roten streifen"),
        ("Café", "", "café"),
        ("", "", ""),
    ],
)
def test_a_name_in_its_normal_form(name: str, definition: str, column: str) -> None:
    assert column_names([(name, definition)]) == [column]


def test_names_that_become_the_same_or_are_taken_are_told_apart() -> None:
    features = [("Stripe", ""), ("stripes", ""), ("ID", ""), ("the stripes", "")]
    assert column_names(features, ["id"]) == ["stripe", "stripe (feature)", "id (feature)", "stripe (feature 2)"]


def test_no_feature_takes_the_column_of_what_is_known_beside_another() -> None:
    assert column_names([("red", ""), ("red (source)", "")]) == ["red", "red (source) (feature)"]
