"""twothirds: `twothirds enrich`, or with the variant `plain` the same enrichment without Prefect."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks.peers.job import MODEL, PRICE, Job, Labels, given_job
from twothirds.discovery import UNKNOWN
from twothirds.reports.label_table import LabelTable


def label(job: Job) -> str:
    """Why it stopped, if it did not finish."""
    oracle = f"openai:{MODEL}?base_url={job.base_url}&price={PRICE}&concurrency={job.concurrency}&retry_delay=0.05"
    places = {"store": f"{job.state}/store.sqlite", "out": f"{job.state}/enriched"}
    if job.variant == "plain":
        from twothirds.flows.enrich.flow import enrich_with
        from twothirds.flows.enrich.settings import EnrichSettings

        budget = None if job.budget is None else Decimal(str(job.budget))
        terms = {"dataset": job.dataset, "features": job.features, "oracle": oracle, "budget": budget}
        return str(enrich_with(EnrichSettings(**terms, **places)).stopped_because)
    command = [sys.executable, "-m", "twothirds", "enrich", job.dataset, "--features", job.features, "--oracle", oracle]
    money = ["--yes"] if job.budget is None else ["--budget", str(job.budget)]
    options = [word for name, value in places.items() for word in (f"--{name}", value)]
    done = subprocess.run([*command, *options, *money], check=False, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else f"status {done.returncode}: {done.stderr.strip()[-300:]}"


def read(job: Job) -> Labels:
    path = Path(job.state) / "enriched" / "labels.parquet"
    if not path.exists():
        return {}
    table = LabelTable.from_arrow(pq.read_table(path))
    places = {feature.name: place for place, feature in enumerate(table.features)}
    values = {field.field: table.value[places[field.name]] for field in job.fields}
    return {
        name: {field: None if value[row] == UNKNOWN else bool(value[row]) for field, value in values.items()}
        for row, name in enumerate(table.ids)
    }


if __name__ == "__main__":
    job = given_job()
    why = label(job)
    job.done(read(job), note=why)
