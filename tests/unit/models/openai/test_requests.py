"""The requests that are planned for questions: each question once, and what is reserved for it is its share of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from twothirds.discovery import Kind
from twothirds.models.openai.bounds import Bounds
from twothirds.models.openai.config import OpenAIConfig
from twothirds.models.openai.label_groups import rectangles
from twothirds.models.openai.probe import Abilities
from twothirds.models.oracle import Compare, Feature, Label, Question
from twothirds.models.prices import Price, bound
from twothirds.sources.dataset import Example

PICTURES = [Example(f"p{number}", digest=f"p{number}", image=f"{number}.png") for number in range(6)]
TEXTS = [Example(f"t{number}", digest=f"t{number}", text=f"text {number} " * (number + 1)) for number in range(6)]
CONFIG = OpenAIConfig("gpt-4o-mini", None, SecretStr("k"), price=Price(Decimal("0.15"), Decimal("0.60")))

labels = st.builds(
    Label,
    st.builds(Feature, st.sampled_from([f"f{number}" for number in range(9)]), st.just("It has it.")),
    st.sampled_from([*PICTURES, *TEXTS]),
    st.integers(0, 2),
)
comparisons = st.builds(lambda first: Compare(Kind.TWO_OF_THREE, tuple(TEXTS[first : first + 3])), st.integers(0, 3))
asked = st.lists(labels | comparisons, min_size=1, max_size=80, unique=True)
ways = st.fixed_dictionaries(
    {
        "grouping": st.sampled_from(["auto", "example", "feature", "none"]),
        "provider_batch": st.booleans(),
        "labels_per_request": st.sampled_from([None, 1, 4, 50]),
    }
)


def bounds_of(way: dict[str, object], *, decisions: bool = False) -> Bounds:
    return Bounds.of(replace(CONFIG, **way), Abilities(format="json_schema", decisions=decisions))  # type: ignore[arg-type]


@given(asked, ways, st.booleans())
def test_every_question_is_in_one_request_and_reserves_its_share_of_it(
    questions: list[Question], way: dict[str, object], decisions: bool
) -> None:
    bounds = bounds_of(way, decisions=decisions)
    planned = bounds.requests(questions, more=False)
    assert Counter(one for request in planned for one in request.questions) == Counter(questions)
    for request in planned:
        first, most = request.questions[0], bounds.request(request.questions)
        batch = bounds.config.provider_batch and isinstance(first, Label)
        assert sum(request.bounds) == bound(bounds.tariff(first), most, batch=batch)
        for question, share in zip(request.questions, request.bounds, strict=True):
            assert share <= bounds.weight(question) <= bounds.price(question)  # alone it costs no less
        together = [one for one in request.questions if isinstance(one, Label)]
        if together:
            assert len(rectangles(together)) == 1  # one request can carry them


@given(asked, ways)
def test_while_more_are_to_come_none_is_lost_and_some_are_sent(
    questions: list[Question], way: dict[str, object]
) -> None:
    bounds = bounds_of(way)
    sent = [one for request in bounds.requests(questions, more=True) for one in request.questions]
    assert sent
    assert not Counter(sent) - Counter(questions)
    everything = [one for group in bounds._all_groups(questions, width=10) for one in group]
    assert Counter(everything) == Counter(questions)


@pytest.mark.parametrize("features", [20, 60, 96])
def test_labels_of_a_picture_reserve_the_picture_once(features: int) -> None:
    bounds = bounds_of({})
    row = [Label(Feature(f"f{number}", "It has it."), PICTURES[0]) for number in range(features)]
    [request] = bounds.requests(row, more=False)
    assert sum(request.bounds) < 3 * bounds.weight(row[0])
    assert sum(map(bounds.price, row)) > 20 * sum(request.bounds)


def test_a_row_at_the_end_waits_for_the_rest_of_its_labels() -> None:
    """Questions are claimed some at a time: the last example may go on in the next part."""
    row = [Label(Feature(f"f{number}", "It has it."), example) for example in PICTURES[:3] for number in range(30)]
    sent = bounds_of({}).requests(row[:70], more=True)
    assert [len(request.questions) for request in sent] == [30, 30]
