"""What a resume takes, beside what the undisturbed run takes for as many labels."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path

from benchmarks.data import PAID_CROWD, traits, write_plain_texts, write_traits
from benchmarks.machine import alone, tell
from benchmarks.results import Table, rounded
from benchmarks.store.database import Database
from benchmarks.store.growth import FEATURES
from flows.enrich.flow import enrich_with
from flows.enrich.settings import EnrichSettings
from flows.progress import Display

MAX_RATIO = 1.2  # of the time that the undisturbed run takes for what is left
NEGLIGIBLE = 5.0  # seconds: below that the start of a run is most of it


def resume(database: Database, examples: int) -> Table:
    tell(f"resume, {examples:,} examples")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_plain_texts(folder, examples)
        write_traits(folder, [f"e{number:08}" for number in range(examples)], FEATURES)
        whole = alone(enrich, folder, "whole", database.new_store(folder))
        halved = database.new_store(folder)
        killed = get_context("spawn").Process(
            target=enrich, args=(folder, "halved", halved), kwargs={"kill_at": examples * FEATURES // 2}
        )
        killed.start()
        killed.join()
        assert killed.exitcode == -signal.SIGKILL, killed.exitcode
        resumed = alone(enrich, folder, "halved", halved)
    share = resumed["asked"] / whole["asked"]
    rest = whole["seconds"] * share  # what the whole run took for as many labels
    ratio, of_processor = resumed["seconds"] / rest, resumed["processor"] / (whole["processor"] * share)
    rows = [["whole", *rounded(whole.values(), 1)], ["resumed", *rounded(resumed.values(), 1)]]
    note = (
        f"{examples:,} × {FEATURES} labels. For as many labels as were left the whole run took {rest:.1f} s, the "
        f"resumed run {ratio:.2f} times that ({MAX_RATIO} is allowed); of processor time {of_processor:.2f} times."
    )
    missed = [f"a resume takes {ratio:.2f} times as long"] if ratio > MAX_RATIO and rest > NEGLIGIBLE else []
    columns = ["run", "seconds", "of processor", "labels asked", "stored before"]
    return Table(f"Resume, {database.name}", columns, rows, [note], missed)


class KillAt(Display):
    """Kills the process when so many answers have come."""

    def __init__(self, answers: int) -> None:
        self._answers = answers

    def update(self, done: int, detail: str) -> None:  # noqa: ARG002 (examples are read long before they are answered)
        if int(detail.split()[0].replace(",", "")) >= self._answers:  # "1,234 answers, …"
            os.kill(os.getpid(), signal.SIGKILL)


def enrich(folder: Path, name: str, store: str, kill_at: int | None = None) -> dict[str, float]:
    settings = EnrichSettings(
        dataset=str(folder / "world.csv"),
        features="; ".join(traits(FEATURES)),
        oracle=PAID_CROWD,
        store=store,
        out=str(folder / name),
    )
    began, used = time.perf_counter(), time.process_time()
    summary = enrich_with(settings, display=Display() if kill_at is None else KillAt(kill_at)).to_json()
    return {
        "seconds": time.perf_counter() - began,
        "processor": time.process_time() - used,
        "asked": summary["paid_calls"],
        "stored": summary["cached_calls"],
    }
