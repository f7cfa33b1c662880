"""Whom to ask is said only where people have a price and can be wrong."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.made_votes import annotated, made_truth
from twothirds.discovery import UNKNOWN
from twothirds.discovery.votes import VoteSheet
from twothirds.reports.compare.advice import Advice, advice
from twothirds.reports.compare.study import Rater, Study, reference_of

EXAMPLES = 60


def rater(name: str, people: bool, votes: np.ndarray, usd: float) -> Rater:
    workers = votes.shape[1]
    who = np.broadcast_to(np.arange(workers, dtype=np.int32), votes.shape)
    chances = np.full(votes.shape, np.nan, np.float32)
    names = tuple("abcde")[:workers]
    sheet = VoteSheet(votes[None], who[None], chances[None], names, np.zeros((1, EXAMPLES), np.int64))
    return Rater(name, people, {}, sheet, votes.size, votes.size, usd, usd, 0.0)


def advised(usd_of_people: float, truth_known: bool = True, people_vote: bool = True) -> Advice:
    rng = np.random.default_rng(4)
    truth = made_truth(rng, EXAMPLES)
    votes = annotated(rng, truth, [(0.9, 0.9)] * 3)
    people = rater("people", True, votes if people_vote else np.full_like(votes, UNKNOWN), usd_of_people)
    model = rater("model", False, annotated(rng, truth, [(0.8, 0.8)]), 0.001)
    study = Study(
        dataset="made",
        digest="",
        total=EXAMPLES,
        ids=tuple(map(str, range(EXAMPLES))),
        features=(("it", ""),),
        origin="made",
        raters=(people, model),
        truth=truth[None] if truth_known else None,
        annotators="crowd",
        accuracy=0.7,
        seed=1,
        draws=100,
    )
    return advice(study, reference_of(study), model, people)


def test_people_with_a_price_and_a_known_truth_are_weighed_against_the_model() -> None:
    found = advised(5.0)
    assert not found.reason
    assert found.best is not None


def test_where_a_budget_left_nothing_for_people_that_is_the_reason_and_not_their_price() -> None:
    assert advised(0.0, people_vote=False).reason == "people gave no vote"


@pytest.mark.parametrize(
    ("usd", "truth_known", "reason"),
    [(0.0, True, "have no price here"), (5.0, False, "right by definition"), (0.0, False, "right by definition")],
)
def test_no_advice_where_people_have_no_price_or_are_right_by_definition(
    usd: float, truth_known: bool, reason: str
) -> None:
    found = advised(usd, truth_known)
    assert reason in found.reason
    assert (found.settings, found.best) == ([], None)
