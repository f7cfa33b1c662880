"""Parts of one enrichment that several processes label: each writes what it found, and the last one joins them.

One enrichment over several Prefect workers: a parent starts the parts on a work pool and waits for all of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from prefect import flow
from prefect.client.schemas.objects import FlowRun
from prefect.deployments.flow_runs import arun_deployment
from prefect.flow_runs import wait_for_flow_run

from flows.enrich.flow import SUMMARY, check
from flows.enrich.parts import locked, remove_parts
from flows.enrich.settings import EnrichSettings
from reports.label_table import read_table
from reports.run.files import RunError

PART = "enrich/enrich-part"


@flow(name="enrich-sharded", persist_result=False)
async def enrich_sharded_flow(settings: EnrichSettings, shards: int = 4, deployment: str = PART) -> dict[str, Any]:
    """Label what is new in so many parts at a time as there are workers. The last part to end joins them."""
    folder, _ = check(settings)
    with locked(
        folder, wait=True
    ):  # what an attempt that was given up has left must not be taken for a part of this one
        remove_parts(folder, read_table(folder).meaning.version + 1)
    parts = [settings.model_copy(update={"shard": f"{place}/{shards}"}) for place in range(1, shards + 1)]
    started = [
        await arun_deployment(deployment, parameters={"settings": part.model_dump(mode="json")}, timeout=0)
        for part in parts
    ]
    ended: list[FlowRun] = [await wait_for_flow_run(run.id, timeout=None) for run in started]
    failed = [run for run in ended if run.state is None or not run.state.is_completed()]
    if failed:
        raise RunError(
            f"{len(failed)} of {shards} parts did not complete and the table is as it was: run it again, for what was "
            f"answered is kept (the first: {failed[0].name}, {_said(failed[0])})"
        )
    summary: dict[str, Any] = json.loads((Path(folder) / SUMMARY).read_text(encoding="utf-8"))
    return summary


def _said(run: FlowRun) -> str:
    return str(run.state.message or run.state.name) if run.state else "without a state"
