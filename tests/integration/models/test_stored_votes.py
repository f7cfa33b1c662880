"""Votes that are kept are counted all at once: the labels, calls and books are those of asking one by one."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from sqlalchemy import update

from tests.support.asking import Asked
from tests.support.made import crowd_of, random_truth, texts
from twothirds.discovery import Labels
from twothirds.models import (
    CachedOracle,
    Feature,
    Label,
    LabelBatch,
    Question,
    RunLedger,
    Verdict,
    Votes,
    collect_votes,
)
from twothirds.models.people.simulated import SimulatedOracle
from twothirds.sources import Example
from twothirds.store import DamagedStore, Store
from twothirds.store.content import compress
from twothirds.store.schema import requests

TRUTH = random_truth(40, 5)
FEATURES = [Feature(f"feature {c}", "It has it.") for c in "abcde"]
EXAMPLES = texts(40)
SCOPE, PRICE = "the same run", 10
VOTES = 5


@pytest.fixture
def crowd() -> SimulatedOracle:
    return crowd_of(TRUTH, price=PRICE, flip=0.3, refuse=0.1)


def recorded_as(store: Store, crowd: SimulatedOracle, run: str) -> CachedOracle:
    store.runs.begin(run, SCOPE, name=run, flow="test", dataset="d", oracle="o", settings={})
    return CachedOracle(crowd, RunLedger(store, run, SCOPE))


def votes_of(crowd: SimulatedOracle, votes: int) -> tuple[list[Question], list[Labels]]:
    """The questions that are asked where nothing is kept, and the labels that come of it."""
    asked: list[Question] = []
    batch = LabelBatch(EXAMPLES, FEATURES, votes, on_answer=lambda answer: asked.append(answer.question))
    return asked, list(collect_votes(Asked(crowd), batch).labels)


def counted(recorded: CachedOracle, examples: Sequence[Example], features: Sequence[Feature], votes: int = 1) -> Votes:
    """Where the answers themselves are not wanted."""
    return collect_votes(recorded, LabelBatch(examples, features, votes, wanted=False))


@pytest.mark.parametrize(("votes", "share"), [(1, 0.5), (VOTES, 0.0), (VOTES, 0.4), (VOTES, 0.9), (VOTES, 1.0)])
def test_whatever_is_kept_the_labels_are_the_same_and_only_what_is_missing_is_paid(
    store: Store, crowd: SimulatedOracle, votes: int, share: float
) -> None:
    needed, labels = votes_of(crowd, votes)
    every = [Label(feature, one, voter) for one in EXAMPLES for feature in FEATURES for voter in range(votes)]
    draw = random.Random(votes)
    kept = [question for question in every if draw.random() < share]
    list(recorded_as(store, crowd, "run-1").ask(kept))
    resumed = recorded_as(store, crowd, "run-2")
    found = counted(resumed, EXAMPLES, FEATURES, votes)
    assert found.labels.tolist() == [one.tolist() for one in labels]
    known = len(set(needed) & set(kept))
    assert (found.asked, found.stored, found.cost) == (len(needed) - known, known, PRICE * (len(needed) - known))
    assert (resumed.ledger.paid_calls, resumed.ledger.cached_calls) == (len(needed) - known, known)
    totals = store.costs.totals("run-2")
    assert (totals.paid_calls, totals.cached_calls) == (len(needed) - known, known)
    assert totals.paid == PRICE * (len(needed) - known)
    assert store.check.problems() == []


def test_refusals_are_left_to_be_looked_at_one_by_one(store: Store, crowd: SimulatedOracle) -> None:
    needed, _ = votes_of(crowd, 1)
    answers = list(recorded_as(store, crowd, "run-1").ask(needed))
    refused = sum(answer.verdict is Verdict.REFUSED for answer in answers)
    assert refused > 5
    resumed = recorded_as(store, crowd, "run-2")
    seen: list[str] = []
    batch = LabelBatch(EXAMPLES, FEATURES, 1, wanted=False, on_answer=lambda answer: seen.append(answer.verdict.value))
    found = collect_votes(resumed, batch)
    assert seen == ["refused"] * refused
    assert sum(count for (verdict, _), count in found.notes.items() if verdict is Verdict.REFUSED) == refused
    assert (resumed.ledger.paid_calls, resumed.ledger.cached_calls) == (0, len(needed))


def test_one_content_under_two_names_is_looked_up_once_and_counted_twice(store: Store, crowd: SimulatedOracle) -> None:
    list(recorded_as(store, crowd, "run-1").ask([Label(FEATURES[0], EXAMPLES[0])]))
    resumed = recorded_as(store, crowd, "run-2")
    twin = replace(EXAMPLES[0], id="twin")
    assert counted(resumed, [EXAMPLES[0], twin], FEATURES[:1]).cast.tolist() == [[1, 1]]
    assert (resumed.ledger.cached_calls, store.costs.totals("run-2").cached_calls) == (2, 1)


def kept_as(store: Store, crowd: SimulatedOracle, answer: str) -> CachedOracle:
    recorded = recorded_as(store, crowd, "run-1")
    list(recorded.ask([Label(FEATURES[0], EXAMPLES[0])]))
    with store.engine.execution_options(writes=True).begin() as connection:
        content = compress(f'[[{{"kind":"label"}},{answer}]]'.encode())
        connection.execute(update(requests).values(content=content))
    return recorded


def test_a_lone_surrogate_in_a_reply_hides_no_verdict(store: Store, crowd: SimulatedOracle) -> None:
    recorded = kept_as(store, crowd, r'{"raw":"\ud800","verdict":"yes"}')
    assert counted(recorded, EXAMPLES[:1], FEATURES[:1]).yes.tolist() == [[1]]


@pytest.mark.parametrize("damaged", ['{"verdict":"perhaps"}', "[1]", "{}", '{"verdict":null}'])
def test_what_is_no_verdict_counts_for_nothing(store: Store, crowd: SimulatedOracle, damaged: str) -> None:
    recorded = kept_as(store, crowd, damaged)
    assert recorded.stored_votes([recorded.keys.of(Label(FEATURES[0], EXAMPLES[0]))]) == [None]


def test_what_is_no_json_is_said_to_be_damaged(store: Store, crowd: SimulatedOracle) -> None:
    recorded = kept_as(store, crowd, '{"verdict":"ye')
    with pytest.raises(DamagedStore, match="where JSON was written"):
        counted(recorded, EXAMPLES[:1], FEATURES[:1])
