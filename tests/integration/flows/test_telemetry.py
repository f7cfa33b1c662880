"""OpenTelemetry: the figures of a run by its SDK, and a run that goes on where nothing can be sent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from flows.progress import Display
from store import Sample, Store
from tasks.telemetry import observe
from tests.support.growing_worlds import World, night


class Said(Display):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, message: str) -> None:
        self.lines.append(message)


def test_the_instruments_tell_what_the_store_tells(tmp_path: Path) -> None:
    world = World(tmp_path / "world", 8)
    url = str(tmp_path / "store.sqlite")
    summary = night(world, store=url, oracle="simulated?price=0.001")
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    with Store.open(url) as store:
        observe(provider.get_meter("twothirds"), store.metrics.samples)
        data: Any = reader.get_metrics_data()
    [scope] = data.resource_metrics[0].scope_metrics
    points = {metric.name: metric.data.data_points for metric in scope.metrics if metric.data.data_points}
    asked = [point.value for point in points["twothirds.questions"] if point.attributes["source"] == "asked"]
    assert sum(asked) == summary["paid_calls"] == 24
    assert sum(point.value for point in points["twothirds.cost_dollars"]) == pytest.approx(summary["cost_usd"])
    assert points["twothirds.run_ended_timestamp_seconds"]
    provider.shutdown()


def test_all_instruments_share_one_reading() -> None:
    reads: list[int] = []

    def samples() -> list[Sample]:
        reads.append(1)
        return [Sample("exit_status", {}, 0)]

    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    observe(provider.get_meter("twothirds"), samples)
    reader.collect()
    assert len(reads) == 1
    provider.shutdown()


def test_a_run_sends_its_figures_by_the_exporter_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "console")
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
    night(World(tmp_path / "world", 8), store=str(tmp_path / "store.sqlite"), oracle="simulated?price=0.001")
    printed = capfd.readouterr()
    sent = json.loads(printed.err)
    names = {metric["name"] for metric in sent["resource_metrics"][0]["scope_metrics"][0]["metrics"]}
    assert {"twothirds.questions", "twothirds.cost_dollars", "twothirds.tokens"} <= names
    assert "It is red" not in printed.err
    assert printed.out == ""


def test_an_exporter_that_is_missing_is_said_and_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "nowhere")
    said = Said()
    summary = night(World(tmp_path / "world", 8), store=str(tmp_path / "store.sqlite"), display=said)
    assert summary["rows"] == 8
    [line] = [line for line in said.lines if "OpenTelemetry" in line]
    assert line.endswith("install opentelemetry-exporter-nowhere at the version of opentelemetry-sdk")
