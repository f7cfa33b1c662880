"""Any order of claim, send, answer, late answer, cancel, expire, renew, crash and restart keeps books and budget."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from store import Store, new_owner
from store.packed.answers import unpack
from store.packed.claims import packed_claims_of
from store.packed.keys import find_packed
from tests.integration.conftest import Clock
from tests.support.store_steps import LEASE, PRICE, begin, claim, record

CAPS = {"scope 1": 7 * PRICE, "scope 2": 2 * PRICE + PRICE // 2}
TOGETHER = [f"{16 * '0'}{key * 48}" for key in "abcdef"]  # labels of one example, which may be packed
KEYS = ["a", "b", *TOGETHER]
some_keys = st.one_of(st.lists(st.sampled_from(KEYS), min_size=1), st.just(TOGETHER))
owners = st.sampled_from(["owner 1", "owner 2", "owner 3"])
scopes = st.sampled_from(sorted(CAPS))
parts = st.integers(0, PRICE)
counts = st.integers(0, 3)


@dataclass(frozen=True)
class Call:
    """A question that was sent and may yet be answered, however late."""

    scope: str
    owner: str
    key: str
    fence: int


def an_owner_that_is_dead() -> str:
    """The number of this process, but another start: that one is gone and its number was given again."""
    mark, machine, process, _started, name = new_owner().split("/")
    return "/".join([mark, machine, process, "1", name])


class StoreMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.clock = Clock()
        self.open()
        self.claimed: dict[Call, None] = {}
        self.under_way: dict[Call, None] = {}
        self.paid = dict.fromkeys(CAPS, 0)
        self.kept: dict[str, dict[str, str]] = {}

    def open(self) -> None:
        self.store = Store.open(str(Path(self.folder.name) / "store.sqlite"), clock=self.clock)

    @initialize()
    def begin(self) -> None:
        for scope in CAPS:
            begin(self.store, f"run of {scope}", scope=scope)

    @rule(owner=owners, scope=scopes, keys=some_keys, price=parts, sending=counts)
    def claims(self, owner: str, scope: str, keys: list[str], price: int, sending: int) -> None:
        terms = {"price": price, "budget": CAPS[scope], "sending": sending}
        result = claim(self.store, keys, owner=owner, run_id=f"run of {scope}", scope=scope, **terms)
        sorts = [*result.granted, *result.answered, *result.held, *result.refused]
        assert sorted(sorts) == sorted(set(keys))
        assert set(result.answered) == set(keys) & set(self.kept)
        assert len(result.sent) == min(sending, len(result.granted))
        calls = {Call(scope, owner, key, fence): None for key, fence in result.granted.items()}
        self.under_way |= {call: None for call in calls if call.key in result.sent}
        self.claimed |= {call: None for call in calls if call.key not in result.sent}

    @rule(owner=owners)
    def sends(self, owner: str) -> None:
        mine = [call for call in self.claimed if call.owner == owner]
        allowed = self.store.claims.mark_sent(owner, [call.key for call in mine])
        newest = {call.key: call for call in mine}
        self.under_way |= {newest[key]: None for key in allowed}
        self.claimed = {call: None for call in self.claimed if call.owner != owner}

    @rule(owner=owners, share=st.floats(0, 1))
    def sends_again(self, owner: str, share: float) -> None:
        """Another request for what was sent: what it and those before may have cost is written down first."""
        mine = {call.key: call for call in self.under_way if call.owner == owner}
        in_doubt = {key: int(share * self.bound(call)) for key, call in mine.items()}
        assert self.store.claims.mark_leaving(owner, in_doubt) <= set(in_doubt)

    @rule(owner=owners, scope=scopes, up_to=parts)
    def reserves_more(self, owner: str, scope: str, up_to: int) -> None:
        """For a request that was not foreseen; what is refused changes nothing."""
        mine = {call.key: up_to for call in self.under_way if (call.owner, call.scope) == (owner, scope)}
        self.store.claims.reserve_more(f"run of {scope}", scope, owner, mine, CAPS[scope])

    @rule(run=scopes, share=st.floats(0, 1))
    def settles_by_hand(self, run: str, share: float) -> None:
        most = sum(one.micro for one in self.store.settlements.unsettled(f"run of {run}"))
        done = self.store.settlements.settle(f"run of {run}", int(share * most), "a bill")
        assert (done.before, done.cost) == (most, int(share * most))

    @rule(data=st.data(), cost=parts, more=parts)
    def answers(self, data: st.DataObject, cost: int, more: int) -> None:
        if not self.under_way:
            return
        call = data.draw(st.sampled_from(list(self.under_way)))
        cost, in_doubt = min(cost, self.bound(call)), 0
        if more:  # attempts before it failed, and may have been charged
            in_doubt = min(more, self.bound(call) - cost)
        says = {"verdict": f"{call.owner} {call.fence}"}
        late = replace(record(call.key, call.fence, cost=cost, says=says["verdict"]), in_doubt=in_doubt)
        earlier = self.store.answers.record(f"run of {call.scope}", [late])
        assert earlier == ({call.key: self.kept[call.key]} if call.key in self.kept else {})
        self.kept.setdefault(call.key, says)
        self.paid[call.scope] += cost
        del self.under_way[call]

    @rule(owner=owners, cost=parts)
    def answers_all(self, owner: str, cost: int) -> None:
        """What was sent last for each question of the owner, by scope."""
        for scope in CAPS:
            newest = {call.key: call for call in self.under_way if (call.owner, call.scope) == (owner, scope)}
            calls = {call: min(cost, self.bound(call)) for call in newest.values()}
            records = [record(call.key, call.fence, cost=price, says=str(call)) for call, price in calls.items()]
            earlier = self.store.answers.record(f"run of {scope}", records) if records else {}
            assert earlier == {call.key: self.kept[call.key] for call in calls if call.key in self.kept}
            for call, price in calls.items():
                self.kept.setdefault(call.key, {"verdict": str(call)})
                self.paid[scope] += price
                del self.under_way[call]

    @rule(keys=some_keys)
    def unpacks(self, keys: list[str]) -> None:
        self.store.transactions.write(lambda connection: unpack(connection, keys))

    @rule(scope=scopes, keys=some_keys)
    def uses(self, scope: str, keys: list[str]) -> None:
        self.store.answers.note_uses(f"run of {scope}", [key for key in keys if key in self.kept])

    @rule(owner=owners)
    def crashes(self, owner: str) -> None:
        """What it had claimed or sent is never heard of again."""
        self.claimed = {call: None for call in self.claimed if call.owner != owner}
        self.under_way = {call: None for call in self.under_way if call.owner != owner}

    @rule(scope=scopes, keys=some_keys, price=parts, sends=st.booleans())
    def claims_and_dies(self, scope: str, keys: list[str], price: int, sends: bool) -> None:
        """A process of this machine that is known to be dead: nobody waits for its lease."""
        owner = an_owner_that_is_dead()
        run_id, cap = f"run of {scope}", CAPS[scope]
        granted = claim(self.store, keys, owner=owner, run_id=run_id, scope=scope, price=price, budget=cap).granted
        if sends:
            self.store.claims.mark_sent(owner, granted)

    @rule()
    def restarts(self) -> None:
        self.store.close()
        self.open()

    @rule(owner=owners)
    def cancels(self, owner: str) -> None:
        """Marked as sent, but the call was never made: the money is free again."""
        self.store.claims.release(owner, self.sent_by(owner))
        self.under_way = {call: None for call in self.under_way if call.owner != owner}

    @rule(owner=owners)
    def releases_what_was_not_sent(self, owner: str) -> None:
        self.store.claims.release(
            owner, {call.key for call in self.claimed if call.owner == owner} - self.sent_by(owner)
        )
        self.claimed = {call: None for call in self.claimed if call.owner != owner}

    @rule(owner=owners)
    def gives_up(self, owner: str) -> None:
        self.store.claims.abandon(owner, self.sent_by(owner))

    @rule(seconds=st.sampled_from([1.0, LEASE / 2, LEASE]))
    def time_passes(self, seconds: float) -> None:
        self.clock.now += seconds

    def sent_by(self, owner: str) -> set[str]:
        return {call.key for call in self.under_way if call.owner == owner}

    def bound(self, call: Call) -> int:
        with self.store.engine.connect() as connection:
            found = connection.exec_driver_sql(
                "SELECT reserved FROM charges WHERE key = ? AND fence = ?", (call.key, call.fence)
            )
            at = find_packed(connection, [call.key]).get(call.key)
            if at is None:
                return int(found.scalar_one())
            return int(packed_claims_of(connection, [at.pack])[at.pack].reserved[at.place])

    @invariant()
    def nothing_is_lost_and_no_budget_exceeded(self) -> None:
        assert self.store.answers.lookup(KEYS) == self.kept
        for scope, cap in CAPS.items():
            spent, reserved = self.store.runs.spent(scope)
            assert 0 <= self.paid[scope] <= spent
            assert spent + reserved <= cap
        assert self.store.check.problems() == []

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()


patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
TestStoreMachine = StoreMachine.TestCase
TestStoreMachine.settings = settings(patient, max_examples=10, stateful_step_count=25)


@pytest.mark.slow
class TestStoreMachineAtLength(StoreMachine.TestCase):  # type: ignore[misc, valid-type]
    settings = settings(patient, max_examples=400, stateful_step_count=50)
