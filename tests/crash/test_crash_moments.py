"""An enrichment, the collection of a provider's batch and the review page, each killed at random moments (seeded)."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.crash.conftest import Places
from tests.crash.driver import ForkServer, Trial, VoteCounts
from tests.crash.fork_server import LONGEST_SECONDS
from tests.crash.provider import Provider
from tests.crash.scenarios import TOKEN_PRICE
from tests.support.asking import ask
from tests.support.fake_openai import BatchManners, FakeModel, FakeOpenAI
from tests.support.fake_openai.examples import WORDS
from tests.support.growing_worlds import World
from tests.support.made import texts
from tests.support.review_site import Site, Visitor, free_port
from twothirds.models.oracle import AnswersPending, Feature, Label
from twothirds.models.people.human import HumanOracle
from twothirds.models.prices import read_usage, settled
from twothirds.store import Store

pytestmark = [pytest.mark.xdist_group("fork_server"), pytest.mark.parametrize("store_kind", ["sqlite"])]
MOMENTS = pytest.mark.parametrize("moments", [2, pytest.param(50, marks=pytest.mark.slow)])
SEED = 2015
SIX_TRAITS = ("red", "round", "heavy", "old", "soft", "loud")  # enough labels of one example to be packed


def kill_until_it_ends(trial: Trial, dice: random.Random, usual: float) -> None:
    """Killed up to three times in a row, each time at a moment of its own."""
    for _ in range(3):
        if trial.attempt(kill_after=dice.uniform(0.0, usual))["ended"] == "clean":
            return
    trial.finish()


@MOMENTS
def test_an_enrichment_killed_at_random_moments_ends_like_an_undisturbed_one(
    forks: ForkServer, provider: Provider, places: Places, tmp_path: Path, moments: int
) -> None:
    world = World(tmp_path / "world", 24, SIX_TRAITS)
    about: dict[str, Any] = {"scenario": "enrich", "files": ["labels.parquet"]}
    about["more"] = {"dataset": world.spec, "features": world.features}
    dice, vote_counts = random.Random(SEED), VoteCounts()
    with places() as (store, folder):
        calm = Trial(forks, provider, store, folder, **about)
        usual, expected = calm.finish()["seconds"], calm.result()
    while vote_counts.kills < moments:
        with places() as (store, folder):
            trial = Trial(forks, provider, store, folder, **about)
            kill_until_it_ends(trial, dice, usual)
            assert trial.result() == expected
            trial.verify(vote_counts)
    print(vote_counts)


@pytest.mark.slow
@pytest.mark.parametrize("moments", [50])
def test_the_collection_of_a_batch_killed_at_random_moments_books_whatever_was_charged(
    forks: ForkServer, provider: Provider, places: Places, moments: int
) -> None:
    dice, kills, spent, batches = random.Random(SEED), 0, 0, 0
    expected, usual = dict[str, bytes](), 0.0
    while kills < moments:
        with FakeOpenAI(FakeModel(WORDS)) as server, places() as (store, folder):
            server.batches.manners = BatchManners(polls=3)
            more = {"base_url": server.base_url}
            trial = Trial(forks, provider, store, folder, scenario="batch", files=["labels.json"], more=more)
            if expected:
                kill_until_it_ends(trial, dice, usual)
            else:
                usual = trial.finish()["seconds"]
            expected = expected or trial.result()
            assert trial.result() == expected
            assert_all_is_booked(trial, server)
            kills += trial.kills
            spent += charged_for_batches(server)
            batches += len(server.batches.made)
    print(f"{kills} kills, {batches} batches, {spent} micro-dollars charged, all of them booked")


def charged_for_batches(server: FakeOpenAI) -> int:
    """Without the requests with which a server is asked what it can do: test_crash_probe.py is about those."""
    used = [read_usage({"usage": charge.usage}) for charge in server.book if charge.path == "batch"]
    return sum(settled(TOKEN_PRICE, tokens, batch=True) for tokens in used if tokens is not None)


def assert_all_is_booked(trial: Trial, server: FakeOpenAI) -> None:
    """The provider's book of batches is never larger than ours, and nothing acknowledged is lost."""
    with Store.open(trial.store) as store:
        assert store.check.problems() == []
        ours, reserved = store.runs.spent("batch")
        kept = store.requests.answers(list(trial.acknowledged()))
    assert charged_for_batches(server) <= ours
    assert reserved == 0
    assert set(kept) == set(trial.acknowledged())
    assert len(server.batches.made) <= 1 + trial.kills, "at most one more batch for each kill"


class Reviewer:
    """Answers one page after the other, for as long as there is a server, and counts what was acknowledged."""

    def __init__(self, store: Store, port: int) -> None:
        self._address = f"http://127.0.0.1:{port}"
        self._link = Site(store, self._address).link("Ann")
        self.acknowledged: set[str] = set()
        self.has_voted = threading.Event()

    def work_while(self, page: threading.Thread) -> None:
        visitor = Visitor(self._address)
        while page.is_alive():
            try:
                visitor.open(self._link)
                self._answer(visitor)
            except httpx.TransportError:
                time.sleep(0.02)  # it is not yet there, or no longer
        visitor.client.close()

    def _answer(self, visitor: Visitor) -> None:
        while visitor.get("/").status_code == 200 and (leases := visitor.hidden("lease")):
            reply = visitor.answer(has=leases[:1])
            assert reply.status_code == 303, reply.text
            self.acknowledged |= set(leases)
            self.has_voted.set()


def kill_some_time(process: Path, begun: threading.Event, later: float) -> None:
    """The first votes show that the page is at work, however long it took to start."""
    assert begun.wait(LONGEST_SECONDS)
    time.sleep(later)
    os.kill(int(process.read_text()), signal.SIGKILL)


@MOMENTS
def test_the_page_killed_at_random_moments_keeps_every_vote_that_it_took(
    forks: ForkServer, places: Places, moments: int
) -> None:
    dice, kills, port = random.Random(SEED), 0, free_port()
    with places() as (url, folder), Store.open(url) as store:
        folder.mkdir()
        process = folder / "process"
        labels = [Label(Feature(f"feature {n}"), example) for n in range(20 * moments) for example in texts(30)]
        with pytest.raises(AnswersPending):
            list(ask(HumanOracle(store.queue), labels))
        person = Reviewer(store, port)
        while kills < moments:
            person.has_voted.clear()
            job = {"scenario": "page", "store": url, "port": port, "process": process}
            page = threading.Thread(target=forks.run_forked, kwargs=job)
            page.start()
            killer = threading.Thread(target=kill_some_time, args=(process, person.has_voted, dice.uniform(0.0, 0.6)))
            killer.start()
            person.work_while(page)
            killer.join()
            kills += 1
        given = [str(row["id"]) for row in store.queue.records.answers() if row["state"] == "given"]
        assert person.acknowledged, "it answered something"
        assert person.acknowledged <= set(given), "a vote that was acknowledged is lost"
        assert len(given) == len(set(given))
        assert store.check.problems() == []
        print(f"{kills} kills, {len(person.acknowledged)} votes acknowledged: 0 lost")
