"""A run that stands still says every minute what it waits for; here a minute is a moment."""

from __future__ import annotations

import itertools
import re
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.asking import learn
from tests.support.fake_openai import FakeOpenAI
from tests.support.heard import Heard
from twothirds.flows.discover.preparation import prepare
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.flows.events import Progressed
from twothirds.flows.subscribers import heartbeat
from twothirds.flows.subscribers.heartbeat import Heartbeat
from twothirds.models.oracle import OracleIdentity, Traffic
from twothirds.store import Totals
from twothirds.store.errors import StoreError


class Busy:
    identity = OracleIdentity("openai", "gpt-4o-mini")

    def __init__(self) -> None:
        self.ledger = SimpleNamespace(traffic=Traffic())
        for _ in range(8):
            self.ledger.traffic.sent()
        self.ledger.traffic.noted_failure("host answers 503")


@pytest.fixture
def _quick_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "BEAT_SECONDS", 0.1)


def until(heard: Heard, said: int) -> None:
    deadline = time.monotonic() + 30
    while len(heard.said) < said:
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.usefixtures("_quick_minutes")
def test_it_is_said_while_no_answer_comes_and_not_while_some_do() -> None:
    heard, counts = Heard(), iter([Totals(3, 2, 1_000_000), *[Totals(9, 2)] * 10_000])
    with Heartbeat(heard.stream, lambda: next(counts), Busy(), lambda: 50_000):  # type: ignore[arg-type]
        until(heard, 4)
    line = r"5 answers so far, [\d,]+ a minute, about \d+ (h|min) \d+ (min|s) left, 1\.0000 USD"
    first, second, third, *_ = heard.said
    assert re.fullmatch(line, first)
    assert second.startswith("11 answers so far, ")
    assert third.startswith("no answer for 0 min, waiting for openai:gpt-4o-mini: 8 requests under way; ")
    assert third.endswith("the latest failed: host answers 503")
    notices = len(heard.said)
    time.sleep(0.3)
    assert len(heard.said) == notices, "the thread ends with the run"


@pytest.mark.usefixtures("_quick_minutes")
def test_it_is_only_logged_how_many_answers_came_where_the_run_tells_something_anyway() -> None:
    heard, counts = Heard(), itertools.count(1)
    with Heartbeat(heard.stream, lambda: Totals(next(counts)), Busy()) as beat:  # type: ignore[arg-type]
        for done in range(8):
            heard.stream.to(beat).emit(Progressed(done, "queries"))
            time.sleep(0.05)
    assert heard.said == []
    assert heard.logged[0].startswith("1 answers so far, ")


@pytest.mark.usefixtures("_quick_minutes")
def test_a_store_that_cannot_be_read_is_left_to_the_run() -> None:
    def fails() -> Totals:
        raise StoreError("locked")

    heard = Heard()
    with Heartbeat(heard.stream, fails, Busy()):  # type: ignore[arg-type]
        time.sleep(0.35)
    assert (heard.said, heard.logged) == ([], [])


@pytest.mark.usefixtures("_quick_minutes")
def test_a_discovery_whose_server_hangs_says_so(server: FakeOpenAI, dataset: Path, tmp_path: Path) -> None:
    oracle = f"openai:gpt-4o-mini?base_url={server.base_url}&price=0.15,0.60"
    settings = {"dataset": str(dataset), "oracle": oracle, "queries": 2, "budget": "1"}
    places = {"store": str(tmp_path / "store.sqlite"), "out": str(tmp_path / "run")}
    heard = Heard()
    prepared = prepare(DiscoverSettings.model_validate(settings | places), heard.stream)
    learn(prepared.members.labels)
    server.abilities.latency = 0.7
    outcome = run_discovery(prepared, run_id="run")
    waits = [line for line in heard.said if "no answer for" in line]
    assert waits
    assert all("waiting for openai:gpt-4o-mini: " in line and "under way" in line for line in waits)
    traffic = outcome.crowd.ledger.traffic
    assert traffic.answered == sum(traffic.latencies) > 0
    assert sum(traffic.latencies[2:]) == traffic.answered, "all took 0.7 s"
    assert traffic.in_flight == 0
    assert outcome.progress.queries == 2
