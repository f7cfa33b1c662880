"""The database goes away in the middle of an enrichment and comes back: the run waits, goes on and loses nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from flows.enrich.flow import enrich_with
from flows.enrich.settings import EnrichSettings
from store import Store
from tests.support.growing_worlds import World
from tests.support.postgres import PostgresMissing, PostgresServer, start_postgres


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """One of its own, for others would miss theirs."""
    try:
        own = start_postgres()
    except PostgresMissing as missing:
        pytest.skip(str(missing))
    yield own
    own.close()


def test_a_restart_of_postgresql_is_waited_for(server: PostgresServer, tmp_path: Path) -> None:
    world = World(tmp_path / "world", 100)
    url = server.fresh_schema()
    settings = EnrichSettings(
        dataset=world.spec,
        features=world.features,
        oracle="simulated?latency=0.1&width=8&price=0.001",
        store=url,
        out=str(world.folder / "out"),
    )
    away: list[float] = []

    def restart() -> None:
        with Store.open(url) as watching:
            while sum(row.paid_calls for row in watching.costs.lines()) < 30:
                time.sleep(0.05)
        began = time.monotonic()
        server.stop()
        time.sleep(1.0)
        server.start()
        away.append(time.monotonic() - began)

    thread = threading.Thread(target=restart)
    thread.start()
    summary = enrich_with(settings).to_json()
    thread.join()
    assert away
    assert (summary["added"], summary["stopped_because"]) == (100, "done")
    labels = pd.read_parquet(world.folder / "out" / "labels.parquet").set_index("id")[list(world.traits)]
    assert (labels == pd.read_csv(world.folder / "truth.csv").set_index("id")).all(axis=None)
    with Store.open(url) as store:
        assert store.check.problems() == []
        assert store.answers.count() == 300
        assert sum(row.paid for row in store.costs.lines()) <= 1000 * (300 + 2 * 16)
