"""A clock that was a year ahead for a moment, and the clocks of several machines."""

from __future__ import annotations

import asyncio
import time

import pytest
from sqlalchemy import update

from tests.integration.conftest import Clock
from tests.support.filled_stores import SCOPE as KEPT
from tests.support.filled_stores import TRUTH, labels
from tests.support.made import crowd_of
from tests.support.postgres import PostgresServer
from tests.support.store_steps import LEASE, PRICE, SCOPE, begin, claim, keys
from twothirds.models.cached import CachedOracle
from twothirds.models.ledger import RunLedger
from twothirds.models.openai.client import SharedLimit
from twothirds.store import Rate, Store, Wanted
from twothirds.store.rates import LONGEST_PAUSE
from twothirds.store.review import ReviewQuestion
from twothirds.store.review.leases import LONGEST_LEASE, LeaseTerms
from twothirds.store.schema import review_votes

YEAR = 365 * 86_400.0
NAME = "openai:model@host"


def test_a_claim_from_the_future_expires_after_its_lease(store: Store, clock: Clock) -> None:
    begin(store)
    clock.now += YEAR
    assert claim(store, ["a"], owner="elsewhere").granted
    clock.now -= YEAR
    assert claim(store, ["a"], owner="here").held == keys("a")
    clock.now += LEASE - 1
    assert claim(store, ["a"], owner="here").held == keys("a")
    clock.now += 2
    assert claim(store, ["a"], owner="here").granted
    assert store.check.problems() == []


def test_so_does_what_it_reserves_of_the_budget(store: Store, clock: Clock) -> None:
    begin(store)
    clock.now += YEAR
    assert claim(store, ["a"], owner="elsewhere", budget=PRICE).granted
    clock.now -= YEAR
    assert claim(store, ["b"], owner="here", budget=PRICE).refused
    clock.now += LEASE + 1
    assert claim(store, ["b"], owner="here", budget=PRICE).granted
    assert store.runs.spent(SCOPE) == (0, PRICE)


@pytest.mark.parametrize("rate", [Rate(requests=60), Rate(tokens=600), Rate()])
def test_a_rate_from_the_future_is_counted_from_now(store: Store, clock: Clock, rate: Rate) -> None:
    clock.now += YEAR
    store.rates.reserve(NAME, rate, 10)
    store.rates.pause(NAME, 30)
    clock.now -= YEAR
    assert store.rates.paused_for(NAME) == 0
    assert store.rates.reserve(NAME, rate, 10) <= 60
    store.rates.pause(NAME, 20)
    assert store.rates.paused_for(NAME) == pytest.approx(20)
    assert store.rates.reserve(NAME, rate, 10) <= 60


def test_no_pause_is_longer_than_an_hour(store: Store) -> None:
    store.rates.pause(NAME, YEAR)
    assert store.rates.paused_for(NAME) == pytest.approx(LONGEST_PAUSE)


def test_a_page_that_was_lent_in_the_future_is_lent_again(store: Store, clock: Clock) -> None:
    question = {"kind": "label", "feature": ["beard", ""], "example": "d1"}
    shown = {"d1": {"id": "e1", "text": "text"}}
    store.queue.questions.enqueue([ReviewQuestion("beard 1", "main", "label", question, shown, page="beard")])
    ann, ben = (store.queue.people.add(name).id for name in ("ann", "ben"))
    clock.now += YEAR
    assert store.queue.leases.next_page(ann, LeaseTerms())
    clock.now -= YEAR
    assert store.queue.leases.next_page(ben, LeaseTerms())
    with store.engine.execution_options(writes=True).begin() as connection:
        connection.execute(update(review_votes).values(lease_until=clock.now + LONGEST_LEASE))
    assert not store.queue.leases.next_page(ann, LeaseTerms()), "a day is a lease that somebody may have chosen"


def test_what_is_waited_for_is_said_once(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twothirds.models.cached.SILENT_SECONDS", 0.1)
    said: list[str] = []
    with Store.open(store_url, say=said.append) as store:
        store.runs.begin("r", KEPT, name="t", flow="test", dataset="d", oracle="o", settings={})
        oracle = CachedOracle(crowd_of(TRUTH, price=1), RunLedger(store, "r", KEPT))
        asked = labels(3)
        wanted = [Wanted(tuple(map(oracle.keys.of, asked)), 1)]
        store.requests.claim("r", oracle.respondent, wanted, owner="other", lease_seconds=0.6, budget=None)
        assert len(list(oracle.ask(asked))) == 3
        assert said == [
            "another process is asking 3 of the questions: waiting for its answers, "
            "until they come or its claims expire, at most 15 minutes after it died"
        ]
        said.clear()
        limit = SharedLimit(store.rates, NAME, Rate(), store.notice)
        asyncio.run(limit.pause(30))
        asyncio.run(limit.pause(30))
        assert said == [f"{NAME} asked for a pause: waiting 30 s"]


def test_machines_whose_clocks_differ_agree_on_the_time_of_the_server(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres.fresh_schema()
    right = time.time()
    with Store.open(url) as one:
        with monkeypatch.context() as patch:
            patch.setattr("time.time", lambda: right + YEAR)
            with Store.open(url) as other:
                begin(other)
                claim(other, ["a"], owner="ahead", lease=0.5)
        time.sleep(0.6)
        assert claim(one, ["a"], owner="right").granted
        [run] = one.runs.overview()
        assert abs(run["started_at"] - right) < 60
