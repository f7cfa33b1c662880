"""Which labels travel together."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.openai.label_groups import Grouping, LabelGroups
from models.oracle import Feature, Label
from models.prompting.prompts import label_messages
from sources.dataset import Example

EXAMPLES = [Example(str(number), digest=str(number), text=str(number)) for number in range(50)]


def label(feature: int, example: int, voter: int = 0) -> Label:
    return Label(Feature(f"f{feature}"), EXAMPLES[example], voter)


def gathered(labels: Iterable[Label], grouping: Grouping = "auto", size: int = 5) -> list[list[Label]]:
    waiting = LabelGroups(grouping, size)
    for one in labels:
        waiting.add(one)
    groups = waiting.release(partial=True)
    assert len(waiting) == 0
    return groups


def test_one_feature_with_many_examples_goes_in_full_groups() -> None:
    groups = gathered(label(0, example) for example in range(12))
    assert [len(group) for group in groups] == [5, 5, 2]


def test_one_example_with_many_features_goes_together() -> None:
    groups = gathered(label(feature, 7) for feature in range(5))
    assert [len(group) for group in groups] == [5]


def test_the_larger_company_wins() -> None:
    labels = [label(feature, 0) for feature in range(5)] + [label(0, example) for example in range(1, 3)]
    assert [len(group) for group in gathered(labels)] == [5, 2]


def test_groups_that_are_not_full_wait() -> None:
    waiting = LabelGroups("auto", 5)
    for example in range(7):
        waiting.add(label(0, example))
    assert [len(group) for group in waiting.release(partial=False)] == [5]
    assert len(waiting) == 2
    assert waiting.release(partial=False) == []


def test_nothing_travels_together_where_that_is_not_wanted() -> None:
    groups = gathered((label(0, example) for example in range(4)), "none", size=20)
    assert [len(group) for group in groups] == [1, 1, 1, 1]


@pytest.mark.parametrize(("grouping", "sizes"), [("example", [2, 2, 2]), ("feature", [3, 3])])
def test_the_form_can_be_chosen(grouping: Grouping, sizes: list[int]) -> None:
    labels = [label(feature, example) for feature in range(2) for example in range(3)]
    assert [len(group) for group in gathered(labels, grouping, size=20)] == sizes


def test_one_example_may_take_more_features_than_a_feature_takes_examples() -> None:
    waiting = LabelGroups("auto", 5, most_per_example=400)
    for feature in range(30):
        waiting.add(label(feature, 0))
    assert [len(group) for group in waiting.release(partial=True)] == [30]


LABELS = st.builds(label, st.integers(0, 4), st.integers(0, 8), st.integers(0, 1))


@given(st.lists(LABELS, max_size=60), st.sampled_from(["auto", "example", "feature", "none"]), st.integers(1, 6))
def test_every_label_leaves_once_in_a_group_that_one_request_can_carry(
    labels: list[Label], grouping: Grouping, size: int
) -> None:
    groups = gathered(labels, grouping, size)
    left = [one for group in groups for one in group]
    assert sorted(map(repr, left)) == sorted(map(repr, labels))
    for group in groups:
        assert len(group) <= size
        assert len({one.voter for one in group}) == 1
        label_messages(group)
