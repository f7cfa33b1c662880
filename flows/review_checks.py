"""Attention checks from a table: labels whose answer is known."""

from __future__ import annotations

import csv
from pathlib import Path

from flows.options import UsageError
from models.oracle import Feature, Label
from models.people.human import check_of
from sources.dataset import Example
from sources.load import load_dataset
from store import Store
from store.review.queue import Ask

ANSWERS = {"yes": "yes", "1": "yes", "true": "yes", "no": "no", "0": "no", "false": "no"}


def add_checks(store: Store, dataset: str, path: Path, queue: str) -> int:
    """Enter the rows of a CSV file (feature, id, answer, optionally definition) as checks; how many there are."""
    examples = {example.id: example for example in load_dataset(dataset).examples}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path} ({error}): give a CSV file in UTF-8") from None
    checks = [_check(number, row, examples, path, queue) for number, row in enumerate(rows, start=2)]
    store.queue.enqueue(checks)
    return len(checks)


def _check(number: int, row: dict[str, str], examples: dict[str, Example], path: Path, queue: str) -> Ask:
    for column in ("feature", "id", "answer"):
        if not row.get(column):
            raise UsageError(f"{path}, line {number}: no {column!r}: the columns are feature, id and answer")
    if row["id"] not in examples:
        raise UsageError(f"{path}, line {number}: no example {row['id']!r} in the data set")
    if row["answer"].lower() not in ANSWERS:
        raise UsageError(f"{path}, line {number}: answer {row['answer']!r}: write yes or no")
    feature = Feature(row["feature"], row.get("definition") or "")
    return check_of(queue, Label(feature, examples[row["id"]]), ANSWERS[row["answer"].lower()])
