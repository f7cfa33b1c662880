"""A budget for each day, week or month: what all runs of a job that began in it have booked counts against it."""

from __future__ import annotations

import threading
from datetime import UTC, datetime

import pytest

from tests.integration.conftest import Clock
from tests.support.store_steps import LEASE, PRICE, claim, granted, reply, send
from twothirds.store import EVER, Job, Store

MONTH, DAY = Job("enrich /tables/faces", "month"), 86_400.0
BUDGET = 3 * PRICE


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def begin_night(store: Store, number: int, job: Job = MONTH) -> dict[str, str]:
    """Each night is a version of the table, and so a scope of its own."""
    run_id, scope = f"night-{number}", f"version {number} of {job.name}"
    store.runs.begin(run_id, scope, name="n", flow="enrich", dataset="faces", oracle="crowd", settings={}, job=job)
    return {"run_id": run_id, "owner": f"owner-{number}"}


def pay(store: Store, night: dict[str, str], name: str) -> None:
    [number] = granted(store, [name], **night, budget=BUDGET)
    send(store, [number], owner=night["owner"], run_id=night["run_id"])
    store.requests.record(night["run_id"], [reply(number, name)])


@pytest.mark.parametrize(
    ("per", "now", "begins", "ends"),
    [
        ("day", "2026-12-31T23:59", "2026-12-31", "2027-01-01"),
        ("week", "2026-11-18T12:00", "2026-11-16", "2026-11-23"),
        ("week", "2026-11-23T00:00", "2026-11-23", "2026-11-30"),
        ("month", "2026-12-31T23:59", "2026-12-01", "2027-01-01"),
        ("month", "2028-02-01T00:00", "2028-02-01", "2028-03-01"),
    ],
)
def test_periods_are_those_of_the_calendar_in_utc(per: str, now: str, begins: str, ends: str) -> None:
    period = Job("j", per).period_at(at(now))
    assert period is not None
    assert (period.begins, period.ends, period.next_day) == (at(begins), at(ends), ends)


def test_the_nights_of_a_month_share_its_budget_and_the_next_month_has_its_own(store: Store, clock: Clock) -> None:
    clock.now = at("2026-11-28T03:00")
    pay(store, first := begin_night(store, 1), "a")
    clock.now += DAY
    second = begin_night(store, 2)
    [lost] = granted(store, ["b"], **second, budget=BUDGET)
    send(store, [lost], owner=second["owner"], run_id=second["run_id"])
    assert store.requests.release(second["owner"], [lost]) == PRICE  # in doubt, which counts
    clock.now += DAY
    third = begin_night(store, 3)
    claimed = claim(store, ["c", "d"], **third, budget=BUDGET)  # type: ignore[arg-type]
    assert (len(claimed.granted), len(claimed.refused)) == (1, 1)
    booked = store.runs.booked(first["run_id"])
    assert (booked.spent, booked.reserved) == (2 * PRICE, PRICE)
    assert "2026-12-01 (UTC)" in booked.remedy
    number = claimed.granted[0].request
    assert store.requests.send("night-3", third["owner"], {number: PRICE + 1}, BUDGET) == (set(), True)

    clock.now = at("2026-12-01T03:00")
    assert (now := store.runs.booked_now(MONTH)) is not None
    assert (now.spent, now.reserved) == (0, 0)
    claimed = claim(store, ["e", "f", "g", "h"], **begin_night(store, 4), budget=BUDGET)  # type: ignore[arg-type]
    assert (len(claimed.granted), len(claimed.refused)) == (3, 1)
    assert store.check.problems() == []


def test_a_job_may_have_one_budget_for_all_of_its_time(store: Store, clock: Clock) -> None:
    job = Job("compare", EVER)
    clock.now = at("2026-11-28T03:00")
    pay(store, first := begin_night(store, 1, job), "a")
    clock.now += 400 * DAY
    claimed = claim(store, "bcd", **begin_night(store, 2, job), budget=BUDGET)  # type: ignore[arg-type]
    assert (len(claimed.granted), len(claimed.refused)) == (2, 1)
    booked = store.runs.booked(first["run_id"])
    assert (booked.spent, booked.reserved, booked.per) == (PRICE, 2 * PRICE, "")
    assert booked.remedy == "raise --budget and run again"


def test_a_run_that_outlasts_its_month_is_counted_in_the_one_in_which_it_began(store: Store, clock: Clock) -> None:
    clock.now = at("2026-11-30T23:59")
    long = begin_night(store, 1)
    pay(store, long, "a")
    clock.now = at("2026-12-01T00:01")
    claimed = claim(store, "bcd", **long, budget=BUDGET)  # type: ignore[arg-type]
    assert (len(claimed.granted), len(claimed.refused)) == (2, 1)
    assert (now := store.runs.booked_now(MONTH)) is not None
    assert now.spent == 0


def test_other_jobs_do_not_count_and_runs_without_a_period_do(store: Store, clock: Clock) -> None:
    clock.now = at("2026-11-10T03:00")
    pay(store, begin_night(store, 1, Job("another", "month")), "a")
    pay(store, begin_night(store, 2, Job(MONTH.name)), "b")
    claimed = claim(store, "cde", **begin_night(store, 3), budget=BUDGET)  # type: ignore[arg-type]
    assert (len(claimed.granted), len(claimed.refused)) == (2, 1)


def test_runs_of_one_job_that_race_stay_within_the_budget(store_url: str, clock: Clock) -> None:
    """In scopes of their own, each with a connection of its own; every claim of every run is one of a race."""
    clock.now = at("2026-11-10T03:00")
    runs, budget = 4, 10 * PRICE
    stores = [Store.open(store_url, clock=clock, patience=60) for _ in range(runs)]
    admitted: list[int] = []
    start = threading.Barrier(runs)

    def ask(number: int) -> None:
        store, night = stores[number], begin_night(stores[number], number)
        start.wait()
        for count in range(10):
            found = claim(store, [(f"{number}/{count}",)], **night, budget=budget, lease=10 * LEASE)  # type: ignore[arg-type]
            admitted.extend(one.request for one in found.granted)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(runs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(admitted) == 10
    assert (booked := stores[0].runs.booked_now(MONTH)) is not None
    assert booked.reserved == budget
    for store in stores:
        store.close()
