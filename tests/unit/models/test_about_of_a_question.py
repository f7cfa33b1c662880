"""What a person says of the data while a run goes on is shown with the comparisons to come, and priced with them."""

from __future__ import annotations

from dataclasses import replace

from discovery import Kind
from models.oracle import Compare
from models.people.human import _content
from models.prompting import Brief, single_form
from tests.support.made import texts

ASKED = Compare(Kind.TWO_OF_THREE, tuple(texts(3)))
TOLD = replace(ASKED, about="letters of complaint")


def test_it_stands_in_place_of_what_was_said_at_the_start() -> None:
    brief = Brief("letters of all kinds", "names of people")
    before, after = (str(single_form(one, brief).messages) for one in (ASKED, TOLD))
    assert "letters of all kinds" in before
    assert "letters of complaint" in after
    assert "letters of all kinds" not in after
    assert "names of people" in after


def test_people_are_told_too() -> None:
    assert _content(TOLD, Brief("letters of all kinds"))["about"] == "letters of complaint"
    assert _content(ASKED, Brief("letters of all kinds"))["about"] == "letters of all kinds"
