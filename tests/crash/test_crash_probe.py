"""Asking a server what it can do is a request of the run like others: killed anywhere around it, all is booked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.crash.boundaries import PAID_CALL
from tests.crash.conftest import Places
from tests.crash.driver import ForkServer, Trial
from tests.crash.provider import Provider
from tests.crash.scenarios import TOKEN_PRICE
from tests.support.fake_openai import Abilities, FakeModel, FakeOpenAI
from tests.support.fake_openai.examples import WORDS
from tests.support.stored_answers import every_request
from twothirds.store import PROBE, Store
from twothirds.store.schema import CLOSED

pytestmark = pytest.mark.xdist_group("fork_server")
PROBES = 2  # requests to this server: what form of reply it applies, and whether it has decisions
PARTS = 4  # of all boundaries, so that one test takes minutes
SQLITE = pytest.mark.parametrize("store_kind", ["sqlite"])


@dataclass
class Introductions:
    """Trials, each with a server and a store of its own."""

    about: tuple[ForkServer, Provider]
    places: Places
    kills: int = 0
    probes: int = 0
    expected: dict[str, bytes] = field(default_factory=dict)

    @contextmanager
    def trial(self, **about: Any) -> Iterator[tuple[Trial, FakeOpenAI]]:
        with FakeOpenAI(FakeModel(WORDS), Abilities(decisions=True)) as server, self.places() as (store, folder):
            more = {"base_url": server.base_url, **about}
            scenario = more.pop("scenario", "introduction")
            yield Trial(*self.about, store, folder, scenario=scenario, files=["labels.json"], more=more), server

    def survives(self, boundary: int, restarts: int = 1, of_kind: str | None = None) -> bool:
        """Killed at this boundary, and at the same one of each restart; False where it has no such."""
        with self.trial() as (trial, server):
            for _ in range(restarts):
                assert trial.attempt(kill_at=boundary, of_kind=of_kind)["ended"] in ("killed", "clean")
            trial.finish()
            self.expected = self.expected or trial.result()
            assert trial.result() == self.expected
            self.verify(trial, server)
            return trial.kills > 0

    def verify(self, trial: Trial, server: FakeOpenAI) -> None:
        """Every charge of the server's is in the books of the run, and it is asked no more often than it was killed."""
        with Store.open(trial.store) as store:
            assert store.check.problems() == []
            spent, reserved = store.runs.spent("scope")
            rows = every_request(store)
        paid = sum(row.cost for row in rows)
        unheard = [row for row in rows if row.in_doubt and row.kind == PROBE]
        probes = [charge for charge in server.book if charge.probe]
        assert paid <= server.spent(TOKEN_PRICE)
        assert server.spent(TOKEN_PRICE) <= spent, "a charge is not booked"
        assert reserved == 0
        assert not [row for row in rows if row.state != CLOSED], "a claim outlived the run"
        assert len(probes) <= PROBES * (1 + trial.kills)
        assert len(unheard) <= trial.kills
        self.kills += trial.kills
        self.probes += len(probes)

    def __str__(self) -> str:
        return f"{self.kills} kills, {self.probes} charges for finding out, all of them booked"


@pytest.fixture
def introductions(forks: ForkServer, provider: Provider, places: Places) -> Iterator[Introductions]:
    made = Introductions((forks, provider), places)
    yield made
    print(made)


@SQLITE
@pytest.mark.parametrize("boundary", range(1, 3 * PROBES + 1))
def test_killed_before_during_and_after_each_request_the_probe_is_booked(
    introductions: Introductions, boundary: int
) -> None:
    assert introductions.survives(boundary, of_kind=PAID_CALL)


@SQLITE
def test_a_probe_that_is_not_written_down_before_it_is_sent_is_found_out(introductions: Introductions) -> None:
    with introductions.trial(scenario="forgetful", otherwise="introduction") as (trial, server):
        assert trial.attempt(kill_at=2, of_kind=PAID_CALL)["ended"] == "killed"
        trial.finish()
        with pytest.raises(AssertionError, match="a charge is not booked"):
            introductions.verify(trial, server)


@pytest.mark.slow
@pytest.mark.parametrize("store_kind", ["sqlite", "postgresql"])
@pytest.mark.parametrize("part", range(PARTS))
def test_killed_at_every_boundary_once_or_twice_the_probe_is_booked(introductions: Introductions, part: int) -> None:
    boundary = part + 1
    while introductions.survives(boundary, restarts=1 + boundary // PARTS % 2):
        boundary += PARTS
    assert boundary > 200, "the boundaries ended early"
