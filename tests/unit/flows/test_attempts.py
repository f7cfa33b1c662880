"""Each attempt of a deployment's run writes its own exit status to the metrics, also one that will be tried again."""

from __future__ import annotations

from pathlib import Path

import pytest

from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.flows.endings import SERVER_DOWN, TABLE_BUSY
from twothirds.flows.prefect_api import runs
from twothirds.flows.prefect_api.history import History
from twothirds.models import ServerAway
from twothirds.reports.run import TableBusy


@pytest.mark.parametrize(
    ("error", "status"), [(TableBusy("another run"), TABLE_BUSY.status), (ServerAway("away"), SERVER_DOWN.status)]
)
def test_an_attempt_that_will_be_tried_again_writes_its_own_status(
    error: Exception, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "twothirds.prom"
    monkeypatch.setenv("TWOTHIRDS_METRICS", str(file))
    monkeypatch.setattr(runs, "_tries_left", lambda: True)
    settings = DiscoverSettings(dataset="shapes.csv", oracle="simulated", store=str(tmp_path / "store.sqlite"))

    def work(_: History) -> None:
        raise error

    with pytest.raises(type(error)):
        runs.run_in_flow(work, settings)
    lines = file.read_text(encoding="utf-8").splitlines()
    assert f'twothirds_exit_status{{flow="",dataset="shapes"}} {status}' in lines
