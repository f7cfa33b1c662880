"""A worker that was paused past its lease comes back while another does its work, or has done it: both are booked."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from store import Store
from tests.integration.conftest import Clock
from tests.support.store_steps import LEASE, PRICE, begin, claim, record

KEYS = ("a", "b", "c")
BUDGET = 100 * PRICE


@dataclass
class Worker:
    """Claims, sends, calls and answers, step by step; between any two it may be paused for as long as you like."""

    name: str
    store: Store
    scope: str
    book: list[str]  # of the provider: every call that was made
    granted: dict[str, int] = field(default_factory=dict)
    sent: set[str] = field(default_factory=set)
    answered: dict[str, str] = field(default_factory=dict)  # by key: its own answer or another's

    def steps(self) -> list[str]:
        return ["claim", "send", "call", "answer"]

    def claim(self) -> None:
        keys = [f"{self.scope} {key}" for key in KEYS]
        claimed = claim(self.store, keys, owner=self.name, run_id=self.run, scope=self.scope, budget=BUDGET)
        self.granted = claimed.granted

    def send(self) -> None:
        self.sent = self.store.claims.mark_sent(self.name, self.granted)

    def call(self) -> None:
        self.book += sorted(self.sent)

    def answer(self) -> None:
        mine = [record(key, self.granted[key], says=self.name) for key in sorted(self.sent)]
        kept = self.store.answers.record(self.run, mine)
        for key in self.sent:
            self.answered[key] = kept[key]["verdict"] if key in kept else self.name

    @property
    def run(self) -> str:
        return f"{self.name} of {self.scope}"


def interleave(store: Store, clock: Clock, seed: int) -> tuple[list[Worker], list[str]]:
    """Two workers in a random order of steps; the lease of one or both ends at a random moment, or at two."""
    dice = random.Random(seed)
    scope, book = f"interleaving {seed}", list[str]()
    workers = [Worker(name, store, scope, book) for name in ("first", "second")]
    for worker in workers:
        begin(store, worker.run, scope=scope)
    left = {worker.name: worker.steps() for worker in workers}
    ends = sorted(dice.sample(range(9), dice.choice((1, 1, 2))))
    for number in range(9):
        if number in ends:
            clock.now += LEASE + 1
        waiting = [worker for worker in workers if left[worker.name]]
        if waiting:
            worker = dice.choice(waiting)
            getattr(worker, left[worker.name].pop(0))()
        spent, reserved = store.runs.spent(scope)
        assert 0 <= spent + reserved <= BUDGET
    return workers, book


@pytest.mark.parametrize("count", [40, pytest.param(500, marks=pytest.mark.slow)])
def test_a_paused_worker_and_its_successor_agree_and_every_call_is_booked(
    store: Store, clock: Clock, count: int
) -> None:
    late, refused = 0, 0
    for seed in range(count):
        workers, book = interleave(store, clock, seed)
        kept = {key: answer["verdict"] for key, answer in store.answers.lookup(sorted(set(book))).items()}
        assert set(kept) == set(book), "a call that came back is kept"
        for worker in workers:
            assert all(kept[key] == says for key, says in worker.answered.items()), "both go on with the same answer"
        lines = [line for line in store.costs.lines() if line.run_id.endswith(f" of interleaving {seed}")]
        assert sum(line.paid_calls for line in lines) == len(book), "every call is booked once"
        assert sum(line.paid for line in lines) == PRICE * len(book)
        late += len(book) - len(set(book))
        refused += sum(len(worker.granted) - len(worker.sent) for worker in workers)
    assert late, "some answer came twice"
    assert refused, "some worker learned before it sent that its claim was lost"
    assert store.check.problems() == []
    print(
        f"{count} interleavings, {late} calls made twice and booked twice, {refused} claims lost before they were sent"
    )
