"""What a run publishes to Prefect as artifacts."""

from __future__ import annotations

import time
from typing import Any
from uuid import UUID

from prefect import task
from prefect.artifacts import (
    create_image_artifact,
    create_link_artifact,
    create_markdown_artifact,
    create_progress_artifact,
    create_table_artifact,
    update_progress_artifact,
)
from prefect.cache_policies import NO_CACHE

from twothirds.reports.page import plain_markdown

UPDATE_SECONDS = 5.0  # between two updates of a progress artifact


@task(name="publish", task_run_name="publish {key}", cache_policy=NO_CACHE, persist_result=False)
def publish(
    key: str,
    rows: list[dict[str, Any]],
    description: str,
    *,
    picture: str | None = None,
    link: str | None = None,
    report: str | None = None,
) -> None:
    """The table of features, the curves as an image, and the report: a link to where it is served, or as Markdown."""
    description = plain_markdown(description)
    create_table_artifact(table=rows, key=key, description=description)
    if picture:
        create_image_artifact(image_url=picture, key=f"{key}-curves", description=f"{description}: how they were found")
    if link:
        create_link_artifact(link=link, link_text="report", key=f"{key}-report", description=description)
    elif report:
        create_markdown_artifact(markdown=report, key=f"{key}-report", description=description)


class ProgressArtifact:
    """The share of the queries that are done, as one artifact of the flow run."""

    def __init__(self, description: str) -> None:
        created = create_progress_artifact(progress=0.0, description=description)
        self._id = created if isinstance(created, UUID) else None
        self._updated = time.monotonic()

    def update(self, share: float, description: str) -> None:
        """At most every UPDATE_SECONDS, for each update is a request that the loop waits for; the last one always."""
        if self._id is not None and (share >= 1 or time.monotonic() - self._updated > UPDATE_SECONDS):
            update_progress_artifact(self._id, progress=round(100 * share, 1), description=description)
            self._updated = time.monotonic()


@task(name="publish enrichment", task_run_name="publish enrichment {key}", cache_policy=NO_CACHE, persist_result=False)
def publish_enrichment(key: str, dataset: str, summary: dict[str, Any], lines: list[str]) -> None:
    """What changed, and how the shares of features drifted. Lines and names may hold ids and texts of the data."""
    text = "\n".join(f"- {plain_markdown(line)}" for line in lines)
    name = plain_markdown(dataset)
    create_markdown_artifact(markdown=f"### {name}, version {summary['version']}\n\n{text}", key=key)
    create_table_artifact(table=summary["drift"], key=f"{key}-drift", description=f"Shares of features of {name}")
