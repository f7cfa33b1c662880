"""Many people at once: every place is filled exactly, and pages come quickly."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.asking import ask
from tests.support.made import texts
from tests.support.review_crowd import Crowd
from tests.support.review_site import free_port, start_page
from twothirds.flows.reviewing.page import invite
from twothirds.models.oracle import AnswersPending, Feature, Label, Question
from twothirds.models.people.human import HumanOracle
from twothirds.store import Store

VOTES = 3


def enqueue(store: Store, questions: int) -> HumanOracle:
    features = [Feature(f"feature {letter}") for letter in "abcdefghij"]
    examples = texts(questions // len(features))
    wanted: list[Question] = [Label(f, e, voter) for f in features for e in examples for voter in range(VOTES)]
    with pytest.raises(AnswersPending, match=f"^{questions} questions wait for {VOTES} votes each"):
        list(ask(HumanOracle(store.queue), wanted))
    return HumanOracle(store.queue)


def assert_exact(store: Store, crowd: Crowd, questions: int) -> None:
    """Every question has its votes, from different people, and every acknowledged answer is there, word for word."""
    kept = {(row["by"], str(row["id"]), row["answer"]["verdict"]): row for row in store.queue.records.answers()}
    assert set(crowd.acknowledged) <= set(kept)
    votes = Counter(row["item"] for row in kept.values() if row["state"] == "given" and row["purpose"] == "vote")
    assert len(votes) == questions
    assert set(votes.values()) == {VOTES}
    pairs = Counter((row["item"], row["by"]) for row in kept.values() if row["purpose"] == "vote")
    assert set(pairs.values()) == {1}
    assert store.queue.records.waiting() == []


def crowd_of(store: Store, port: int, people: int, think: float) -> Crowd:
    address = f"http://127.0.0.1:{port}"
    links = {f"person {n}": invite(store, f"person {n}", days=1, address=address) for n in range(people)}
    return Crowd(links, think, come_within=think)


def percentile(seconds: list[float], share: float) -> float:
    return sorted(seconds)[int(share * (len(seconds) - 1))]


def many_people_at_once(url: str, people: int, questions: int, think: float) -> float:
    """How long 99 of 100 requests took at most. What they have answered in the end is exact."""
    port = free_port()
    with Store.open(url) as store:
        enqueue(store, questions)
        page = start_page(url, port)
        crowd = crowd_of(store, port, people, think)
        try:
            crowd.wait()
        finally:
            crowd.end()
            page.kill()
            page.communicate()
        assert_exact(store, crowd, questions)
    return percentile(crowd.times.requests, 0.99)


@pytest.mark.slow
@pytest.mark.parametrize(("think", "seconds"), [(3.0, 0.3), (1.0, 0.3), (0.0, 1.0)])
def test_fifty_people_answer_two_thousand_questions_quickly(store_url: str, think: float, seconds: float) -> None:
    """Who never thinks keeps both cores busy, which the crowd shares: how long it takes is how fast they are."""
    assert many_people_at_once(store_url, people=50, questions=2000, think=think) < seconds
