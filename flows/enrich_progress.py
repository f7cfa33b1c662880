"""What a person sees of an enrichment while it works: examples, and the answers that have come so far."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from flows.display import display
from flows.enrichment import Enrichment
from models.oracle import MICRO

TICK_SECONDS = 0.5


@contextmanager
def showing_progress(work: Enrichment, total: int | None) -> Iterator[None]:
    """A batch may take minutes, and the thread that waits for it says nothing: another one looks."""
    shown, over = display(), threading.Event()

    def tick() -> None:
        while not over.wait(TICK_SECONDS):
            answers, cost = work.answered
            shown.update(work.looked_at, f"{answers:,} answers, {cost / MICRO:.4f} USD")

    thread = threading.Thread(target=tick, name="progress", daemon=True)
    with shown.counting(total, "examples looked at"):
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(TICK_SECONDS)
