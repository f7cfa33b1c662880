"""The requests that are planned for questions: each question once, and what they cost at most."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from twothirds.discovery import Kind
from twothirds.models.openai.abilities import Abilities
from twothirds.models.openai.config import OpenAIConfig
from twothirds.models.openai.grouping import rectangles
from twothirds.models.openai.pace import Pace
from twothirds.models.openai.tokens import Pricing
from twothirds.models.oracle import Compare, Feature, Label, Question, Request
from twothirds.models.prices import Price, Tokens
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


def requests_of(questions: list[Question], way: dict[str, Any], *, decisions: bool = False) -> list[Request]:
    pricing = Pricing.of(replace(CONFIG, **way), Abilities(format="json_schema", decisions=decisions))
    return list(pricing.requests(questions, Pace(16, is_free=False)))


@given(asked, ways, st.booleans())
def test_every_question_is_in_one_request_that_can_carry_it_and_its_bounds_hold(
    questions: list[Question], way: dict[str, Any], decisions: bool
) -> None:
    requests = requests_of(questions, way, decisions=decisions)
    assert Counter(one for request in requests for one in request.questions) == Counter(questions)
    for request in requests:
        assert 0 < request.usual <= request.bound <= request.limit
        assert request.limit >= CONFIG.asks * request.bound
        together = [one for one in request.questions if isinstance(one, Label)]
        alone = [requests_of([one], way, decisions=decisions)[0] for one in request.questions]
        assert request.bound <= sum(one.bound for one in alone), "together they cost no more"
        if together:
            assert len(rectangles(together)) == 1
            assert len({one.voter for one in together}) == 1


@pytest.mark.parametrize("features", [20, 60, 96])
def test_labels_of_a_picture_reserve_the_picture_once_and_may_cost_it_for_each(features: int) -> None:
    row: list[Question] = [Label(Feature(f"f{number}", "It has it."), PICTURES[0]) for number in range(features)]
    [request], [alone] = requests_of(row, {}), requests_of(row[:1], {})
    assert request.bound < 3 * alone.bound
    assert 0.9 * features * alone.limit < request.limit < 2 * features * alone.limit


def test_a_bound_that_was_exceeded_is_raised_and_stays_a_sum_that_can_be_kept() -> None:
    pricing = Pricing.of(CONFIG, Abilities())
    plain = pricing.most_cost("chat", Tokens(1_000, 10), 1.0)
    assert pricing.most_cost("chat", Tokens(1_000, 10), 2.5) == -(-plain * 5 // 2)
    assert pricing.most_cost("chat", Tokens(1_000, 10), 1e30) < 2**40
