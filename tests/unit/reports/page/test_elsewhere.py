"""The report as Markdown for Prefect's page: pictures in it, nothing of it taken for marks, no text of an example."""

from __future__ import annotations

from pathlib import Path

import pytest

from twothirds.flows.discover.preparation import prepare
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.flows.settings import served_at
from twothirds.reports import Run
from twothirds.reports.page import markdown_of, plain_markdown


def discovered(tmp_path: Path, dataset: str) -> str:
    settings = {"dataset": dataset, "oracle": "simulated", "queries": 3, "store": str(tmp_path / "store.sqlite")}
    prepared = prepare(DiscoverSettings.model_validate(settings | {"out": str(tmp_path / "run")}))
    run_discovery(prepared, run_id="run")
    return markdown_of(Run(tmp_path / "run").findings, prepared.dataset, ["3 features"], "data:image/svg+xml;base64,AA")


def test_pictures_are_in_the_text(tmp_path: Path) -> None:
    report = discovered(tmp_path, "datasets/faces")
    assert report.startswith("- 3 features\n\n![how they were found](data:image/svg+xml;base64,AA)")
    assert report.count("data:image/webp;base64,") > 3
    assert "file:" not in report
    assert len(report) < 200_000


def test_no_text_of_an_example_is_reported(tmp_path: Path) -> None:
    zoo = "datasets/zoo"
    report = discovered(tmp_path, zoo)
    texts = Path(zoo, "animals.csv").read_text(encoding="utf-8").splitlines()[1:]
    assert "![](" not in report
    assert not any(line.split(",", 1)[1].strip('"')[:30] in report for line in texts)


def test_marks_are_shown_as_they_are() -> None:
    assert plain_markdown("a|b <img src=x> [x](javascript:1)\n`y`") == (
        "a\\|b &lt;img src=x&gt; \\[x\\]\\(javascript:1\\) \\`y\\`"
    )


@pytest.mark.parametrize(
    ("address", "found"),
    [("http://host:8000/", "http://host:8000/runs/my%20run"), ("", None), ("javascript:alert(1)", None)],
)
def test_a_studio_is_linked_to_where_its_address_is_known(
    monkeypatch: pytest.MonkeyPatch, address: str, found: str | None
) -> None:
    monkeypatch.setenv("TWOTHIRDS_STUDIO_URL", address)
    assert served_at(Path("runs/my run")) == found
