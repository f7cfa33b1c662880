"""A flow run ends once: as its state, its exit status and the metrics say; its settings travel without its caller."""

from __future__ import annotations

import threading
from pathlib import Path

import cloudpickle
import pytest
from prefect import tags
from prefect.context import TagsContext

from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.flows.endings import SERVER_DOWN, TABLE_BUSY
from twothirds.flows.events import Events
from twothirds.flows.prefect_api import runs
from twothirds.flows.prefect_api.runs import Caller, flow_run
from twothirds.models import ServerAway
from twothirds.reports.run import TableBusy

SETTINGS = DiscoverSettings(dataset="shapes.csv", oracle="simulated")


@pytest.mark.parametrize(
    ("error", "status"), [(TableBusy("another run"), TABLE_BUSY.status), (ServerAway("away"), SERVER_DOWN.status)]
)
def test_an_attempt_that_will_be_tried_again_writes_its_own_status(
    error: Exception, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "twothirds.prom"
    monkeypatch.setenv("TWOTHIRDS_METRICS", str(file))
    monkeypatch.setattr(runs, "_tries_left", lambda: True)
    settings = SETTINGS.model_copy(update={"store": str(tmp_path / "store.sqlite")})
    with pytest.raises(type(error)), flow_run(settings):
        raise error
    lines = file.read_text(encoding="utf-8").splitlines()
    assert f'twothirds_exit_status{{flow="",dataset="shapes"}} {status}' in lines


def test_settings_go_to_the_workers_of_a_cluster_without_who_started_the_run() -> None:
    terminal = threading.RLock()  # as a console holds one: it cannot travel
    caller = Caller(Events(lambda _: terminal.release()), prepared=terminal)
    arrived = cloudpickle.loads(cloudpickle.dumps(SETTINGS.called_by(caller)))
    assert arrived.model_dump() == SETTINGS.model_dump()
    assert arrived.caller.prepared is None


def test_its_tags_are_not_those_of_its_tasks() -> None:
    """Of each task with tags the server would be asked whether it may run."""
    caller = Caller()
    caller.executor.lost = True
    with tags("twothirds"):
        with flow_run(SETTINGS.called_by(caller)):
            assert TagsContext.get().current_tags == set()
        assert TagsContext.get().current_tags == {"twothirds"}
