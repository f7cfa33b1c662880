"""Write the labels of a run in forms that other programs load."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from flows.display import display
from reports.export.formats import export_run, formats_named
from reports.page.page import dataset_of
from reports.run.folder import Run


def export(run: Run, formats: Sequence[str], *, dataset: str | None = None, out: Path | None = None) -> list[Path]:
    """The files and folders written. Formats that do not fit the data set are left out of `all`."""
    formats_named(formats)
    with display().waiting("reading the data set"):
        read, problem = dataset_of(run, dataset)
    if problem:
        display().say(problem)
    with display().waiting("writing the exports"):
        return export_run(run, formats, read, out)
