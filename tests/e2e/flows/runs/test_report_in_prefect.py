"""A run read in Prefect's own page: table, progress, picture and report."""

from __future__ import annotations

import base64
import os
from pathlib import Path

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey

from twothirds.flows.cli.app import main

ROOT = Path(__file__).parents[4]


def test_discover_ends_with_its_report_and_prefect_shows_the_same_numbers(prefect_url: str, tmp_path: Path) -> None:
    options = [
        "--oracle",
        "simulated",
        "--queries",
        "3",
        "--store",
        str(tmp_path / "store.sqlite"),
        "--out",
        str(tmp_path / "run"),
    ]
    assert main(["discover", str(ROOT / "datasets" / "zoo"), *options]) == 0
    assert (tmp_path / "run" / "report.html").stat().st_size > 10_000
    with SyncPrefectClient(prefect_url, auth_string=os.environ["PREFECT_API_AUTH_STRING"]) as client:
        of_zoo = ArtifactFilter(key=ArtifactFilterKey(like_="features-zoo%"))  # other tests have made hundreds
        made = {artifact.key: artifact for artifact in client.read_artifacts(artifact_filter=of_zoo)}
    assert made["features-zoo"].type == "table"
    picture, report = str(made["features-zoo-curves"].data), made["features-zoo-report"]
    content = picture.removeprefix("data:image/svg+xml;base64,")
    assert base64.b64decode(content).startswith(b"<svg")
    assert report.type == "markdown"
    assert f"![how they were found]({picture})" in str(report.data)
    assert "file:" not in str(report.data)
