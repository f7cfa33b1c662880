"""Which labels travel together."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twothirds.models.openai.grouping import Grouping, Groups, rectangles
from twothirds.models.oracle import Feature, Label
from twothirds.models.prompting.labels import arranged, label_form
from twothirds.sources.dataset import Example

PICTURES = [Example(f"p{number}", digest=f"p{number}", image=f"{number}.png") for number in range(50)]
EXAMPLES = [Example(str(number), digest=str(number), text=str(number)) for number in range(50)]


def label(feature: int, example: int, voter: int = 0) -> Label:
    return Label(Feature(f"f{feature}"), EXAMPLES[example], voter)


def rows(features: int, examples: Iterable[Example], voters: int = 1) -> list[Label]:
    """Example by example, as a panel asks."""
    return [
        Label(Feature(f"f{feature}"), example, voter)
        for example in examples
        for feature in range(features)
        for voter in range(voters)
    ]


def grouped(groups: Groups, labels: Iterable[Label]) -> list[list[Label]]:
    return list(groups.of(labels))


def shapes(groups: Iterable[list[Label]]) -> list[tuple[int, int]]:
    return [(len({one.example.id for one in group}), len({one.feature for one in group})) for group in groups]


@pytest.mark.parametrize(("grouping", "sizes"), [("none", [1] * 6), ("example", [2, 2, 2]), ("feature", [3, 3])])
def test_the_form_can_be_chosen(grouping: Grouping, sizes: list[int]) -> None:
    labels = [label(feature, example) for feature in range(2) for example in range(3)]
    assert [len(group) for group in grouped(Groups(grouping, 20), labels)] == sizes


LABELS = st.builds(label, st.integers(0, 4), st.integers(0, 8), st.integers(0, 1))


@given(st.lists(LABELS, max_size=60), st.sampled_from(["auto", "example", "feature", "none"]), st.integers(1, 6))
def test_every_label_leaves_once_in_a_group_that_one_request_can_carry(
    labels: list[Label], grouping: Grouping, size: int
) -> None:
    groups = grouped(Groups(grouping, size, row=size), labels)
    left = [one for group in groups for one in group]
    assert sorted(map(repr, left)) == sorted(map(repr, labels))
    for group in groups:
        assert len(group) <= size
        assert len({one.voter for one in group}) == 1
        label_form(arranged(group))


def test_the_features_of_a_picture_travel_in_one_request_and_pictures_one_by_one() -> None:
    assert shapes(grouped(Groups("auto", 250), rows(33, PICTURES[:3]))) == [(1, 33)] * 3


def test_a_row_that_does_not_fit_one_request_is_split_evenly() -> None:
    for examples in (EXAMPLES[:1], PICTURES[:1]):
        assert shapes(grouped(Groups("auto", 250), rows(96, examples))) == [(1, 96)]
        assert shapes(grouped(Groups("auto", 250), rows(97, examples))) == [(1, 48), (1, 49)]
    assert shapes(grouped(Groups("auto", 20, row=20), rows(33, PICTURES[:2]))) == [(1, 16), (1, 17)] * 2


def test_several_short_texts_share_a_request_and_long_ones_do_not() -> None:
    assert shapes(grouped(Groups("auto", 250), rows(10, EXAMPLES))) == [(25, 10)] * 2
    assert shapes(grouped(Groups("auto", 250), rows(33, EXAMPLES[:16]))) == [(7, 33), (7, 33), (2, 33)]
    long = [Example(str(number), digest=str(number), text="word " * 800) for number in range(3)]
    assert shapes(grouped(Groups("auto", 250), rows(33, long))) == [(1, 33)] * 3


def test_a_new_feature_travels_with_twenty_pictures() -> None:
    assert shapes(grouped(Groups("auto", 250), rows(1, PICTURES))) == [(20, 1), (20, 1), (10, 1)]
    assert shapes(grouped(Groups("auto", 250), rows(3, PICTURES[:12]))) == [(6, 3)] * 2


def test_every_voter_has_other_neighbours_in_as_many_requests() -> None:
    texts = [Example(str(number), digest=str(number), text=str(number)) for number in range(100)]
    of_voter: list[dict[str, set[str]]] = [{}, {}, {}]
    groups = grouped(Groups("auto", 250), rows(10, texts, voters=3))
    for group in groups:
        together = {one.example.id for one in group}
        of_voter[group[0].voter] |= dict.fromkeys(together, together)
    assert shapes(groups) == [(25, 10)] * 12
    for pair in itertools.combinations(of_voter, 2):
        shared = [len(pair[0][example.id] & pair[1][example.id]) - 1 for example in texts]
        assert max(shared) <= 15
        assert sum(shared) / len(shared) == pytest.approx(24 * 24 / 99, abs=1)


def test_an_endpoint_without_matrices_gets_one_example_or_one_feature() -> None:
    assert shapes(grouped(Groups("auto", 250, row=400, matrix=False), rows(70, EXAMPLES[:2]))) == [(1, 70)] * 2
    assert shapes(grouped(Groups("auto", 250, row=400, matrix=False), rows(1, EXAMPLES[:7]))) == [(7, 1)]


def test_groups_are_as_large_as_the_server_is_fast_when_they_are_wanted() -> None:
    now: list[int | None] = [4]
    groups = Groups("auto", 250, now=lambda: now[-1]).of(rows(6, EXAMPLES))
    assert shapes([next(groups), next(groups)]) == [(1, 3), (1, 3)]
    now.append(60)
    assert shapes([next(groups)]) == [(10, 6)]
    now.append(None)
    assert shapes(groups) == [(25, 6), (14, 6)]


def test_rows_that_lack_some_labels_travel_by_themselves() -> None:
    labels = [one for one in rows(4, EXAMPLES[:4]) if (one.feature.name, one.example.id) != ("f2", "1")]
    assert sorted(shapes(grouped(Groups("auto", 250), labels))) == [(1, 3), (3, 4)]


@given(st.lists(LABELS, max_size=40, unique=True))
def test_whatever_is_left_to_ask_falls_into_parts_that_one_request_can_carry(labels: list[Label]) -> None:
    ordered = arranged(asked) if (asked := [one for one in labels if not one.voter]) else []
    parts = rectangles(ordered)
    assert sorted(place for part in parts for place in part) == list(range(len(ordered)))
    for part in parts:
        label_form([ordered[place] for place in part])
