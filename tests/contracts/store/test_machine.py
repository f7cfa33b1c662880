"""Any order of claim, send, part, answer, late answer, batch, adoption, expiry, crash, withdrawal and restart keeps
books and budget, loses no answer and asks no question twice at a time, on both databases. Any write may be done twice,
as after a COMMIT whose acknowledgement was lost."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from sqlalchemy import Connection, select

from tests.integration.conftest import Clock
from tests.support.postgres import PostgresServer
from tests.support.store_steps import CROWD, LEASE, PRICE, begin
from twothirds.store import Reply, Store, Wanted, new_owner, text_key
from twothirds.store.requests import drop_answer
from twothirds.store.schema import requests, runs, scopes

T = TypeVar("T")
MEMORY = next((folder for folder in ["/dev/shm"] if Path(folder).is_dir()), None)  # whose disk takes no time to sync
CAPS = {"scope 1": 7 * PRICE, "scope 2": 2 * PRICE + PRICE // 2}
KEYS = [text_key(name) for name in "abcdefgh"]
some_requests = st.lists(st.lists(st.sampled_from(KEYS), min_size=1, max_size=5, unique=True), min_size=1, max_size=3)
owners = st.sampled_from(["owner 1", "owner 2", "owner 3"])
scope_names = st.sampled_from(sorted(CAPS))
shares = st.floats(0, 1)


@dataclass
class Call:
    """A request that its owner holds, or that may yet be answered, however late."""

    owner: str
    run: str
    keys: tuple[str, ...]
    sent: int | None = None  # at most what it may have cost
    cost: int = 0
    answers: dict[int, list[dict[str, str]]] = field(default_factory=dict)


def an_owner_that_is_dead() -> str:
    """The number of this process, but another start: that one is gone and its number was given again."""
    mark, machine, process, _started, name = new_owner().split("/")
    return "/".join([mark, machine, process, "1", name])


class StoreMachine(RuleBasedStateMachine):
    def __init__(self, url: str | None = None) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(dir=MEMORY)
        self.url = url or str(Path(self.folder.name) / "store.sqlite")
        self.clock = Clock()
        self.loses_acknowledgements = False
        self.open()
        self.calls: dict[int, Call] = {}
        self.charged = dict.fromkeys(CAPS, 0)
        self.stored: dict[str, dict[str, str]] = {}

    def open(self) -> None:
        self.store = Store.open(self.url, clock=self.clock)
        self.write = self.store.transactions.write
        self.store.transactions.write = self.write_twice  # type: ignore[method-assign]

    def write_twice(self, work: Callable[[Connection], T]) -> T:
        """The second time nobody has heard of the first."""
        if self.loses_acknowledgements:
            self.write(work)
        return self.write(work)

    @rule(loses=st.booleans())
    def the_network_changes(self, loses: bool) -> None:
        self.loses_acknowledgements = loses

    @initialize()
    def begin(self) -> None:
        for scope in CAPS:
            begin(self.store, f"run of {scope}", scope=scope)

    def claim(self, owner: str, scope: str, wanted: list[list[str]], price: int, again: dict[str, float]) -> list[int]:
        asked = [Wanted(tuple(keys), price) for keys in wanted]
        terms = {"owner": owner, "lease_seconds": LEASE, "budget": CAPS[scope], "again": again}
        claimed = self.store.requests.claim(f"run of {scope}", CROWD, asked, **terms)  # type: ignore[arg-type]
        refused = {key for one in claimed.refused for key in one.keys}
        mine = {key for one in claimed.granted for key in one.keys}
        new = {key for one in claimed.granted for key in one.keys if not one.is_adopted}
        assert {key for keys in wanted for key in keys} <= mine | claimed.known | claimed.held | refused
        assert claimed.known <= self.stored.keys()
        assert not new & (self.stored.keys() - again.keys())
        for key in new & again.keys():
            self.stored.pop(key, None)
        for one in claimed.granted:
            call = Call(owner, f"run of {scope}", one.keys, sent=one.booked if one.is_adopted else None)
            self.calls[one.request] = call
        return [one.request for one in claimed.granted]

    @rule(owner=owners, scope=scope_names, wanted=some_requests, price=st.integers(0, PRICE))
    def claims(self, owner: str, scope: str, wanted: list[list[str]], price: int) -> None:
        self.claim(owner, scope, wanted, price, {})

    @rule(owner=owners, scope=scope_names, wanted=some_requests, price=st.integers(0, PRICE))
    def asks_again(self, owner: str, scope: str, wanted: list[list[str]], price: int) -> None:
        """On purpose, whatever is stored: the earlier answers are withdrawn."""
        again = {key: self.clock.now + 1 for keys in wanted for key in keys}
        self.claim(owner, scope, wanted, price, again)

    @rule(scope=scope_names, wanted=some_requests, price=st.integers(0, PRICE), sends=st.booleans())
    def claims_and_dies(self, scope: str, wanted: list[list[str]], price: int, sends: bool) -> None:
        """A process of this machine that is known to be dead: nobody waits for its lease."""
        owner = an_owner_that_is_dead()
        for number in self.claim(owner, scope, wanted, price, {}):
            call = self.calls.pop(number)
            if sends:
                self.store.requests.send(call.run, owner, {number: price}, CAPS[scope])

    @rule(data=st.data(), share=st.floats(0, 1.5))
    def sends(self, data: st.DataObject, share: float) -> None:
        """For the first time or again; more than was foreseen is booked first."""
        if not self.calls:
            return
        number = data.draw(st.sampled_from(sorted(self.calls)))
        call = self.calls[number]
        most = max(int(share * PRICE), call.sent or 0)
        sent, _ = self.store.requests.send(call.run, call.owner, {number: most}, CAPS[call.run.removeprefix("run of ")])
        if number in sent:
            call.sent = most
        elif call.sent is None:  # it is another's by now, or not covered by the budget: it never leaves
            self.store.requests.release(call.owner, [number])
            del self.calls[number]

    @rule(data=st.data(), share=shares, places=st.sets(st.integers(0, 4)), closes=st.booleans())
    def answers(self, data: st.DataObject, share: float, places: set[int], closes: bool) -> None:
        """Of what was sent some or all, in time or late, perhaps told twice."""
        under_way = sorted(number for number, call in self.calls.items() if call.sent is not None)
        if not under_way:
            return
        number = data.draw(st.sampled_from(under_way))
        call = self.calls[number]
        assert call.sent is not None
        new = {at for at in places if at < len(call.keys)} - call.answers.keys()
        cost = call.cost + int(share * (call.sent - call.cost))
        call.answers |= {at: [{"asked": call.keys[at]}, {"by": f"{number} at {at}"}] for at in new}
        _, scope = self.row(number)
        told = Reply(
            number, call.keys, dict(call.answers), cost, in_doubt=0 if closes else call.sent - cost, closes=closes
        )
        earlier = self.store.requests.record(call.run, [told])
        assert self.store.requests.record(call.run, [told]) == earlier, "told twice, it changes nothing"
        self.charged[scope] += cost - call.cost
        call.cost = cost
        for at in new:
            key = call.keys[at]
            if key not in earlier:
                self.stored[key] = call.answers[at][1]
        for key, answer in earlier.items():
            assert answer == self.stored[key]
        if closes or len(call.answers) == len(call.keys):
            del self.calls[number]

    def row(self, number: int) -> tuple[str, str]:
        """State and scope of a request."""
        query = select(requests.c.state, scopes.c.scope).join(runs, runs.c.id == requests.c.run).join(scopes)
        with self.store.engine.connect() as connection:
            found = connection.execute(query.where(requests.c.id == number)).one()
        return found.state, found.scope

    @rule(data=st.data())
    def is_in_a_batch(self, data: st.DataObject) -> None:
        """Its owner notes it, sends it, and goes: only an adopter will hear of it."""
        reserved = sorted(number for number, call in self.calls.items() if call.sent is None)
        if not reserved:
            return
        call = self.calls.pop(number := data.draw(st.sampled_from(reserved)))
        self.store.requests.note_batch(call.owner, [number], "a batch")
        self.store.requests.release(call.owner, [number])

    @rule(owner=owners, uncharged=st.booleans())
    def gives_up(self, owner: str, uncharged: bool) -> None:
        """What was sent may be answered late, unless it is certain that it was not charged."""
        mine = {number: call for number, call in self.calls.items() if call.owner == owner}
        wholly = [number for number, call in mine.items() if not call.cost]
        numbers = wholly if uncharged else list(mine)
        self.store.requests.release(owner, numbers, uncharged=uncharged)
        for number in numbers:
            if uncharged or mine[number].sent is None:
                del self.calls[number]

    @rule(owner=owners)
    def crashes(self, owner: str) -> None:
        """What it had claimed or sent is never heard of again."""
        self.calls = {number: call for number, call in self.calls.items() if call.owner != owner}

    @rule(run=scope_names, share=shares)
    def settles_by_hand(self, run: str, share: float) -> None:
        """The provider's bill: what it shows is all, so nothing of it is charged again."""
        sent = [number for number, call in self.calls.items() if call.sent is not None]
        if any(
            self.row(number)[0] == "closed" for number in sent
        ):  # whoever settles knows that nothing will come any more
            return
        most = sum(one.micro for one in self.store.settlements.unsettled(f"run of {run}"))
        done = self.store.settlements.settle(f"run of {run}", int(share * most), "a bill")
        assert (done.before, done.cost) == (most, int(share * most))

    @rule(key=st.sampled_from(KEYS))
    def withdraws(self, key: str) -> None:
        self.store.transactions.write(lambda connection: drop_answer(connection, key))
        if key in self.visible():
            raise AssertionError("it is withdrawn")
        if not self.is_asked(key):
            self.stored.pop(key, None)

    def visible(self) -> dict[str, dict[str, str]]:
        return self.store.requests.answers(KEYS)

    def is_asked(self, key: str) -> bool:
        return key in self.store.requests.positions([key])

    @rule()
    def restarts(self) -> None:
        self.store.close()
        self.open()

    @rule(seconds=st.sampled_from([1.0, LEASE / 2, LEASE]))
    def time_passes(self, seconds: float) -> None:
        self.clock.now += seconds

    @invariant()
    def nothing_is_lost_and_no_budget_exceeded(self) -> None:
        visible = self.visible()
        for key, answer in self.stored.items():
            assert visible.get(key, answer) == answer
            assert key in visible or self.is_asked(key), "an answer was lost that nobody asks again"
        assert visible.keys() <= self.stored.keys()
        for scope, cap in CAPS.items():
            spent, reserved = self.store.runs.spent(scope)
            assert reserved >= 0
            assert self.charged[scope] <= spent + reserved <= cap
        assert self.store.check.problems() == []

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("histories", [8, pytest.param(150, marks=pytest.mark.slow)])
def test_the_books_hold_in_any_order_on_sqlite(histories: int) -> None:
    run_state_machine_as_test(StoreMachine, settings=at_length(histories))


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("histories", [3, pytest.param(150, marks=pytest.mark.slow)])
def test_the_books_hold_in_any_order_on_postgresql(postgres: PostgresServer, histories: int) -> None:
    length = at_length(histories)
    run_state_machine_as_test(lambda: StoreMachine(postgres.fresh_schema()), settings=length)  # type: ignore[arg-type]


def at_length(histories: int) -> settings:
    """A history of a slow test has 50 steps."""
    unhealthy = [HealthCheck.too_slow, HealthCheck.data_too_large]
    steps = 50 if histories > 10 else 30
    return settings(
        max_examples=histories, stateful_step_count=steps, deadline=None, database=None, suppress_health_check=unhealthy
    )
