"""A deployment asks people: it suspends, no process waits, and it goes on once they have answered."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pandas as pd
import pytest
from prefect import Flow
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.client.schemas.objects import FlowRun

from tests.support.people import TruthfulPerson
from tests.support.review_site import free_port, start_page
from twothirds.reports.finished_run import Run
from twothirds.sources.load import load_dataset
from twothirds.store import Store

ROOT = Path(__file__).parents[4]
ZOO = ROOT / "datasets" / "zoo"
POOL = "people"


@pytest.fixture
def worker(prefect_url: str, prefect_client: SyncPrefectClient) -> Iterator[subprocess.Popen[bytes]]:
    prefect_client.create_work_pool(WorkPoolCreate(name=POOL, type="process"), overwrite=True)
    process = subprocess.Popen(
        [sys.executable, "-m", "prefect", "worker", "start", "--pool", POOL, "--type", "process"],
        cwd=ROOT,
        env=os.environ | {"PREFECT_API_URL": prefect_url, "PREFECT_WORKER_QUERY_SECONDS": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    yield process
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:  # Prefect's worker takes its time on a busy machine; how it ends is not ours
        process.kill()
        process.wait()


def deployed(flow: Flow[..., Any], entrypoint: str, settings: dict[str, Any]) -> UUID:
    source = flow.from_source(source=str(ROOT), entrypoint=entrypoint)
    assert isinstance(source, Flow)
    made = source.deploy(
        name=f"people-{uuid4()}",
        work_pool_name=POOL,
        parameters={"settings": settings},
        job_variables={"env": {"PYTHONPATH": str(ROOT)}, "working_dir": str(ROOT)},
        build=False,
        push=False,
        print_next_steps=False,
    )
    assert isinstance(made, UUID)
    return made


def settings_in(folder: Path, **more: Any) -> dict[str, Any]:
    return {"dataset": str(ZOO), "oracle": "human:zoo", "store": str(folder / "store.sqlite"), **more}


@contextmanager
def page_at_work(store_url: str) -> Iterator[None]:
    """The page, as a person starts it: it is what resumes the runs."""
    page = start_page(store_url, free_port())
    try:
        yield
    finally:
        page.kill()
        page.communicate()


def wait_until(prefect_client: SyncPrefectClient, run_id: UUID, wanted: Callable[[FlowRun], bool]) -> FlowRun:
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        run = prefect_client.read_flow_run(run_id)
        if wanted(run):
            return run
        assert run.state is not None
        assert run.state.name not in ("Failed", "Crashed", "Waiting"), run.state
        time.sleep(0.3)
    raise AssertionError(f"the run stayed {run.state}")


def is_suspended(run: FlowRun) -> bool:
    return run.state is not None and run.state.is_paused()


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("worker")
def test_a_deployment_suspends_twice_and_is_resumed_twice_by_the_answers(
    prefect_client: SyncPrefectClient, tmp_path: Path
) -> None:
    from twothirds.flows.discover.flow import discover_flow

    settings = settings_in(tmp_path, queries=1, out=str(tmp_path / "run"))
    deployment = deployed(discover_flow, "flows/discover/flow.py:discover_flow", settings)
    made = prefect_client.create_flow_run_from_deployment(deployment)
    dataset = load_dataset(str(ZOO))
    with Store.open(str(tmp_path / "store.sqlite")) as store, page_at_work(store.name):
        ann = TruthfulPerson(store.queue, "ann", dataset)
        for questions in (1, len(dataset.examples)):  # a comparison, then its labels
            wait_until(prefect_client, made.id, lambda run: is_suspended(run) and bool(store.queue.records.waiting()))
            assert len(store.queue.records.waiting()) == questions
            assert nobody_works_on(str(made.id)), "no process waits in between"
            while ann.answer_page():
                pass
        wait_until(prefect_client, made.id, lambda run: run.state is not None and run.state.is_completed())
        states = [state.name for state in prefect_client.read_flow_run_states(made.id)]
    assert states.count("Suspended") == 2
    assert states.count("Resuming") == 2
    found = Run(tmp_path / "run")
    assert found.summary.features == 1
    assert found.summary.truth is not None
    assert found.summary.truth.mean_balanced_accuracy == 1.0


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("worker")
def test_an_enrichment_that_proposes_suspends_and_is_resumed_by_the_answers(
    prefect_client: SyncPrefectClient, tmp_path: Path
) -> None:
    from twothirds.flows.enrich.flow import enrich_flow

    table = tmp_path / "table"
    enriching = settings_in(tmp_path, features="milk; tail", out=str(table))
    proposing = settings_in(tmp_path, features="milk; tail", out=str(table), propose=2)
    dataset = load_dataset(str(ZOO))
    with Store.open(str(tmp_path / "store.sqlite")) as store, page_at_work(store.name):
        ann = TruthfulPerson(store.queue, "ann", dataset)
        for flow, entrypoint, settings, waits in (
            (enrich_flow, "flows/enrich/flow.py:enrich_flow", enriching, 1),
            (enrich_flow, "flows/enrich/flow.py:enrich_flow", proposing, 4),
        ):
            made = prefect_client.create_flow_run_from_deployment(deployed(flow, entrypoint, settings))
            for _ in range(waits):  # each comparison, and each feature's labels
                wait_until(
                    prefect_client, made.id, lambda run: is_suspended(run) and bool(store.queue.records.waiting())
                )
                assert nobody_works_on(str(made.id)), "no process waits in between"
                while ann.answer_page():
                    pass
            wait_until(prefect_client, made.id, lambda run: run.state is not None and run.state.is_completed())
            states = [state.name for state in prefect_client.read_flow_run_states(made.id)]
            assert states.count("Suspended") == states.count("Resuming") == waits, states
    assert dataset.truth is not None
    milk = dataset.truth.matrix[:, dataset.truth.columns.index("milk")]
    assert pd.read_parquet(table / "labels.parquet")["milk"].tolist() == milk.astype(bool).tolist()
    proposals = pd.read_csv(table / "proposals.csv")
    assert 1 <= len(proposals) <= 2
    assert not {"milk", "tail"} & set(proposals["name"])


def nobody_works_on(run_id: str) -> bool:
    """No process of this machine was started for the run, once the one that suspended it has ended."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        working = False
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                working |= run_id.encode() in (folder / "environ").read_bytes()
            except OSError:
                continue
        if not working:
            return True
        time.sleep(0.2)
    return False
