"""What each change keeps, asks and takes away."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twothirds.reports.curation.changes import Change, plan
from twothirds.reports.run.answers import VoteCounts
from twothirds.reports.run.files import RunError
from twothirds.reports.run.findings import Findings, FoundFeature

N = 8
nan = float("nan")


def found(name: str, labels: list[int], votes: int = 3) -> FoundFeature:
    row = np.array(labels, np.int8)
    cast = np.stack([np.where(row == 1, votes, 0), np.where(row == 0, votes, 0), np.where(row < 0, votes, 0), row * 0])
    vote_counts = VoteCounts(cast.astype(np.int32), np.full(len(row), np.nan), cost=100)
    return FoundFeature(name, f"About {name}.", row, vote_counts, None, True, "two-of-three", "")


def findings() -> Findings:
    return Findings(
        [f"e{row}" for row in range(N)],
        [
            found("beard", [1, 1, 1, 0, 0, 0, 0, -1]),
            found("facial hair", [1, 1, 0, 0, 0, 0, 1, 1]),
            found("hat", [0, 0, 0, 0, 1, 1, 1, 0]),
        ],
        [],
        {},
        np.ones(N, np.bool_),
    )


def predicted(one: FoundFeature, chances: list[float]) -> FoundFeature:
    """With the labels predicted where a chance is a number: nobody has voted there."""
    here = ~np.isnan(np.array(chances))
    vote_counts = replace(one.vote_counts, cast=np.where(here, 0, one.vote_counts.cast).astype(np.int32))
    return replace(one, vote_counts=vote_counts, chances=np.array(chances), certificate={"agree": 0.95})


def partly_predicted() -> Findings:
    """Of "beard" the labels of e1 to e4 are predicted, of "facial hair" those of e2, e4 and e5."""
    whole = findings()
    beard = predicted(whole.found[0], [nan, 0.9, 0.8, 0.2, 0.1, nan, nan, nan])
    hair = predicted(whole.found[1], [nan, nan, 0.3, nan, 0.3, 0.1, nan, nan])
    return replace(whole, found=[beard, hair, whole.found[2]])


def marked(one: FoundFeature) -> list[int]:
    return np.flatnonzero(one.predicted).tolist()


def names(change: Change) -> list[str]:
    return [feature.name for feature in change.after.found]


def test_renaming_keeps_every_label_and_asks_nothing() -> None:
    change = plan(findings(), "rename", {"name": "hat", "to": "headwear"})
    assert names(change) == ["beard", "facial hair", "headwear"]
    assert change.kept == {"headwear": N}
    assert not change.asks
    np.testing.assert_array_equal(change.after.matrix, findings().matrix)


def test_dropping_takes_a_feature_away_and_asks_nothing() -> None:
    change = plan(findings(), "drop", {"names": ["hat", "beard"]})
    assert names(change) == ["facial hair"]
    assert change.gone == ["hat", "beard"]
    assert not change.asks


def test_merging_asks_only_where_the_two_disagree() -> None:
    change = plan(findings(), "merge", {"names": ["facial hair", "beard"], "into": "beard"})
    assert names(change) == ["beard", "hat"]
    merged = change.after.found[0]
    assert merged.labels.tolist() == [1, 1, -1, 0, 0, 0, -1, 1]
    assert change.kept == {"beard": 6}
    assert [(ask.feature, ask.ids) for ask in change.asks] == [("beard", ["e2", "e6"])]
    assert change.gone == ["facial hair"]
    assert merged.definition == "About beard. Also called facial hair."
    assert merged.vote_counts.yes[0] == 6
    assert merged.vote_counts.votes[2] == 0


def test_splitting_keeps_what_lacked_it_and_asks_the_rest_of_each_part() -> None:
    change = plan(
        findings(), "split", {"name": "beard", "into": ["full beard", "goatee"], "definitions": ["all round"]}
    )
    assert names(change) == ["full beard", "goatee", "facial hair", "hat"]
    assert [ask.ids for ask in change.asks] == [["e0", "e1", "e2", "e7"]] * 2
    assert [ask.definition for ask in change.asks] == ["all round", ""]
    assert change.after.found[0].labels.tolist() == [-1, -1, -1, 0, 0, 0, 0, -1]
    assert change.kept == {"full beard": 4, "goatee": 4}
    assert change.gone == ["beard"]


def test_a_new_definition_asks_everything_again_unless_only_the_words_change() -> None:
    arguments = {"name": "hat", "definition": "covers the top of the head"}
    change = plan(findings(), "define", arguments)
    assert change.kept == {"hat": 0}
    assert len(change.asks[0].ids) == N
    kept = plan(findings(), "define", arguments | {"keep": True})
    assert not kept.asks
    assert kept.kept == {"hat": N}
    assert kept.after.found[2].definition == "covers the top of the head"


@pytest.mark.parametrize(
    ("action", "arguments", "said"),
    [
        ("rename", {"name": "hatt", "to": "x"}, "did you mean 'hat'"),
        ("rename", {"name": "hat", "to": "beard"}, "already has a feature 'beard'"),
        ("rename", {"name": "hat", "to": "  "}, "needs a name"),
        ("merge", {"names": ["hat", "hat"]}, "two or more"),
        ("merge", {"names": ["beard", "facial hair"], "into": "hat"}, "already has a feature 'hat'"),
        ("split", {"name": "hat", "into": ["cap", "cap"]}, "two or more"),
        ("split", {"name": "hat", "into": ["cap", "beard"]}, "already has a feature 'beard'"),
        ("drop", {"names": ["zebra"]}, "no feature 'zebra'"),
        ("paint", {}, "unknown action 'paint'"),
    ],
)
def test_an_impossible_change_says_why(action: str, arguments: dict[str, object], said: str) -> None:
    with pytest.raises(RunError, match=said):
        plan(findings(), action, arguments)


@given(
    st.lists(st.sampled_from([-1, 0, 1]), min_size=N, max_size=N),
    st.lists(st.sampled_from([-1, 0, 1]), min_size=N, max_size=N),
)
def test_merging_never_makes_a_label_up(a: list[int], b: list[int]) -> None:
    both = Findings([f"e{row}" for row in range(N)], [found("a", a), found("b", b)], [], {}, np.ones(N, np.bool_))
    change = plan(both, "merge", {"names": ["a", "b"]})
    asked = set(change.asks[0].ids)
    for row, (one, other, label) in enumerate(zip(a, b, change.after.found[0].labels.tolist(), strict=True)):
        if label >= 0:
            assert label in (one, other)
            assert {one, other} <= {label, -1}
        assert (f"e{row}" in asked) == ({one, other} == {0, 1})


def test_renamed_and_kept_labels_stay_predicted_with_their_certificate() -> None:
    changes: list[tuple[str, dict[str, Any]]] = [
        ("rename", {"name": "beard", "to": "whiskers"}),
        ("define", {"name": "beard", "definition": "Hair on the chin.", "keep": True}),
    ]
    for action, arguments in changes:
        change = plan(partly_predicted(), action, arguments)
        assert marked(change.after.found[0]) == [1, 2, 3, 4]
        assert change.after.found[0].certificate == {"agree": 0.95}
        assert "4 of them predicted" in change.explained()[0]


def test_a_new_definition_leaves_no_prediction_and_no_certificate() -> None:
    change = plan(partly_predicted(), "define", {"name": "beard", "definition": "Hair on the chin."})
    assert marked(change.after.found[0]) == []
    assert change.after.found[0].certificate is None
    assert set(change.asks[0].ids) == {f"e{row}" for row in range(N)}


def test_a_merged_label_is_predicted_only_where_neither_was_asked() -> None:
    change = plan(partly_predicted(), "merge", {"names": ["beard", "facial hair"]})
    merged = change.after.found[0]
    assert change.asks[0].ids == ["e2", "e6"]  # predicted so here and otherwise there; asked both ways
    assert marked(merged) == [4]
    assert merged.probability[4] == pytest.approx(0.2)
    assert merged.certificate is None


def test_what_a_split_does_not_ask_stays_predicted_without_a_certificate() -> None:
    change = plan(partly_predicted(), "split", {"name": "beard", "into": ["full beard", "goatee"]})
    for part in change.after.found[:2]:
        assert marked(part) == [3, 4]
        assert part.certificate is None


@given(st.lists(st.sampled_from([nan, 0.1, 0.4, 0.6, 0.9]), min_size=2 * N, max_size=2 * N), st.integers(0, 3))
def test_no_change_turns_a_predicted_label_into_an_asked_one(chances: list[float], number: int) -> None:
    whole = findings()
    rows = np.array(chances).reshape(2, N)
    found = [
        predicted(replace(one, labels=np.where(np.isnan(row), one.labels, row >= 0.5).astype(np.int8)), row.tolist())
        for one, row in zip(whole.found, rows, strict=False)
    ]
    changes: list[tuple[str, dict[str, Any]]] = [
        ("rename", {"name": "beard", "to": "whiskers"}),
        ("define", {"name": "beard", "definition": "Hair."}),
        ("merge", {"names": ["beard", "facial hair"]}),
        ("split", {"name": "beard", "into": ["full beard", "goatee"]}),
    ]
    action, arguments = changes[number]
    after = plan(replace(whole, found=[*found, whole.found[2]]), action, arguments).after
    for one in after.found:
        assert (one.predicted <= (one.labels != -1)).all()
        assert ((one.labels != -1) <= (one.predicted | (one.vote_counts.votes > 0))).all()
