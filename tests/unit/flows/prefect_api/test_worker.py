"""`twothirds worker`, and the names of runs that a worker starts."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from prefect.client.schemas.objects import FlowRun
from pydantic import SecretStr

from twothirds.flows.cli.app import main
from twothirds.flows.enrich.flow import enrich_flow
from twothirds.flows.enrich.settings import EnrichSettings
from twothirds.flows.prefect_api import servers
from twothirds.flows.prefect_api.runs import run_name
from twothirds.flows.prefect_api.servers import LocalServer

ROOT = Path(__file__).parents[4]
HERE = LocalServer("http://127.0.0.1:4200/api", SecretStr("twothirds:secret"))


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PREFECT_API_URL", "PREFECT_API_AUTH_STRING", "TWOTHIRDS_CLONE", "TWOTHIRDS_STORE"):
        monkeypatch.setenv(name, "")  # so that it is restored after the test
        monkeypatch.delenv(name)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    found: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda program, words: found.append([program, *words]))
    return found


def test_a_worker_knows_the_server_that_is_kept_its_password_and_the_clone(
    started: list[list[str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(servers, "kept_server", lambda *_: HERE)
    assert main(["worker", "--pool", "nights"]) == 0
    assert started == [[sys.executable, sys.executable, "-m", "prefect", "worker", "start", "--pool", "nights"]]
    assert os.environ["PREFECT_API_URL"] == HERE.url
    assert os.environ["PREFECT_API_AUTH_STRING"] == "twothirds:secret"
    assert os.environ["TWOTHIRDS_CLONE"] == str(ROOT)
    printed = capsys.readouterr()
    assert HERE.url in printed.err
    assert "this account's own store" in printed.err
    assert "secret" not in printed.err + printed.out


def test_what_the_user_has_set_wins(started: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "kept_server", lambda *_: None)
    monkeypatch.setenv("PREFECT_API_URL", "http://elsewhere:4200/api")
    monkeypatch.setenv("TWOTHIRDS_CLONE", "/opt/twothirds")
    assert main(["worker"]) == 0
    assert started
    assert (os.environ["PREFECT_API_URL"], os.environ["TWOTHIRDS_CLONE"]) == (
        "http://elsewhere:4200/api",
        "/opt/twothirds",
    )


def test_without_a_server_it_says_how_to_start_one(
    started: list[list[str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(servers, "kept_server", lambda *_: None)
    assert main(["worker"]) != 0
    assert not started
    said = capsys.readouterr().err
    assert "twothirds server" in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize(("deployment", "name"), [(None, "world-simulated"), (uuid4(), "world-simulated-2026-03-29")])
def test_a_run_of_a_deployment_carries_the_day_in_its_name(
    deployment: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Context:
        flow_run = FlowRun(
            flow_id=uuid4(), deployment_id=deployment, expected_start_time=datetime(2026, 3, 29, 3, tzinfo=UTC)
        )
        parameters = {"settings": EnrichSettings(dataset="world.csv", features="red", oracle="simulated?flip=0")}  # noqa: RUF012

    monkeypatch.setattr("twothirds.flows.prefect_api.runs.FlowRunContext.get", lambda: Context)
    assert enrich_flow.flow_run_name is run_name
    assert run_name() == name
