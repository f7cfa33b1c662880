"""Requests of unknown cost are settled by hand, and each settlement is logged."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import select

from flows.__main__ import main
from store import Store, StoreError
from store.schema import settlements
from tests.support.store_steps import PRICE, SCOPE, begin, claim, record


def lose(store: Store, keys: list[str], in_doubt: int) -> None:
    """Sent, and never heard of."""
    granted = claim(store, keys, price=PRICE)
    assert store.claims.mark_leaving("owner-1", dict.fromkeys(granted.granted, in_doubt)) == set(keys)
    assert store.claims.abandon("owner-1", keys) == in_doubt * len(keys)


def test_what_was_killed_stays_booked_at_the_bound_of_what_was_sent_and_not_at_the_reservation(store: Store) -> None:
    begin(store)
    lose(store, ["a", "b"], PRICE // 4)
    assert store.runs.spent(SCOPE) == (PRICE // 2, 0)
    totals = store.costs.totals("run-1")
    assert (totals.paid, totals.unknown_calls, totals.unknown) == (0, 2, PRICE // 2)
    assert store.check.problems() == []


def test_the_bill_is_spread_over_what_is_in_doubt_and_each_settlement_is_logged(store: Store) -> None:
    begin(store)
    lose(store, ["a", "b", "c"], PRICE // 4)
    granted = claim(store, ["d"]).granted
    store.answers.record("run-1", [replace(record("d", granted["d"], cost=7), in_doubt=PRICE // 4)])
    assert [(one.run_id, one.calls, one.micro) for one in store.settlements.unsettled()] == [("run-1", 4, PRICE)]
    assert store.settlements.settle("run-1", 101, "invoice 4711") == (4, PRICE, 101)
    assert store.runs.spent(SCOPE) == (7 + 101, 0)
    totals = store.costs.totals("run-1")
    assert (totals.paid, totals.unknown_calls, totals.unknown) == (7 + 101, 0, 0)
    with store.engine.connect() as connection:
        logged = connection.execute(select(settlements)).all()
    assert sorted((row.key, row.in_doubt, row.reason) for row in logged) == [
        (key, PRICE // 4, "invoice 4711") for key in "abcd"
    ]
    assert sum(row.cost for row in logged) == 101
    assert store.check.problems() == []
    assert all(one.booked for page in store.check.answers() for one in page)
    assert store.settlements.unsettled() == []


def test_a_bill_above_the_bounds_is_refused_and_nothing_changes(store: Store) -> None:
    begin(store)
    lose(store, ["a"], 10)
    with pytest.raises(StoreError, match="11 micro-dollars are more than the 10 that are in doubt"):
        store.settlements.settle(None, 11, "a typing error")
    assert store.runs.spent(SCOPE) == (10, 0)


def test_an_answer_that_arrives_after_the_settlement_is_booked_beside_it(store: Store) -> None:
    begin(store)
    lose(store, ["a"], 10)
    store.settlements.settle(None, 4, "a bill")
    store.answers.record("run-1", [record("a", 1, cost=3)])
    assert store.runs.spent(SCOPE) == (4 + 3, 0)
    assert store.check.problems() == []
    assert all(one.booked for page in store.check.answers() for one in page)


def test_the_command_lists_what_is_unknown_books_the_bill_and_wants_a_reason(
    store: Store, store_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    begin(store)
    lose(store, ["a", "b"], PRICE // 4)
    command = ["store", "settle", "run-1", "--store", store_url]
    assert main(command) == 0
    assert "2 questions, at most" in capsys.readouterr().out
    assert main([*command, "--nothing"]) == 2
    assert "--because" in capsys.readouterr().err
    assert main([*command, "--at", "0.000003", "--because", "invoice 4711"]) == 0
    assert "2 questions settled at 0.000003 USD" in capsys.readouterr().out
    assert store.runs.spent(SCOPE) == (3, 0)
    assert main(command) == 0
    assert capsys.readouterr().out == "the cost of every question is known\n"
