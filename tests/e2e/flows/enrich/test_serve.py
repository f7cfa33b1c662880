"""`flow.serve(…)`, Prefect's way without pool and worker, runs the flow as a deployment."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.growing_worlds import World, table

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient

PROGRAM = """
from twothirds.flows.enrich.flow import enrich_flow
enrich_flow.serve(name="nightly")
"""


def until(found: Any, seconds: float = 120.0) -> Any:
    end = time.monotonic() + seconds
    while not (result := found()):
        assert time.monotonic() < end
        time.sleep(0.5)
    return result


@pytest.mark.slow
def test_a_served_enrichment_labels_what_is_new(prefect_client: SyncPrefectClient, tmp_path: Path) -> None:
    from prefect.exceptions import ObjectNotFound

    world = World(tmp_path / "world", 6)
    settings = {"dataset": world.spec, "features": world.features, "oracle": "simulated"}
    settings |= {"store": str(world.folder / "store.sqlite"), "out": str(world.folder / "out")}
    with (tmp_path / "log").open("w") as log:
        server = subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=log, stderr=log, cwd=tmp_path)

    def deployment() -> Any:
        try:
            return prefect_client.read_deployment_by_name("enrich/nightly")
        except ObjectNotFound:
            assert server.poll() is None, (tmp_path / "log").read_text()
            return None

    try:
        served = until(deployment)
        run = prefect_client.create_flow_run_from_deployment(served.id, parameters={"settings": settings})

        def ended() -> Any:
            state = prefect_client.read_flow_run(run.id).state
            return state if state is not None and state.is_final() else None

        state = until(ended)
        assert state.is_completed(), f"{state.message}\n{(tmp_path / 'log').read_text()}"
    finally:
        server.terminate()
        server.wait(30)
    assert len(table(world)) == 6
