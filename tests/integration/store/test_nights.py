"""What ran, what it cost, what failed and what to do, a line for each run."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.integration.conftest import Clock
from tests.support.store_steps import PRICE, lose, pay
from twothirds.flows.cli.app import main
from twothirds.store import PROBE, ActiveRun, Job, Store

TABLE = Job("/tables/faces")
BEGIN = """
import os, sys
from twothirds.store import Job, Store
about = {"name": "faces", "flow": "enrich", "dataset": "d", "oracle": "o", "settings": {}}
store = Store.open(sys.argv[1])
store.runs.begin("night-2", "version 2", **about, job=Job("/tables/faces"))
os._exit(9)
"""


def begin_night(store: Store, number: int, flow: str = "enrich", job: Job = TABLE) -> ActiveRun:
    scope, about = f"version {number}", {"name": "faces", "flow": flow, "dataset": "d", "oracle": "o", "settings": {}}
    return store.runs.begin(f"night-{number}", scope, **about, job=job)  # type: ignore[arg-type]


def test_nights_say_how_they_ended_what_they_cost_and_what_to_do(store: Store, clock: Clock) -> None:
    with begin_night(store, 1) as night:
        lose(store, ["a"], PRICE, run_id="night-1")
        night.status, night.message = "budget", "budget of 0.10 USD is used up: raise --budget and run again"
    clock.now += 86_400
    with pytest.raises(OSError, match="disk"), begin_night(store, 2):
        raise OSError("the disk is full: make room,\n and run again")
    [second, first] = store.costs.nights()
    assert (first.state, first.failed, first.paid, first.unknown) == ("budget used up", False, 0, PRICE)
    assert first.todo == "`twothirds store settle night-1` books what the bill shows"  # the rest is the second's
    assert (second.state, second.failed, second.todo) == ("failed", True, "the disk is full: make room, and run again")
    clock.now += 86_400
    with begin_night(store, 3):
        store.runs.begin("probe", "s", name="p", flow="probe", dataset="", oracle="o", settings={})
    assert [(night.run_id, night.state, night.todo) for night in store.costs.nights()][:2] == [
        ("night-3", "done", ""),
        ("night-2", "failed", ""),
    ]
    assert [night.todo for night in store.costs.nights("night-2")] == [""]


def test_a_night_whose_process_is_gone_is_not_running(store: Store, store_url: str, clock: Clock) -> None:
    assert subprocess.run([sys.executable, "-c", BEGIN, store_url], check=False).returncode == 9
    clock.now += 4_000_000_000  # after the other process, which has the clock of the machine
    begin_night(store, 1, job=Job("/tables/another"))
    running, killed = store.costs.nights()
    assert (running.state, running.failed, running.todo) == ("running", False, "")
    assert (killed.state, killed.failed) == ("killed", True)
    assert "run it again: answers that have arrived are not paid for again" in killed.todo


def test_one_that_did_not_end_before_the_next_of_its_table_was_killed(store: Store, clock: Clock) -> None:
    """On another machine, perhaps: nobody can begin while it runs."""
    begin_night(store, 1)
    begin_night(store, 2, flow="discover")  # the same output, but no table: another scope may run beside
    clock.now += 60
    begin_night(store, 3)
    begin_night(store, 4, flow="discover")
    states = {night.run_id: night.state for night in store.costs.nights()}
    assert states == {"night-1": "killed", "night-2": "running", "night-3": "running", "night-4": "running"}


def test_the_command_prints_them_with_the_same_sums_as_costs(
    store: Store, store_url: str, capsys: pytest.CaptureFixture[str], clock: Clock
) -> None:
    clock.now = 1_795_000_000.0
    with begin_night(store, 1) as night:
        pay(store, ["a", "b"], run_id="night-1")
        night.status, night.message = "contract", "red: 9 % of the rows, at most 0 is expected"
    assert main(["costs", "--nights", "--store", store_url]) == 0
    printed = capsys.readouterr().out
    [line] = [line for line in printed.splitlines() if "night-1" in line and "│" in line]
    assert [cell.strip() for cell in line.split("│")[1:-1]] == [
        *("2026-11-18 11:06", "faces night-1", "enrich", "o", "not as expected", "2", "0.2000", "0.0000"),
    ]
    assert "1 failed" in printed
    assert printed.endswith("\nfaces night-1: red: 9 % of the rows, at most 0 is expected\n")
    assert main(["costs", "--store", store_url]) == 0
    assert "0.2000" in capsys.readouterr().out
    assert main(["costs", "nobody", "--nights", "--store", store_url]) != 0
    assert "no run 'nobody' in this store" in capsys.readouterr().err


def test_what_finds_out_the_abilities_of_a_server_costs_money_and_is_no_question(store: Store) -> None:
    begin_night(store, 1)
    pay(store, ["a", "b"], run_id="night-1")
    pay(store, ["c"], run_id="night-1", kind=PROBE)
    [night] = store.costs.nights()
    assert (night.questions, night.paid) == (2, 3 * PRICE)
    assert [(line.kind, line.questions, line.paid_calls) for line in store.costs.lines()] == [
        ("label", 2, 2),
        (PROBE, 0, 0),
    ]
