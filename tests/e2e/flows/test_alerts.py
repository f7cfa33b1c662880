"""The alerts of automations.yaml fire for real: nights that go wrong in each way, and a listener that hears of it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from prefect import tags
from prefect.blocks.notifications import CustomWebhookNotificationBlock
from prefect.client.orchestration import SyncPrefectClient
from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings

from tests.support.growing_worlds import World
from tests.support.webhook import listening
from twothirds.flows.enrich.flow import enrich_flow
from twothirds.flows.enrich.settings import EnrichSettings
from twothirds.flows.prefect_api.executor import send_history

ROOT = Path(__file__).parents[3]
A_DAY, SOON = "within: 90000", "within: 10"  # the least that Prefect allows
SILENCE, SHORTER = "within: 720", "within: 75"
HEARTBEAT_SECONDS = 30  # the least that Prefect allows


class Changing(World):
    """From the forty-first row on everything is red, round and heavy."""

    def truth(self, name: str) -> list[int]:
        return [1] * len(self.traits) if int(name[1:]) >= 40 else super().truth(name)


@pytest.fixture
def heard(prefect_url: str) -> Iterator[list[str]]:
    """What they send to a chat program, on a server that has them."""
    password = os.environ["PREFECT_API_AUTH_STRING"]
    settings = {PREFECT_API_URL: prefect_url, PREFECT_API_AUTH_STRING: password}
    with (
        listening() as (address, heard),
        temporary_settings(settings),
        SyncPrefectClient(prefect_url, auth_string=password) as client,
    ):
        block = CustomWebhookNotificationBlock(name="ear", url=address, json_data={"text": "{{subject}} {{body}}"})
        text = (ROOT / "automations.yaml").read_text(encoding="utf-8")
        for shown, shorter in ((A_DAY, SOON), (SILENCE, SHORTER)):
            assert shown in text
            text = text.replace(shown, shorter)
        text = text.replace("BLOCK_ID", str(block.save("ear", overwrite=True)))
        made = [client._client.post("/automations/", json=one) for one in yaml.safe_load(text)["automations"]]
        assert [one.status_code for one in made] == [201] * 6, [one.text for one in made]
        try:
            yield heard
        finally:
            for one in made:
                client._client.delete(f"/automations/{one.json()['id']}")


HEARD = {
    "a budget is used up": "raise --budget",
    "a run failed": "DatasetMissing",
    "the share of a feature has moved": "red, round, heavy",
    "answers are refused": "could not be used",
    "no success for a day": "has had no run",
}


class Nights:
    """Enrichments of which each ends in another way."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._world, self._number = folder, Changing(folder / "world", 40), 0

    def dear_and_missing(self) -> None:
        self._number += 1
        self._night("dear", oracle=f"simulated?price=0.01&seed={self._number}", budget="0.05")
        self._night("gone", dataset=str(self._folder / "gone.csv"))
        send_history()

    def all(self) -> None:
        self._night("moved")
        self._world.add(40)
        self._night("moved")
        self._night("refused", oracle=f"simulated?refuse=0.2&seed={self._number}")
        self.dear_and_missing()

    def _night(self, out: str, **changed: str) -> None:
        given = {"dataset": self._world.spec, "features": self._world.features, "oracle": "simulated"}
        given |= {"out": str(self._folder / f"{out}{self._number}"), "store": str(self._folder / "store.sqlite")}
        with tags("twothirds"):  # as commands and deployments have it
            enrich_flow(EnrichSettings.model_validate(given | changed), return_state=True)


def test_a_budget_and_a_failure_are_heard(tmp_path: Path, heard: list[str]) -> None:
    assert_heard(heard, list(HEARD)[:2], Nights(tmp_path).dear_and_missing, 10)


@pytest.mark.slow
def test_every_alert_is_heard(tmp_path: Path, heard: list[str]) -> None:
    assert_heard(heard, list(HEARD), Nights(tmp_path).all, 40)


def assert_heard(heard: list[str], alerts: list[str], nights: Callable[[], None], seconds: float) -> None:
    """A server may have yet to learn of the automations when the first nights end: then there are more of them."""

    def missing() -> list[str]:
        return [alert for alert in alerts if not any(alert in one and HEARD[alert] in one for one in heard)]

    for _ in range(4):
        nights()
        deadline = time.monotonic() + seconds
        while missing() and time.monotonic() < deadline:
            time.sleep(0.3)
        if not missing():
            return
    raise AssertionError(f"{missing()} not heard: {heard}")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_killed_run_crashes_and_is_heard_while_one_that_is_silent_goes_on(
    tmp_path: Path, prefect_url: str, heard: list[str]
) -> None:
    """Each sends its heartbeats every 30 s, and the silent one waits 240 s for its only answers."""
    killed, silent = (Run(tmp_path / name, latency=240) for name in ("killed", "silent"))
    try:
        until(lambda: (killed.state(prefect_url), silent.state(prefect_url)) == ("Running", "Running"), 60)
        time.sleep(1.5 * HEARTBEAT_SECONDS)  # not at its first heartbeat
        killed.process.kill()
        until(lambda: killed.state(prefect_url) == "Crashed", 140)
        assert silent.state(prefect_url) == "Running", "it says nothing, but its heartbeats come"
        until(lambda: any("a run failed" in one and "no heartbeat" in one for one in heard), 30)
        assert silent.process.wait(300) == 0
        until(lambda: silent.state(prefect_url) == "Completed", 30)
    finally:
        for run in (killed, silent):
            run.process.kill()
            run.process.wait()
    assert len([one for one in heard if "no heartbeat" in one]) == 1


class Run:
    """An enrichment in a process of its own."""

    def __init__(self, folder: Path, latency: int) -> None:
        world, self._out = World(folder, 4), str(folder / "out")
        words = ["enrich", world.spec, "--features", "red", "--oracle", f"simulated?latency={latency}&width=8"]
        words += ["--out", self._out, "--store", str(folder / "store.sqlite")]
        own = {"PREFECT_FLOWS_HEARTBEAT_FREQUENCY": str(HEARTBEAT_SECONDS)}
        with (folder / "log").open("w") as log:
            command = [sys.executable, "-m", "twothirds", *words]
            self.process = subprocess.Popen(command, cwd=ROOT, env=os.environ | own, stdout=log, stderr=log)

    def state(self, url: str) -> str:
        with SyncPrefectClient(url, auth_string=os.environ["PREFECT_API_AUTH_STRING"]) as client:
            runs = [run for run in client.read_flow_runs(limit=200) if run.parameters["settings"]["out"] == self._out]
        return str(runs[0].state_name) if runs else ""


def until(happened: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(1)
