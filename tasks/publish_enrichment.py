"""Publish an enrichment to Prefect: what changed and how features drifted, and an event where money ran out."""

from __future__ import annotations

from typing import Any

from prefect import task
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.events import emit_event

BUDGET_EVENT = "twothirds.budget.exhausted"


@task(name="publish", cache_policy=NO_CACHE, persist_result=False)
def publish_enrichment(key: str, dataset: str, summary: dict[str, Any], lines: list[str]) -> None:
    text = "\n".join(f"- {line}" for line in lines)
    create_markdown_artifact(markdown=f"### {dataset}, version {summary['version']}\n\n{text}", key=key)
    create_table_artifact(table=summary["drift"], key=f"{key}-drift", description=f"Shares of features of {dataset}")
    if summary["stopped_because"] == "budget":
        emit_event(
            BUDGET_EVENT,
            resource={"prefect.resource.id": f"twothirds.dataset.{dataset}", "prefect.resource.name": dataset},
            payload={"message": summary["message"]},
        )
