"""Attention checks: labels whose answer is known, entered from a CSV file."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from discovery import same_name
from flows.errors import UsageError
from models import Feature, Label
from models.people import check_of
from sources import ANY, Columns, Example, load_dataset
from store import Store
from store.review import ReviewQuestion

ANSWERS = {"yes": "yes", "1": "yes", "true": "yes", "no": "no", "0": "no", "false": "no"}


@dataclass(frozen=True)
class EnteredChecks:
    """How many attention checks were entered, and what keeps some of them from being asked."""

    count: int
    remarks: list[str]


def add_checks(store: Store, dataset: str, path: Path, queue: str, columns: Columns = ANY) -> EnteredChecks:
    """Enter the rows of a CSV file (feature, id, answer, optionally definition) as checks."""
    examples = {example.id: example for example in load_dataset(dataset, columns).examples}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path} ({error}): give a CSV file in UTF-8") from None
    checks = [_check(number, row, examples, path, queue) for number, row in enumerate(rows, start=2)]
    store.queue.items.enqueue(checks)
    return EnteredChecks(len(checks), _unasked(store, [row["feature"] for row in rows], queue))


def _unasked(store: Store, named: list[str], queue: str) -> list[str]:
    """Of checks about features that nobody in the queue is asked about, when they will be."""
    queues = sorted({state.queue for state in store.queue.records.states() if state.state != "check"})
    if queues and queue not in queues:
        return [f"no question waits in queue {queue}, so these checks cannot be asked: there are {', '.join(queues)}"]
    asked = store.queue.records.features_asked(queue)
    lost = {name: named.count(name) for name in dict.fromkeys(named) if not any(same_name(name, one) for one in asked)}
    so_far = f" (so far: {', '.join(asked[:8])})" if asked else ""
    return [
        f"nobody is asked about {name!r} yet: {count} check{'s wait' if count > 1 else ' waits'} until a feature has "
        f"that name{so_far}"
        for name, count in lost.items()
    ]


def _check(number: int, row: dict[str, str], examples: dict[str, Example], path: Path, queue: str) -> ReviewQuestion:
    for column in ("feature", "id", "answer"):
        if not row.get(column):
            raise UsageError(f"{path}, line {number}: no {column!r}: the columns are feature, id and answer")
    if row["id"] not in examples:
        raise UsageError(f"{path}, line {number}: no example {row['id']!r} in the data set")
    if row["answer"].lower() not in ANSWERS:
        raise UsageError(f"{path}, line {number}: answer {row['answer']!r}: write yes or no")
    feature = Feature(row["feature"], row.get("definition") or "")
    return check_of(queue, Label(feature, examples[row["id"]]), ANSWERS[row["answer"].lower()])
