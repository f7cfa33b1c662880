"""Requests of unknown cost are settled by hand, and each settlement is logged."""

from __future__ import annotations

import json
import re

import pytest
from sqlalchemy import select

from tests.support.store_steps import PRICE, SCOPE, begin, granted, lose, reply
from twothirds.flows.cli.app import main
from twothirds.store import Store, StoreError
from twothirds.store.schema import settlements


def test_what_was_killed_stays_booked_at_the_bound_of_what_was_sent_and_not_at_the_reservation(store: Store) -> None:
    begin(store)
    lose(store, ["a", "b"], PRICE // 4)
    assert store.runs.spent(SCOPE) == (PRICE // 2, 0)
    totals = store.costs.totals("run-1")
    assert (totals.paid, totals.unknown_calls, totals.unknown) == (0, 2, PRICE // 2)
    assert store.check.problems() == []


def test_the_bill_is_spread_over_what_is_in_doubt_and_each_settlement_is_logged(store: Store) -> None:
    begin(store)
    lost = lose(store, ["ab", "c", "d"], PRICE // 4)
    [number] = granted(store, ["e"])
    store.requests.record("run-1", [reply(number, "e", cost=7, in_doubt=PRICE // 4)])
    assert [(one.run_id, one.requests, one.micro) for one in store.settlements.unsettled()] == [("run-1", 4, PRICE)]
    assert store.settlements.settle("run-1", 101, "invoice 4711") == (4, PRICE, 101)
    assert store.runs.spent(SCOPE) == (7 + 101, 0)
    totals = store.costs.totals("run-1")
    assert (totals.paid, totals.unknown_calls, totals.unknown) == (7 + 101, 0, 0)
    with store.engine.connect() as connection:
        logged = connection.execute(select(settlements)).all()
    assert sorted((row.request, row.in_doubt, row.reason) for row in logged) == [
        (request, PRICE // 4, "invoice 4711") for request in sorted([*lost, number])
    ]
    assert sum(row.cost for row in logged) == 101
    assert store.check.problems() == []
    assert store.settlements.unsettled() == []


def test_a_bill_above_the_bounds_is_refused_and_nothing_changes(store: Store) -> None:
    begin(store)
    lose(store, ["a"], 10)
    with pytest.raises(StoreError, match="11 micro-dollars are more than the 10 that are in doubt"):
        store.settlements.settle(None, 11, "a typing error")
    assert store.runs.spent(SCOPE) == (10, 0)


def test_an_answer_that_arrives_after_the_settlement_is_booked_beside_it(store: Store) -> None:
    begin(store)
    [number] = lose(store, ["a"], 10)
    store.settlements.settle(None, 4, "a bill")
    for _ in range(2):
        store.requests.record("run-1", [reply(number, "a", cost=3)])
        assert store.runs.spent(SCOPE) == (4 + 3, 0)
    assert store.check.problems() == []


def test_the_command_lists_what_is_unknown_books_the_bill_and_wants_a_reason(
    store: Store, store_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    begin(store)
    lose(store, ["a", "b"], PRICE // 4)
    command = ["store", "settle", "run-1", "--store", store_url]
    assert main(command) == 0
    assert "2 requests, at most" in capsys.readouterr().out
    assert main([*command, "--nothing"]) == 2
    assert "--because" in capsys.readouterr().err
    assert main([*command, "--at", "0.000003", "--because", "invoice 4711"]) == 0
    assert "2 requests settled at 0.000003 USD" in capsys.readouterr().out
    assert store.runs.spent(SCOPE) == (3, 0)
    assert main(command) == 0
    assert capsys.readouterr().out == "the cost of every request is known\n"


AT_ONCE = ["01999999-0000-7000-8000-0000aaaa1111", "01999999-0000-7000-8000-0000bbbb2222"]


def test_a_run_that_does_not_exist_is_refused_and_settles_nothing(
    store: Store, store_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    begin(store)
    lose(store, ["a"], PRICE // 4)
    for more in ([], ["--nothing", "--because", "a bill"]):
        assert main(["store", "settle", "run-2", "--store", store_url, *more]) != 0
        printed = capsys.readouterr()
        assert "no run 'run-2' in this store: `twothirds costs` lists those that are" in printed.err
        assert printed.out == ""
    assert store.runs.spent(SCOPE) == (PRICE // 4, 0)


def test_runs_that_were_made_at_once_are_told_apart_and_settled_by_their_short_ids(
    store: Store, store_url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    for run_id, key in zip(AT_ONCE, "ab", strict=True):
        begin(store, run_id, name="night")
        lose(store, [key], PRICE // 4, run_id)
    assert main(["costs", "--store", store_url]) == 0
    printed = capsys.readouterr().out
    assert "began" in printed
    for run_id in AT_ONCE:
        [line] = [line for line in printed.splitlines() if f"night {run_id[-8:]}" in line]
        assert re.search(r"│ \d{4}-\d\d-\d\d │", line)
    command = ["store", "settle", AT_ONCE[1][-8:], "--store", store_url, "--nothing", "--because", "a bill"]
    assert main(command) == 0
    assert "night bbbb2222" in capsys.readouterr().out
    assert [one.run_id for one in store.settlements.unsettled()] == AT_ONCE[:1]
    assert main(["costs", AT_ONCE[0][-8:], "--store", store_url, "--json"]) == 0
    assert [line["run_id"] for line in json.loads(capsys.readouterr().out)] == AT_ONCE[:1]


def test_short_ids_are_no_patterns(store: Store) -> None:
    begin(store, AT_ONCE[0])
    assert store.runs.knows(AT_ONCE[0][-8:])
    assert not any(store.runs.knows(wrong) for wrong in ("%" * 8, "_" * 8, "1111", AT_ONCE[0][:8]))
