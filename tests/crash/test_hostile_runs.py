"""Random runs against a server with faults that may charge above its bounds, killed at any moment and started again:
charged ≤ booked ≤ budget, by the server's own book. What is in flight when a server first charges above its bounds, or
when a kill meets such a request, cannot be prevented, and nothing more than that is exceeded."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from tests.crash.conftest import Places
from tests.crash.driver import ForkServer, Trial
from tests.crash.provider import Provider
from tests.crash.scenarios import TOKEN_PRICE
from tests.support.fake_openai import IN_DOUBT, SPOILERS, Abilities, FakeModel, FakeOpenAI
from tests.support.fake_openai.examples import WORDS
from tests.support.fake_openai.faults import USAGES
from tests.support.fake_openai.server import Charge
from tests.support.slow import slow
from twothirds.models.prices import read_usage, settled
from twothirds.store import Store

pytestmark = pytest.mark.xdist_group("fork_server")
PASSING = ("429", "500", "503")
KILLED_WITHIN = 0.8  # seconds: about as long as an attempt takes
MICRO = 1_000_000


def costs(charges: Iterable[Charge]) -> list[int]:
    """Of each request, the dearest first."""
    used = [read_usage({"usage": charge.usage}) for charge in charges]
    return sorted((settled(TOKEN_PRICE, tokens) for tokens in used if tokens is not None), reverse=True)


def one_run(forks: ForkServer, provider: Provider, places: Places, seed: int) -> Counter[str]:
    dice = random.Random(seed)
    times = dice.choice([1, 1, 1, 4, 40])
    width = dice.randint(1, 8)
    config: dict[str, Any] = {
        "asks": dice.randint(1, 5),
        "attempts": dice.randint(1, 8),
        "concurrency": width,
        "labels_per_request": dice.choice([1, 3, 20]),
        "grouping": dice.choice(["auto", "none"]),
    }
    budget = most = int(10 ** dice.uniform(3.2, 5.2))
    # Where no reply says what was charged, nobody can tell that it was above the bound.
    silent = dice.sample(sorted({*IN_DOUBT, *USAGES} - {"hang"}), 4) if times == 1 else []
    kinds = silent + dice.sample(sorted({*SPOILERS, *PASSING} - {*USAGES}), 4)
    able = Abilities(decisions=dice.random() < 0.3, reasoning=dice.choice([0, 0, 300]), latency=0.01)
    counts = Counter(runs=1, over=times > 1)
    with FakeOpenAI(FakeModel(WORDS), able) as server, places() as (store, folder):
        job = {"base_url": server.base_url, "config": config, "seed": seed}
        trial = Trial(forks, provider, store, folder, scenario="hostile", more=job)
        server.misbehave(dice.uniform(0.0, 0.6), sorted(kinds), seed)
        above, unseen = 0, 0  # what in flight was charged above bounds: within the books, and at a kill
        for attempt in range(dice.randint(1, 4)):
            if attempt or dice.random() < 0.5:
                server.abilities = replace(server.abilities, overcharge=times)
            first = len(server.processed)
            kill = {"kill_after": dice.uniform(0.0, KILLED_WITHIN)} if dice.random() < 0.6 else {}
            outcome = trial.attempt(budget=budget, **kill)
            has_ended = outcome["ended"] == "clean"
            assert has_ended or kill, outcome
            in_flight = sum(costs(server.processed[first:])[:width]) if times > 1 else 0
            above += in_flight
            unseen += 0 if has_ended else in_flight
            with Store.open(store) as opened:
                assert opened.check.problems() == []
                booked = sum(opened.runs.spent("scope"))
            charged = server.billed(TOKEN_PRICE)
            assert charged <= booked + unseen, (seed, attempt)
            assert booked <= most + above, (seed, attempt)
            budget = int(budget * dice.choice([0.5, 1, 1, 2]))
            most = max(most, budget)
            counts += Counter({outcome.get("stopped") or ("clean" if has_ended else "killed"): 1})
        counts += Counter(charges=len(server.processed), charged=charged, booked=booked, budget=most)
        counts += Counter(exceeded=booked > most, unbooked=charged > booked)
    return counts


@pytest.mark.parametrize("store_kind", ["sqlite", *slow("postgresql")])
@pytest.mark.parametrize("runs", [2, pytest.param(100, marks=pytest.mark.slow)])
def test_random_hostile_runs_that_are_killed_charge_no_more_than_is_booked(
    forks: ForkServer, provider: Provider, places: Places, runs: int
) -> None:
    counts = sum((one_run(forks, provider, places, 3_000 + number) for number in range(runs)), Counter[str]())
    ended = ", ".join(f"{counts[name]} {name}" for name in ("clean", "killed", "BudgetExhausted", "Overcharged"))
    print(
        f"{runs} runs, {counts['over']} of them at servers that charge above their bounds; attempts: {ended}; "
        f"{counts['charges']:,} requests charged, charged {counts['charged'] / MICRO:.4f} USD, booked "
        f"{counts['booked'] / MICRO:.4f}, budgets {counts['budget'] / MICRO:.2f}; by what was in flight at such "
        f"servers {counts['exceeded']} budgets were exceeded, and {counts['unbooked']} runs charged above "
        f"what is booked"
    )
