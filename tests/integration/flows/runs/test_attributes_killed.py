"""`attributes RUN --yes` that is killed and repeated ends like one that was left alone, and pays for nothing twice."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from flows.__main__ import main
from flows.runs import attributes
from reports.curation import read_log
from reports.finished_run import Run
from store import Store
from tests.support.fake_openai import FakeModel, FakeOpenAI
from tests.support.killed import AFTER_ANSWERS, AT_CHANGE, kill_flows
from tests.support.postgres import PostgresServer
from tests.support.valued_worlds import HAIR, TOP, ValuedWorld

PRICE_MICRO = 1000
ORACLE = "simulated?latency=0.01&price=0.001&flip=0.06&width=4"


def run_of(folder: Path, oracle: str, store: str = "") -> Run:
    return ValuedWorld(folder, n=40).run(oracle=oracle, store=store or str(folder / "store.sqlite"))


def undisturbed(folder: Path, oracle: str) -> tuple[pd.DataFrame, int]:
    """The attributes, and how many answers were paid for."""
    run = run_of(folder, oracle)
    assert attributes(run, confirmed=True).data["done"]
    with Store.open(str(folder / "store.sqlite")) as store:
        return Run(run.folder).attributes, sum(line.paid_calls for line in store.costs.lines())


@pytest.mark.parametrize("often", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["once", "often"])
def test_nothing_is_lost_or_asked_twice(
    tmp_path: Path, postgres: PostgresServer, capsys: pytest.CaptureFixture[str], often: bool
) -> None:
    """Killed among the names, among the values and before its change is written, or only once; on PostgreSQL."""
    expected, total = undisturbed(tmp_path / "calm", ORACLE)
    url = postgres.fresh_schema()
    run = run_of(tmp_path / "stormy", ORACLE, url)
    command = ["attributes", str(run.folder), "--yes", "--json"]
    moments = [(AFTER_ANSWERS, "1", "0"), (AFTER_ANSWERS, str(total // 2), "0.005"), (AT_CHANGE, "before")]
    for killed_by in moments if often else moments[1:2]:
        kill_flows(*command, killed_by=killed_by)
        assert read_log(run.folder) == [], "a change is there as a whole or not at all"
        assert Run(run.folder).attributes.columns.empty
    with Store.open(url) as store:
        assert total // 2 <= store.answers.count() <= total
    kill_flows(*command, killed_by=(AT_CHANGE, "after"))
    pd.testing.assert_frame_equal(Run(run.folder).attributes, expected)
    assert main(command) == 0
    assert json.loads(capsys.readouterr().out)["families"] == [], "they are made already"
    assert [entry.action for entry in read_log(run.folder)] == ["attributes"]
    with Store.open(url) as store:
        assert store.check.problems() == []
        lines = store.costs.lines()
        assert sum(line.paid_calls for line in lines) == total
        assert sum(line.paid for line in lines) == total * PRICE_MICRO


def test_a_paid_server_is_not_asked_again_for_what_was_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with FakeOpenAI(FakeModel([*HAIR, *TOP])) as server:
        oracle = f"openai:gpt-4o-mini?base_url={server.base_url}&price=1,1&concurrency=2"
        run = run_of(tmp_path / "world", oracle)
        server.abilities = replace(server.abilities, latency=0.3)  # what arrived is committed before more arrives
        kill_flows("attributes", str(run.folder), "--budget", "20", killed_by=(AFTER_ANSWERS, "12", "0"))
        charged = len(server.book)
        server.abilities = replace(server.abilities, latency=0.0)
        with Store.open(str(tmp_path / "world" / "store.sqlite")) as store:
            committed = store.answers.count()
        assert 12 <= committed <= charged
        done = attributes(Run(run.folder), budget="20")
        assert {one["name"] for one in done.data["families"]} == {"hair colour", "top colour"}
        again = len(server.book) - charged
    with Store.open(str(tmp_path / "world" / "store.sqlite")) as store:
        assert store.check.problems() == []
        lines = store.costs.lines()
        answers = store.answers.count()
        assert sum(line.requests for line in lines) == committed + again == answers, "a request for each answer"
        in_flight = charged - committed
        assert in_flight <= 2
        assert sum(line.unknown_calls for line in lines) >= in_flight, "what was on its way stays booked"
        kept = committed - sum(line.kind == "probe" for line in lines)
        assert sum(line.cached_calls for line in lines) == kept
