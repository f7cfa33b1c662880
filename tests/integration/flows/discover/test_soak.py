"""A long run: 200,000 labels through the whole of an enrichment, by a crowd that takes its time as every oracle does.

`pytest -s` shows the figures of each tenth."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.growing_worlds import World
from twothirds.flows.enrich import update as enrichment
from twothirds.flows.enrich.batches import LabelledBatch, Labeller, Submit
from twothirds.flows.enrich.flow import enrich_with
from twothirds.flows.enrich.settings import EnrichSettings
from twothirds.models import LabelBatch
from twothirds.store import Store

QUESTIONS, TENTHS = 200_000, 10
TRAITS = tuple(f"trait {number}" for number in range(20))
ORACLES = {
    "at once": "simulated?price=0.000001",
    "taking its time": "simulated?latency=0.02&width=16",  # two batches at a time: 1,600 labels a second at the most
}
PER_BATCH = QUESTIONS // TENTHS // 10
MEGABYTE = 2**20


class Moment(NamedTuple):
    """After so many labels."""

    labels: int
    seconds: float
    processor: float
    memory: int
    files: tuple[str, ...]
    journal: int


class Watch:
    """Notes after every batch how the process does."""

    def __init__(self, store: Path) -> None:
        self._journal = store.with_name(f"{store.name}-wal")
        self._labels = 0
        self.moments = [self._moment()]

    def _moment(self) -> Moment:
        memory = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        journal = self._journal.stat().st_size if self._journal.exists() else 0
        return Moment(self._labels, time.monotonic(), time.process_time(), memory, open_files(), journal)

    def __call__(self, done: Future[LabelledBatch]) -> None:
        self._labels += done.result().votes.asked
        self.moments.append(self._moment())

    def tenth(self, place: int) -> list[Moment]:
        first, last = QUESTIONS * place // TENTHS, QUESTIONS * (place + 1) // TENTHS
        return [moment for moment in self.moments if first <= moment.labels <= last]

    def __str__(self) -> str:
        return "\n".join(self._described(self.tenth(place)) for place in range(TENTHS))

    @staticmethod
    def _described(tenth: list[Moment]) -> str:
        start, *_, end = tenth
        labels = end.labels - start.labels
        return (
            f"{end.labels:,} labels: {labels / (end.seconds - start.seconds):,.0f} a second, "
            f"{1e6 * (end.processor - start.processor) / labels:.0f} µs of processor each, "
            f"{end.memory / MEGABYTE:.0f} MB, {len(end.files)} files, journal of {end.journal / MEGABYTE:.0f} MB"
        )


@contextmanager
def watched(watch: Watch) -> Iterator[Submit]:
    with ThreadPoolExecutor(2) as pool:

        def submit(labeller: Labeller, batch: LabelBatch) -> Future[LabelledBatch]:
            coming = pool.submit(labeller, batch)
            coming.add_done_callback(watch)
            return coming

        yield submit


@pytest.mark.slow
@pytest.mark.parametrize("oracle", ORACLES.values(), ids=ORACLES.keys())
def test_two_hundred_thousand_labels_take_no_more_of_anything_at_the_end_than_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, oracle: str
) -> None:
    monkeypatch.setattr(enrichment, "LABELS_AT_ONCE", PER_BATCH)
    world = World(tmp_path / "world", QUESTIONS // len(TRAITS), TRAITS)
    store = tmp_path / "store.sqlite"
    settings = EnrichSettings(
        dataset=world.spec, features=world.features, oracle=oracle, store=str(store), out=str(tmp_path / "out")
    )
    gc.collect()  # closes what other tests have left open
    watch = Watch(store)
    with watched(watch) as submit:
        summary = enrich_with(settings, submit=submit).to_json()
    print(f"\n{watch}")
    assert (summary["added"], summary["paid_calls"]) == (len(world.texts), QUESTIONS)
    after = [moment for moment in watch.moments if moment.labels >= QUESTIONS // TENTHS]
    assert max(moment.memory for moment in after) <= 1.1 * after[0].memory
    while_reading = [moment for moment in after if world.spec in moment.files]
    assert len(while_reading) > 0.9 * len(after)
    assert {moment.files for moment in while_reading} == {after[0].files}
    assert max(moment.journal for moment in after) < 64 * MEGABYTE
    first, last = watch.tenth(0), watch.tenth(TENTHS - 1)
    assert rate(last) >= 0.9 * rate(first)
    with Store.open(str(store)) as kept:
        assert kept.check.problems() == []


def rate(moments: list[Moment]) -> float:
    """Labels per second."""
    return (moments[-1].labels - moments[0].labels) / (moments[-1].seconds - moments[0].seconds)


def open_files() -> tuple[str, ...]:
    """What each open file, socket or pipe leads to. What a thread reads in /proc just now is closed in a moment."""
    leads = []
    for number in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # closed meanwhile
            leads.append(os.readlink(f"/proc/self/fd/{number}"))
    return tuple(sorted(path for path in leads if not path.startswith("/proc/")))
