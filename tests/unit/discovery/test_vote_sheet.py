from __future__ import annotations

import numpy as np
import pytest

from tests.support.made import texts
from twothirds.discovery.votes import VoteSheet
from twothirds.models.labelling import Votes
from twothirds.models.oracle import Answer, Feature, Label, Verdict

FEATURES = (Feature("hat"), Feature("scarf"))
EXAMPLES = texts(3)


def written(*votes: tuple[int, int, int, Verdict, str, float | None]) -> VoteSheet:
    """Feature, example, number of the vote, what was said, by whom, and how probable yes is."""
    written = Votes.empty(FEATURES, len(EXAMPLES), 3)
    for feature, row, voter, verdict, by, probability in votes:
        question = Label(FEATURES[feature], EXAMPLES[row], voter)
        written.count(feature, row, Answer(question, verdict, by, probability=probability, cost=5, seconds=0.5))
    return written.sheet


def test_votes_are_told_apart_by_who_gave_them() -> None:
    sheet = written(
        (0, 0, 0, Verdict.YES, "ann", None),
        (0, 0, 1, Verdict.NO, "ben", None),
        (0, 1, 0, Verdict.YES, "ben", None),
        (1, 2, 0, Verdict.NO, "ann", None),
    )
    assert sheet.workers == ("ann", "ben")
    assert sheet.by_worker(0).tolist() == [[1, 0], [-1, 1], [-1, -1]]
    assert sheet.by_worker(1).tolist() == [[-1, -1], [-1, -1], [0, -1]]


def test_votes_under_one_name_are_told_apart_by_their_number() -> None:
    sheet = written((0, 0, 0, Verdict.YES, "model", 0.9), (0, 0, 2, Verdict.NO, "model", 0.3))
    assert sheet.workers == ("vote 1", "vote 2", "vote 3")
    assert sheet.by_worker(0)[0].tolist() == [1, -1, 0]


def test_refusals_and_missing_votes_are_unknown_and_counted_apart() -> None:
    sheet = written((0, 0, 0, Verdict.REFUSED, "ann", None), (0, 0, 1, Verdict.UNREADABLE, "ben", None))
    assert (sheet.labels == -1).all()
    assert sheet.refused.tolist() == [[2, 0, 0], [0, 0, 0]]
    assert sheet.most_votes == 0


def test_chances_are_probabilities_else_shares_of_votes_else_nothing() -> None:
    sheet = written(
        (0, 0, 0, Verdict.YES, "a", 0.9),
        (0, 0, 1, Verdict.YES, "b", 0.7),
        (0, 1, 0, Verdict.YES, "a", None),
        (0, 1, 1, Verdict.NO, "b", None),
        (0, 2, 0, Verdict.NO, "a", None),
    )
    assert sheet.chances[0] == pytest.approx([0.8, 0.5, np.nan], nan_ok=True)
