"""What is spent and set aside never exceeds the budget, and a repeated run goes on with what is left."""

from __future__ import annotations

import pytest

from store import Request, Store, StoreError
from store.ledger.books import reserve
from tests.integration.conftest import Clock
from tests.support.store_steps import LEASE, PRICE, SCOPE, begin, claim, record


def test_requests_are_granted_in_order_while_the_budget_lasts(store: Store) -> None:
    begin(store)
    claimed = claim(store, "dcba", budget=2 * PRICE + 1)
    assert (list(claimed.granted), claimed.refused) == (["d", "c"], ["b", "a"])
    assert store.runs.spent(SCOPE) == (0, 2 * PRICE)


def test_after_a_refusal_nothing_that_costs_is_granted(store: Store) -> None:
    begin(store)
    prices = {"dear": 900, "dearer": 200, "cheap": 50, "free": 0}
    requests = [Request(key, price) for key, price in prices.items()]
    claimed = store.claims.claim("run-1", SCOPE, requests, owner="o", lease_seconds=LEASE, budget=1000)
    assert (list(claimed.granted), claimed.refused) == (["dear", "free"], ["dearer", "cheap"])


def test_what_an_answer_costs_less_than_its_bound_can_be_spent_again(store: Store) -> None:
    begin(store)
    assert claim(store, ["a", "b"], budget=PRICE).refused == ["b"]
    store.claims.mark_sent("owner-1", ["a"])
    store.answers.record("run-1", [record("a", 1, cost=PRICE // 4)])
    assert claim(store, ["b"], price=PRICE * 3 // 4, budget=PRICE).granted == {"b": 1}
    assert claim(store, ["c"], price=1, budget=PRICE).refused == ["c"]


def test_executions_of_one_scope_share_the_budget_and_a_higher_one_goes_on(store: Store) -> None:
    begin(store, "run-1")
    claim(store, ["a", "b"], budget=2 * PRICE)
    begin(store, "run-2")
    assert claim(store, ["c"], run_id="run-2", owner="owner-2", budget=2 * PRICE).refused == ["c"]
    assert claim(store, ["c"], run_id="run-2", owner="owner-2", budget=3 * PRICE).granted == {"c": 1}
    begin(store, "run-3", scope="another")
    assert claim(store, ["d"], run_id="run-3", scope="another", budget=PRICE).granted == {"d": 1}


def test_an_unknown_charge_counts_against_the_budget(store: Store, clock: Clock) -> None:
    begin(store)
    claim(store, ["a"], budget=PRICE)
    store.claims.mark_sent("owner-1", ["a"])
    clock.now += LEASE
    assert claim(store, ["a"], owner="owner-2", budget=PRICE).refused == ["a"]
    assert store.runs.spent(SCOPE) == (PRICE, 0)


def test_a_price_beyond_its_bound_is_booked_in_full_and_stops_the_rest(store: Store) -> None:
    begin(store)
    claim(store, ["a"], budget=PRICE)
    store.answers.record("run-1", [record("a", 1, cost=3 * PRICE)])
    assert store.runs.spent(SCOPE) == (3 * PRICE, 0)
    assert claim(store, ["b"], budget=2 * PRICE).refused == ["b"]
    assert claim(store, ["c"], price=0, budget=2 * PRICE).granted == {"c": 1}


@pytest.mark.parametrize("keys", [["a", "b"], [f"{16 * '0'}{letter * 48}" for letter in "0123"]])
def test_more_is_reserved_for_a_further_request_if_the_budget_allows_it(store: Store, keys: list[str]) -> None:
    """Of rows and of labels that are packed."""
    begin(store)
    claim(store, keys, price=100, budget=1000)
    before = store.runs.spent(SCOPE)
    assert store.claims.reserve_more("run-1", SCOPE, "owner-1", {keys[0]: 90, keys[1]: 100}, 1000)
    assert store.runs.spent(SCOPE) == before
    for _ in range(2):  # as after a commit whose acknowledgement was lost
        assert store.claims.reserve_more("run-1", SCOPE, "owner-1", {keys[0]: 250, keys[1]: 120}, 1000)
        assert store.runs.spent(SCOPE) == (0, before[1] + 170)
    left = 1000 - before[1] - 170
    assert not store.claims.reserve_more("run-1", SCOPE, "owner-1", {keys[0]: 251 + left}, 1000)
    assert store.runs.spent(SCOPE) == (0, before[1] + 170)
    assert store.check.problems() == []
    store.claims.mark_leaving("owner-1", dict.fromkeys(keys, 100) | {keys[0]: 250})
    store.answers.record("run-1", [record(key, 1, cost=50) for key in keys])
    assert store.runs.spent(SCOPE) == (50 * len(keys), 0)
    assert store.check.problems() == []


def test_more_is_reserved_neither_for_others_claims_nor_for_those_that_have_ended(store: Store, clock: Clock) -> None:
    begin(store)
    claim(store, ["a", "b"], price=100)
    assert store.claims.reserve_more("run-1", SCOPE, "another", {"a": 500}, 1000)
    assert store.runs.spent(SCOPE) == (0, 200)
    clock.now += LEASE
    assert store.claims.reserve_more("run-1", SCOPE, "owner-1", {"a": 500}, 100)
    assert store.runs.spent(SCOPE) == (0, 0)
    assert store.claims.mark_leaving("owner-1", {"a": 500}) == set()
    assert store.check.problems() == []


def test_nothing_is_known_of_a_scope_that_never_ran(store: Store) -> None:
    assert store.runs.spent("unheard of") == (0, 0)


def test_the_statement_that_reserves_knows_the_cap_itself(store: Store) -> None:
    begin(store)
    writing = store.engine.execution_options(writes=True).begin()
    with pytest.raises(StoreError, match="does not fit the budget of 99"), writing as connection:
        reserve(connection, store.runs.find(connection, "run-1").scope, 100, cap=99)
    assert store.runs.spent(SCOPE) == (0, 0)
