"""Figures of the latest runs in the text format of Prometheus, read from the books when they are asked for: while a run
asks, nothing is counted for them. Labels name runs, data sets and oracles, never a question, answer or setting."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, func, select

from twothirds.store.costs import cost_lines
from twothirds.store.engine import Repository, reads
from twothirds.store.schema import PROBE, review_items, runs

OPEN = "open"  # the state of a question that waits for people
LATEST = 50  # runs that are exported
MICRO = 1_000_000
# The statuses of runs that did not come to their end.
UNFINISHED = (
    *("running", "failed", "waiting", "oracle-unavailable", "stopped: oracle-unavailable", "unusable", "contract"),
)
TOTALS = {  # of a line of the costs: (metric, labels beside those of the run)
    "requests": ("requests_total", {}),
    "input_tokens": ("tokens_total", {"direction": "input"}),
    "output_tokens": ("tokens_total", {"direction": "output"}),
    "unknown_calls": ("unanswered_total", {}),
}
METRICS = {
    "questions_total": ("counter", "Questions of a run, asked now or kept from before."),
    "requests_total": ("counter", "Requests to the oracle's server that were answered."),
    "tokens_total": ("counter", "Tokens of these requests."),
    "cost_dollars_total": ("counter", "What the run has paid."),
    "cost_in_doubt_dollars": ("gauge", "The most that requests without an answer may have cost beside."),
    "unanswered_total": ("counter", "Requests that never reported their cost."),
    "retries_total": ("counter", "Requests that failed for the moment and were sent again or given up."),
    "unusable_answers_total": ("counter", "Answers that were refused or could not be read."),
    "request_seconds": ("histogram", "How long requests took."),
    "drift_moved_features": ("gauge", "Features whose share moved in the latest examples."),
    "drift_largest": ("gauge", "The largest move of a feature's share."),
    "review_queue_length": ("gauge", "Questions that wait for people."),
    "run_active": ("gauge", "1 while the run works, or was killed."),
    "run_started_timestamp_seconds": ("gauge", "When the run began."),
    "run_ended_timestamp_seconds": ("gauge", "When the run ended."),
    "last_success_timestamp_seconds": ("gauge", "When a run on the data set came to its end."),
    "exit_status": ("gauge", "Of the command that wrote this file."),
}


class Sample(NamedTuple):
    metric: str
    labels: Mapping[str, str]
    value: float


class Metrics(Repository):
    @reads
    def samples(self, connection: Connection, run_id: str | None = None) -> list[Sample]:
        """Of one run, or of those that began last; of the last successes and of the review queue."""
        chosen = runs.c.flow != PROBE if run_id is None else runs.c.run_id == run_id
        return [*_of_runs(connection, chosen), *_of_successes(connection), *_of_queue(connection)]


def render(samples: Iterable[Sample]) -> str:
    """The text that Prometheus scrapes, and that node_exporter reads from a file."""
    grouped: dict[str, list[Sample]] = {}
    for sample in samples:
        family = "request_seconds" if sample.metric.startswith("request_seconds_") else sample.metric
        grouped.setdefault(family, []).append(sample)
    lines = []
    for family, (kind, help_text) in METRICS.items():
        if family in grouped:
            lines += [f"# HELP twothirds_{family} {help_text}", f"# TYPE twothirds_{family} {kind}"]
            lines += map(_line, grouped[family])
    return "".join(f"{line}\n" for line in lines)


def _of_runs(connection: Connection, chosen: ColumnElement[bool]) -> Iterator[Sample]:
    columns = (runs.c.id, runs.c.run_id, runs.c.name, runs.c.flow, runs.c.dataset, runs.c.oracle)
    times = (runs.c.status, runs.c.summary, runs.c.started_at, runs.c.ended_at)
    query = select(*columns, *times).where(chosen).order_by(runs.c.id.desc()).limit(LATEST)
    named: dict[int, str] = {}
    by_run_id: dict[str, dict[str, str]] = {}
    for row in connection.execute(query):
        labels = {"run": row.run_id, "name": row.name, "flow": row.flow, "dataset": row.dataset}
        named[row.id] = row.run_id
        by_run_id[row.run_id] = labels
        yield Sample("run_active", labels, float(row.status == "running"))
        yield Sample("run_started_timestamp_seconds", labels, row.started_at)
        if row.ended_at is not None:
            yield Sample("run_ended_timestamp_seconds", labels, row.ended_at)
        yield from _of_figures(labels | {"oracle": row.oracle}, (row.summary or {}).get("figures") or {})
    for line in cost_lines(connection, runs.c.id.in_(list(named))):
        labels = by_run_id[line.run_id] | {"oracle": line.oracle, "kind": line.kind}
        if line.kind != PROBE:
            yield Sample("questions_total", labels | {"source": "asked"}, line.paid_calls)
            yield Sample("questions_total", labels | {"source": "kept"}, line.cached_calls)
        for name, (metric, more) in TOTALS.items():
            yield Sample(metric, labels | more, getattr(line, name))
        yield Sample("cost_dollars_total", labels, line.paid / MICRO)
        yield Sample("cost_in_doubt_dollars", labels, line.unknown / MICRO)


def _of_figures(labels: Mapping[str, str], figures: Mapping[str, Any]) -> Iterator[Sample]:
    """What a run itself has counted, once it has ended."""
    names = ("retries_total", "unusable_answers_total", "drift_moved_features", "drift_largest")
    yield from (Sample(name, labels, figures[name]) for name in names if name in figures)
    seconds = figures.get("request_seconds")
    if seconds:
        below = 0
        for bound, count in zip(seconds["bounds"], seconds["counts"], strict=True):
            below += count
            yield Sample("request_seconds_bucket", {**labels, "le": "+Inf" if bound is None else f"{bound:g}"}, below)
        yield Sample("request_seconds_sum", labels, seconds["sum"])
        yield Sample("request_seconds_count", labels, below)


def _of_successes(connection: Connection) -> Iterator[Sample]:
    ended = func.max(runs.c.ended_at).label("ended")
    query = select(runs.c.flow, runs.c.dataset, ended).where(
        runs.c.flow != PROBE, runs.c.ended_at.is_not(None), runs.c.status.not_in(UNFINISHED)
    )
    for row in connection.execute(query.group_by(runs.c.flow, runs.c.dataset)):
        yield Sample("last_success_timestamp_seconds", {"flow": row.flow, "dataset": row.dataset}, row.ended)


def _of_queue(connection: Connection) -> Iterator[Sample]:
    queue = review_items.c.queue
    query = select(queue, func.count().label("waiting")).where(review_items.c.state == OPEN).group_by(queue)
    waiting = {row.queue: row.waiting for row in connection.execute(query)}
    for name, count in (waiting or {"": 0}).items():
        yield Sample("review_queue_length", {"queue": name}, count)


def _line(sample: Sample) -> str:
    shown_labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in sample.labels.items())
    value = sample.value
    shown = f"{value:d}" if isinstance(value, int) else repr(float(value))
    return f"twothirds_{sample.metric}{{{shown_labels}}} {shown}"


def _escaped(value: str) -> str:
    plain = "".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in value)
    return plain.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
