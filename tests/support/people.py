"""People made of code: they answer what lies before them in a review queue, from the truth of a data set."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from twothirds.discovery.families import groups_by_words
from twothirds.sources.dataset import Dataset
from twothirds.store.review import Queue
from twothirds.store.review.leases import LeasedQuestion, LeaseTerms

USUAL = LeaseTerms()


class TruthfulPerson:
    """Knows the truth's columns by name, and names the first that answers a comparison."""

    def __init__(self, queue: Queue, name: str, dataset: Dataset) -> None:
        assert dataset.truth is not None
        self.queue = queue
        self.id = queue.people.add(name).id
        self.columns = dataset.truth.columns
        self.truth = {
            example.digest: row for example, row in zip(dataset.examples, dataset.truth.matrix.tolist(), strict=True)
        }

    def answer_page(self, terms: LeaseTerms = USUAL) -> int:
        """Answer what lies there; how many questions that was."""
        shown = self.queue.leases.next_page(self.id, terms)
        self.queue.votes.give(self.id, {one.id: self.answer(one) for one in shown})
        return len(shown)

    def answer(self, shown: LeasedQuestion) -> dict[str, Any]:
        question = shown.question
        if shown.kind == "label":
            column = self.columns.index(question["feature"][0])
            return {"verdict": "yes" if self.truth[question["example"]][column] else "no"}
        if shown.kind == "why":
            name = question["feature"][0]
            return {
                "verdict": "yes" if self._has(question, name) else "no",
                "reason": "<script>seen</script>",
                "quote": "",
            }
        if shown.kind == "value":
            having = [place for place, (name, _) in enumerate(question["values"]) if self._has(question, name)]
            [name, definition] = question["values"][having[0]] if len(having) == 1 else ["", ""]
            return (
                {"verdict": "feature", "name": name, "definition": definition, "shown": having}
                if name
                else {"verdict": "none"}
            )
        if shown.kind == "family":
            groups = groups_by_words([name for name, _ in question["features"]])
            if not groups:
                return {"verdict": "none"}
            return {"verdict": "feature", "name": groups[0].name, "shown": list(groups[0].members)}
        if shown.kind == "groups":
            name = max((one for one in self.columns if one not in question["known"]), key=partial(self._gap, question))
            return {"verdict": "feature", "name": name, "shown": []}
        for column, name in enumerate(self.columns):
            has = [self.truth[digest][column] for digest in question["examples"]]
            if sum(has) == 2 and name not in question["known"]:
                return {"verdict": "feature", "name": name, "shown": [n for n, one in enumerate(has) if one]}
        return {"verdict": "none"}

    def _gap(self, question: dict[str, Any], name: str) -> float:
        """By how much more of one group has it than of the other."""
        column = self.columns.index(name)
        shares = [np.mean([self.truth[one][column] for one in question[side]]) for side in ("examples", "without")]
        return float(abs(shares[0] - shares[1]))

    def _has(self, question: dict[str, Any], name: str) -> bool:
        return name in self.columns and self.truth[question["example"]][self.columns.index(name)] == 1


@contextmanager
def at_work(*people: TruthfulPerson) -> Iterator[None]:
    """While the block runs, each of them answers whatever comes."""
    stopping = threading.Event()

    def work(person: TruthfulPerson) -> None:
        while not stopping.is_set():
            if person.answer_page() == 0:
                time.sleep(0.05)

    threads = [threading.Thread(target=work, args=(person,)) for person in people]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stopping.set()
        for thread in threads:
            thread.join()
