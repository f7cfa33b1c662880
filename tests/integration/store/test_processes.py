"""Several processes on one store: nobody pays twice, nobody overspends, and the dead do not stand in the way."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.slow import slow
from tests.support.store_steps import PRICE, SCOPE, begin, claim, keys
from twothirds.store import Store

ROOT = Path(__file__).parents[3]


@contextmanager
def workers(url: str, commands: Sequence[tuple[object, ...]]) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that all stand ready to start their work."""
    with ExitStack() as stack:
        processes = []
        for work, *arguments in commands:
            command = [sys.executable, "-m", "tests.support.store_worker", str(work), url, *map(str, arguments)]
            process = subprocess.Popen(command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            stack.enter_context(process)
            stack.callback(process.kill)
            processes.append(process)
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        yield processes


def work_together(url: str, commands: Sequence[tuple[object, ...]]) -> list[Any]:
    """Start all at once; what each of them printed."""
    with workers(url, commands) as ready:
        for process in ready:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        results = []
        for process in ready:
            said, _ = process.communicate(timeout=1800)  # a test that hangs is ended by pytest sooner
            assert process.returncode == 0
            results.append(json.loads(said))
        return results


def test_the_sampling_number_of_a_scope_is_made_once_whoever_begins_it(store_url: str) -> None:
    first, *others = work_together(store_url, [("number", f"process {n}", 40) for n in range(3)])
    assert others == [first, first]
    assert len(set(first)) == 40
    assert all(len(number) == 32 for number in first)


def test_reservations_started_together_admit_exactly_what_the_budget_holds(store_url: str) -> None:
    budget = 50 * PRICE
    granted = work_together(store_url, [("reserve", f"process {n}", 50, budget) for n in range(3)])
    assert sum(granted) == 50
    with Store.open(store_url) as store:
        assert store.runs.spent(SCOPE) == (0, budget)
        assert store.check.problems() == []


@pytest.mark.parametrize("processes", [3, *slow(2, 4, 8)])
def test_processes_that_want_the_same_keys_pay_each_once(store_url: str, processes: int) -> None:
    got = work_together(store_url, [("share", f"process {n}", 120) for n in range(processes)])
    assert sorted(key for keys in got for key in keys) == sorted(f"key {number}" for number in range(120))
    with Store.open(store_url) as store:
        spent, reserved = store.runs.spent(SCOPE)
        assert (spent == PRICE * sum(line.requests for line in store.costs.lines()), reserved) == (True, 0)
        assert sum(line.paid_calls for line in store.costs.lines()) == 120
        assert store.check.problems() == []


def test_processes_that_open_a_new_store_at_once_all_find_it_ready(store_url: str) -> None:
    names = [f"process {n}" for n in range(2)]
    assert work_together(store_url, [("open", name) for name in names]) == names
    with Store.open(store_url) as store:
        assert {run["run_id"] for run in store.runs.overview()} == set(names)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells when a process started")
def test_the_claims_of_a_killed_process_are_free_before_their_lease_ends(store_url: str) -> None:
    with Store.open(store_url) as store, workers(store_url, [("hold", "killed")]) as (process,):
        begin(store, "run-1")
        assert claim(store, ["a", "b"]).held == keys("ab")
        process.kill()
        granted = claim(store, ["a"]).granted
        while not granted:  # dying takes a moment
            time.sleep(0.01)
            granted = claim(store, ["a"]).granted  # though nobody has collected the process yet
        assert store.runs.spent(SCOPE) == (PRICE, PRICE)
        assert claim(store, ["b"]).granted
        (unknown,) = store.costs.lines("killed")
        assert (unknown.unknown_calls, unknown.unknown) == (1, PRICE)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells when a process started")
def test_what_a_killed_process_had_reserved_and_not_sent_can_be_spent_on_other_questions(store_url: str) -> None:
    with Store.open(store_url) as store, workers(store_url, [("hold", "killed")]) as (process,):
        begin(store, "run-1")
        assert claim(store, ["c"], budget=2 * PRICE).refused
        process.kill()
        process.wait()
        claimed = claim(store, ["c", "d"], budget=2 * PRICE)
        assert (len(claimed.granted), len(claimed.refused)) == (1, 1)
        assert store.runs.spent(SCOPE) == (PRICE, PRICE)
        assert store.check.problems() == []
