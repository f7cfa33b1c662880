"""Metrics and traces by OpenTelemetry, where its SDK is installed and its variables name an exporter or an endpoint.

Metrics are those of store.metrics, read when they are sent. Spans of flow and task runs are Prefect's own.
Exporters are found as OpenTelemetry's own tools find them: packages offer them by name."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import entry_points
from typing import Any

from store import METRICS, Sample

DEFAULT = "otlp_proto_http"
FRESH_SECONDS = 5.0  # for which samples that were read serve all instruments
_tracing: list[Any] = []  # OpenTelemetry has one provider of traces per process, which cannot be replaced


@contextmanager
def exporting(samples: Callable[[], list[Sample]], say: Callable[[str], None]) -> Iterator[None]:
    """While the block runs, and once more at its end. What cannot be sent is lost, and the run goes on."""
    try:
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.resources import Resource

        resource = Resource.create({"service.name": "twothirds"})
        exporter = _exporter("metrics")
        _trace(resource)
    except ImportError as error:
        say(f"nothing is sent to OpenTelemetry: {error}")
        yield
        return
    readers = [PeriodicExportingMetricReader(exporter)] if exporter else []
    provider = MeterProvider(readers, resource=resource)
    observe(provider.get_meter("twothirds"), samples)
    try:
        yield
    finally:
        provider.shutdown()  # which sends what is left
        for tracer in _tracing:
            tracer.force_flush()


def _exporter(what: str) -> Any:
    """The exporter that OTEL_METRICS_EXPORTER or OTEL_TRACES_EXPORTER names; None for none. Raises ImportError."""
    name = os.environ.get(f"OTEL_{what.upper()}_EXPORTER", "otlp").strip()
    if name == "none":
        return None
    wanted = DEFAULT if name == "otlp" else name
    for found in entry_points(group=f"opentelemetry_{what}_exporter", name=wanted):
        return found.load()(**({"out": sys.stderr} if name == "console" else {}))  # stdout is for results
    package = f"opentelemetry-exporter-{wanted.replace('_', '-')}"
    raise ImportError(f"no exporter of {what} is {name!r}: install {package} at the version of opentelemetry-sdk")


def _trace(resource: Any) -> None:
    exporter = None if _tracing else _exporter("traces")
    if exporter is None:
        return
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    _tracing.append(provider)


class _Latest:
    """The samples, read once for all instruments."""

    def __init__(self, read: Callable[[], list[Sample]]) -> None:
        self._read = read
        self._at, self._kept = 0.0, list[Sample]()

    def of(self, metric: str) -> list[Sample]:
        if time.monotonic() - self._at > FRESH_SECONDS or not self._kept:
            self._kept, self._at = self._read(), time.monotonic()
        return [sample for sample in self._kept if sample.metric == metric]


def observe(meter: Any, samples: Callable[[], list[Sample]]) -> None:
    """Instruments that read the samples when they are collected."""
    from opentelemetry.metrics import Observation

    latest = _Latest(samples)

    def reading(metric: str) -> Callable[[Any], list[Observation]]:
        return lambda _: [Observation(sample.value, dict(sample.labels)) for sample in latest.of(metric)]

    for metric, (kind, about) in METRICS.items():
        parts = [f"{metric}_sum", f"{metric}_count"] if kind == "histogram" else [metric]
        for name in parts:
            make = meter.create_observable_gauge if kind == "gauge" else meter.create_observable_counter
            make(f"twothirds.{name.removesuffix('_total')}", callbacks=[reading(name)], description=about)
