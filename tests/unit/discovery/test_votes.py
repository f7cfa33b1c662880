"""A majority that stops when decided is the majority of all the planned votes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twothirds.discovery.questions import UNKNOWN
from twothirds.discovery.votes import decided, majority, majority_labels, votes_to_ask

Votes = list[bool | None]
ballots: st.SearchStrategy[Votes] = st.lists(st.sampled_from([True, False, None]), min_size=1, max_size=11)


def full_majority(votes: Votes) -> int:
    lead = votes.count(True) - votes.count(False)
    return UNKNOWN if lead == 0 else int(lead > 0)


def counts(votes: Votes, planned: int) -> tuple[int, int, int, int]:
    return votes.count(True), votes.count(False), votes.count(None), planned


@given(ballots)
def test_a_majority_that_stops_when_decided_equals_the_full_one(votes: Votes) -> None:
    cast: Votes = []
    while more := int(votes_to_ask(*counts(cast, len(votes)))):
        cast += votes[len(cast) : len(cast) + more]
    assert majority(cast, len(votes)) == full_majority(votes)


@given(ballots)
def test_no_label_is_given_while_the_votes_to_come_could_change_it(votes: Votes) -> None:
    planned = len(votes)
    for cast in (votes[:i] for i in range(planned + 1)):
        rest = planned - len(cast)
        outcomes = {full_majority(cast + [vote] * rest) for vote in (True, False, None)}
        verdict = majority(cast, planned)
        assert (verdict is None) == (len(outcomes) > 1)
        assert verdict is None or outcomes == {verdict}


@given(ballots)
def test_as_many_votes_are_asked_for_as_could_decide_and_no_more(votes: Votes) -> None:
    planned = len(votes)
    for cast in (votes[:i] for i in range(planned + 1)):
        more = int(votes_to_ask(*counts(cast, planned)))
        fewest = next(
            k
            for k in range(planned - len(cast) + 1)
            if any(majority(cast + [vote] * k, planned) is not None for vote in (True, False, None))
        )
        assert more == fewest


def test_many_labels_are_counted_at_once() -> None:
    yes, no, abstained = np.array([3, 2, 0, 2, 0]), np.array([0, 1, 0, 2, 0]), np.array([0, 0, 5, 1, 0])
    assert decided(yes, no, abstained, 5).tolist() == [True, False, True, True, False]
    assert votes_to_ask(yes, no, abstained, 5).tolist() == [0, 1, 0, 0, 3]
    labels = majority_labels(yes, no)
    assert labels.dtype == np.int8
    assert labels.tolist() == [1, 1, UNKNOWN, UNKNOWN, UNKNOWN]


def test_a_single_planned_vote_decides() -> None:
    assert int(votes_to_ask(0, 0, 0, 1)) == 1
    assert [majority([vote], 1) for vote in (True, False, None)] == [1, 0, UNKNOWN]


def test_more_votes_than_planned_are_refused() -> None:
    with pytest.raises(ValueError, match="more votes were cast than the 3 planned"):
        decided(2, 2, 0, 3)
