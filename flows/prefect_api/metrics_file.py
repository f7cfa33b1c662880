"""Figures of the latest runs as a file, for the textfile collector of Prometheus' node_exporter."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from twothirds.flows.endings import ending_of
from twothirds.flows.errors import UsageError
from twothirds.flows.settings import RunSettings, open_store
from twothirds.reports.run import replace_file
from twothirds.sources import name_of
from twothirds.store import Sample, StoreError, render

SUFFIX, MODE = ".prom", 0o644  # the collector reads these files alone, as a user of its own
INTERRUPTED = 130


@dataclass
class CommandEnd:
    status: int = 1


@contextmanager
def writing_metrics(path: str, settings: RunSettings, flow: str) -> Iterator[CommandEnd]:
    """Written at the end of the block, however it ends: whole or not at all. Raises UsageError before the block."""
    file, ended = Path(path), CommandEnd()
    if file.suffix != SUFFIX or not file.absolute().parent.is_dir():
        raise UsageError(f"--metrics {path!r}: give a file {SUFFIX} in a folder that is there")
    try:
        yield ended
    except Exception as error:
        ended.status = ending_of(error).status
        raise
    except BaseException:
        ended.status = INTERRUPTED
        raise
    finally:
        write_metrics(file, settings, flow, ended.status)


def write_metrics(file: Path, settings: RunSettings, flow: str, status: int) -> None:
    """Without the figures of runs where their store cannot be read."""
    samples = [Sample("exit_status", {"flow": flow, "dataset": name_of(settings.dataset)}, status)]
    try:
        store = open_store(settings.store)
        samples += store.metrics.samples()
        store.close()
    except StoreError:
        pass

    def write(opened: IO[str]) -> None:
        opened.write(render(samples))
        os.fchmod(opened.fileno(), MODE)

    replace_file(file, write)
