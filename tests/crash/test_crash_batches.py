"""Random runs with a provider's batches, killed, waiting, with smaller and larger budgets, against a provider that
keeps its own book: after every one charged ≤ booked ≤ budget, and what was paid for is collected."""

from __future__ import annotations

import random

import pytest

from tests.crash.conftest import Places
from tests.crash.driver import ForkServer, Trial
from tests.crash.provider import Provider
from tests.crash.scenarios import TOKEN_PRICE
from tests.support.fake_openai import BATCHES, FILES, BatchManners, FakeModel, FakeOpenAI
from tests.support.fake_openai.examples import WORDS
from twothirds.store import Store

SEED, ATTEMPTS = 2026, 5
FAULTS = ("500", "503", "cut", "silence", None, None, None, None)
pytestmark = [pytest.mark.xdist_group("fork_server"), pytest.mark.parametrize("store_kind", ["sqlite", "postgresql"])]


def manners(dice: random.Random) -> BatchManners:
    def share() -> float:
        return dice.choice([0.0, 0.0, 0.1])

    return BatchManners(
        polls=dice.choice([1, 2, 1000]),
        shuffled=True,
        expired=share(),
        failing=share(),
        spoiled=share(),
        loses_create=dice.random() < 0.2,
        seed=dice.randrange(1000),
    )


class Books:
    """Ours and the provider's, compared after every attempt."""

    def __init__(self, trial: Trial, server: FakeOpenAI) -> None:
        self._trial, self._server = trial, server
        self.charged = self.booked = 0
        self.most = 0  # the largest budget so far

    def compare(self, budget: int) -> None:
        self.most = max(self.most, budget)
        with Store.open(self._trial.store) as store:
            spent, reserved = store.runs.spent("batch")
            assert store.check.problems() == []
            assert spent == sum(line.paid + line.unknown for line in store.costs.lines())
        self.charged, self.booked = self._server.spent_on_questions(TOKEN_PRICE), spent + reserved
        assert self.charged <= self.booked <= self.most


def disturbed_run(trial: Trial, server: FakeOpenAI, dice: random.Random, usual: float, bound: int) -> Books:
    books = Books(trial, server)
    for _ in range(ATTEMPTS):
        server.batches.manners = manners(dice)
        server.script(dice.choice([BATCHES, FILES]), dice.choices(FAULTS, k=2))
        budget = round(bound * dice.choice([0.0, 0.1, 0.5, 1.0]))
        trial.more |= {
            "budget": budget,
            "wait": dice.choice([0.0, 0.1, 100.0 if server.batches.manners.polls < 9 else 0.1]),
        }
        trial.attempt(kill_after=dice.uniform(0.0, 1.5 * usual) if dice.random() < 0.6 else 30.0)
        if dice.random() < 0.5:
            server.batches.finish()
        books.compare(budget)
    server.batches.finish()
    server.batches.manners = BatchManners()
    trial.more |= {"budget": (ATTEMPTS + 2) * bound, "wait": 100.0}
    trial.finish()
    books.compare((ATTEMPTS + 2) * bound)
    return books


@pytest.mark.parametrize("runs", [1, pytest.param(100, marks=pytest.mark.slow)])
def test_random_runs_with_batches_are_charged_at_most_what_is_booked_and_booked_at_most_the_budget(
    forks: ForkServer, provider: Provider, places: Places, runs: int
) -> None:
    about = {"scenario": "batch", "files": ["labels.json"]}
    with FakeOpenAI(FakeModel(WORDS)) as server, places() as (store, folder):
        calm = Trial(forks, provider, store, folder, more={"base_url": server.base_url}, **about)  # type: ignore[arg-type]
        outcome = calm.finish()
        usual, bound, expected = outcome["seconds"], outcome["bound"], calm.result()
    charged = booked = kills = batches = 0
    for number in range(runs):
        with FakeOpenAI(FakeModel(WORDS)) as server, places() as (store, folder):
            trial = Trial(forks, provider, store, folder, more={"base_url": server.base_url}, **about)  # type: ignore[arg-type]
            books = disturbed_run(trial, server, random.Random(f"{SEED} {number}"), usual, bound)
            assert trial.result() == expected
            charged, booked, kills = charged + books.charged, booked + books.booked, kills + trial.kills
            batches += len(server.batches.made)
    print(
        f"{runs} runs, {kills} kills and other ends, {batches} batches: charged {charged}, booked {booked} "
        f"micro-dollars, the difference {booked - charged} is unknown"
    )
