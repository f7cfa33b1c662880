"""How runs end, as an operator sees it in Prefect: states, events and log lines of deployments' flows."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import LogFilter, LogFilterFlowRunId
from prefect.client.schemas.objects import State

from tests.support.fake_openai import FakeOpenAI
from tests.support.growing_worlds import World
from twothirds.flows.cli.app import main
from twothirds.flows.discover.flow import discover_flow
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.flows.endings import BUDGET, DATASET_MISSING, MACHINE, SERVER_DOWN, TABLE_BUSY, WAITING
from twothirds.flows.enrich.flow import enrich_flow, nightly_flow
from twothirds.flows.enrich.settings import EnrichSettings
from twothirds.flows.prefect_api.executor import send_history
from twothirds.reports.run import TableBusy, locked
from twothirds.store import Store
from twothirds.store.errors import explained
from twothirds.store.requests import Requests
from twothirds.tasks import label_batch


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "world", 12)


def of_table(world: World, **changed: Any) -> EnrichSettings:
    given = {"dataset": world.spec, "features": world.features, "oracle": "simulated"}
    places = {"store": str(world.folder / "store.sqlite"), "out": str(world.folder / "out")}
    return EnrichSettings.model_validate(given | places | changed)


def ended(flow: Any, settings: Any) -> State[Any]:
    state: State[Any] = flow(settings, return_state=True)
    send_history()
    return state


def run_of(state: State[Any]) -> UUID:
    assert state.state_details.flow_run_id is not None
    return state.state_details.flow_run_id


def logged(prefect_client: SyncPrefectClient, run: UUID, wanted: str) -> str:
    """The log of a flow run and its tasks, once this line has arrived."""
    of_run = LogFilter(flow_run_id=LogFilterFlowRunId(any_=[run]))
    for _ in range(100):
        lines = "\n".join(line.message for line in prefect_client.read_logs(of_run))
        if wanted in lines:
            return lines
        time.sleep(0.1)
    raise AssertionError(f"{wanted!r} is not in the log: {lines}")


def events(prefect_client: SyncPrefectClient, name: str, run: UUID) -> list[dict[str, Any]]:
    wanted = {"filter": {"event": {"name": [name]}}, "limit": 50}
    for _ in range(100):
        found = prefect_client._client.post("/events/filter", json=wanted).json()["events"]
        if mine := [one for one in found if one["payload"].get("run") == str(run)]:
            return mine
        time.sleep(0.1)
    return []


def test_a_run_logs_start_plan_skipped_cost_and_end(prefect_client: SyncPrefectClient, world: World) -> None:
    world.texts["e000005"] = ""  # cannot be labelled
    world.write()
    state = ended(enrich_flow, of_table(world, oracle="simulated?price=0.001"))
    log = logged(prefect_client, run_of(state), "ends as Completed")
    for wanted in ("starts: ", "plan: 3 features", "skipped e000005: ", "33 labels asked", "33 questions asked"):
        assert wanted in log, log
    assert events(prefect_client, "twothirds.run.completed", run_of(state))
    settings = {"dataset": world.spec, "oracle": "simulated?price=0.001", "queries": 2, "votes": 1}
    places = {"store": str(world.folder / "store.sqlite"), "out": str(world.folder / "run")}
    state = ended(discover_flow, DiscoverSettings.model_validate(settings | places))
    log = logged(prefect_client, run_of(state), "ends as Completed")
    for wanted in ("plan: 2 queries", "estimate: likely", "1 of 1 answered", " votes on ", "cost: "):
        assert wanted in log, log


def test_a_used_up_budget_is_its_own_state_status_and_event(
    prefect_client: SyncPrefectClient, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    dear = {"oracle": "simulated?price=0.01", "budget": "0.05"}
    state = ended(nightly_flow, of_table(world, **dear))
    assert (state.type.value, state.name) == (BUDGET.type, BUDGET.name)
    assert "raise --budget" in (state.message or "")
    [event] = events(prefect_client, BUDGET.event, run_of(state))
    assert "raise --budget" in event["payload"]["message"]
    assert any(one["id"] == f"prefect.flow-run.{run_of(state)}" for one in map(_resource, event["related"]))
    words = ["enrich", world.spec, "--features", world.features, "--oracle", dear["oracle"], "--budget", "0.05"]
    places = ["--store", str(world.folder / "other.sqlite"), "--out", str(world.folder / "other")]
    assert main([*words, *places, "--log", "json"]) == BUDGET.status
    printed = capsys.readouterr()
    assert "raise --budget" in printed.out
    said = [json.loads(line)["message"] for line in printed.err.splitlines()]
    for wanted in ("starts: ", "plan: 3 features", f"ends as {BUDGET.name}"):
        assert sum(line.startswith(wanted) for line in said) == 1, said


def _resource(related: dict[str, str]) -> dict[str, str]:
    return {"id": related["prefect.resource.id"]}


def test_waiting_for_people_pauses_every_kind_of_run(
    prefect_client: SyncPrefectClient, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not cancelled, not failed, not tried again."""
    asked = of_table(world, oracle="human:q", features="red: It is red.")
    state = ended(nightly_flow.with_options(retry_delay_seconds=1), asked)
    assert (state.type.value, state.name) == (WAITING.type, WAITING.name)
    assert [one.name for one in prefect_client.read_flow_run_states(run_of(state))] == ["Pending", "Running", "Paused"]
    assert events(prefect_client, WAITING.event, run_of(state))
    assert (world.folder / "out" / "enrich.json").read_text().count('"stopped_because": "waiting"') == 1
    with Store.open(str(world.folder / "store.sqlite")) as store:
        [run] = store.runs.overview()
        assert run["status"] == "waiting"
        assert run["run_id"].startswith(str(run_of(state)))
    words = ["enrich", world.spec, "--features", "red: It is red.", "--oracle", "human:q"]
    assert main([*words, "--store", str(asked.store), "--out", str(asked.out)]) == WAITING.status
    assert "error" not in capsys.readouterr().err


@pytest.mark.usefixtures("prefect_client")
def test_what_is_a_state_of_the_world_has_its_state_and_no_traceback(
    prefect_client: SyncPrefectClient, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = of_table(world, dataset=str(world.folder / "gone.csv"))
    state = ended(enrich_flow, gone)
    assert (state.type.value, state.name) == (DATASET_MISSING.type, DATASET_MISSING.name)
    assert "Traceback" not in logged(prefect_client, run_of(state), "ends as DatasetMissing")
    assert events(prefect_client, DATASET_MISSING.event, run_of(state))
    words = ["enrich", str(gone.dataset), "--features", "red", "--oracle", "simulated"]
    assert main([*words, "--out", str(gone.out)]) == DATASET_MISSING.status
    assert capsys.readouterr().err.startswith("error: there is no data set")
    nobody = "openai:gpt-4o-mini?base_url=http://127.0.0.1:9/v1&price=1,1&attempts=1"
    state = ended(enrich_flow, of_table(world, oracle=nobody))
    assert (state.type.value, state.name) == (SERVER_DOWN.type, SERVER_DOWN.name)
    assert "Traceback" not in logged(prefect_client, run_of(state), "ends as ServerDown")
    with locked(world.folder / "out", "enrichment", TableBusy):
        state = ended(enrich_flow, of_table(world))
    assert (state.type.value, state.name) == (TABLE_BUSY.type, TABLE_BUSY.name)
    assert f"process {os.getpid()} on " in (state.message or "")


def test_only_what_may_get_better_is_tried_again(prefect_client: SyncPrefectClient, world: World) -> None:
    flow = nightly_flow.with_options(retry_delay_seconds=0.1)
    with locked(world.folder / "out", "enrichment", TableBusy):
        state = ended(flow, of_table(world))
    assert state.name == TABLE_BUSY.name
    states = [one.name for one in prefect_client.read_flow_run_states(run_of(state))]
    assert (states.count("AwaitingRetry"), states[-1]) == (2, TABLE_BUSY.name)
    log = logged(prefect_client, run_of(state), "ends as TableBusy")
    assert "Traceback" not in log
    assert log.count("to be tried again") == 2
    assert len(events(prefect_client, TABLE_BUSY.event, run_of(state))) == 1
    state = ended(flow, of_table(world, features="red: It is red.; red: It is blue."))
    assert state.name == "BadInput"
    assert "AwaitingRetry" not in [one.name for one in prefect_client.read_flow_run_states(run_of(state))]


@pytest.mark.usefixtures("prefect_client")
def test_a_server_that_dies_before_the_first_answer_is_down(
    server: FakeOpenAI, dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was there when it was probed, and the batches of labels find it gone."""
    monkeypatch.setattr(label_batch, "retry_delay_seconds", [0.01, 0.01])
    oracle = f"openai:gpt-4o-mini?base_url={server.base_url}&price=1,1&attempts=1&retry_delay=0.01"
    given = {"dataset": str(dataset), "features": "red: It is red.", "oracle": oracle, "budget": "1"}
    places = {"store": str(tmp_path / "store.sqlite"), "out": str(tmp_path / "out")}
    server.answers_left = 2  # what it can do
    state = ended(enrich_flow, EnrichSettings.model_validate(given | places))
    assert (state.type.value, state.name) == (SERVER_DOWN.type, SERVER_DOWN.name)


def test_a_full_disk_ends_the_run_at_once(
    prefect_client: SyncPrefectClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the batch nor the night is tried again: nobody frees space in the minutes between."""

    def fail(*_: Any) -> None:
        raise explained("answers.sqlite", sqlite3.OperationalError("database or disk is full"))

    monkeypatch.setattr(Requests, "record", fail)
    monkeypatch.setattr(label_batch, "retry_delay_seconds", [0.01, 0.01])
    flow = nightly_flow.with_options(retry_delay_seconds=0.1)
    state = ended(flow, of_table(world, oracle="simulated?price=0.001"))
    assert (state.type.value, state.name) == (MACHINE.type, MACHINE.name)
    assert "free some space on its disk and run again" in (state.message or "")
    assert "AwaitingRetry" not in [one.name for one in prefect_client.read_flow_run_states(run_of(state))]
    log = logged(prefect_client, run_of(state), "ends as MachineFull")
    assert "Traceback" not in log
    assert "Retry" not in log, "as Prefect says of a batch"
