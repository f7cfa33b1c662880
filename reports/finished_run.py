"""A finished run, as scripts and notebooks use it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reports.curation import CuratedRun
from reports.page import Page, write_page


@dataclass(frozen=True, repr=False, init=False)
class Run(CuratedRun):
    """A run read from its folder: `run.features`, `run.labels`, `run.report()`."""

    def __init__(self, folder: Path | str, unedited: CuratedRun | None = None) -> None:
        super().__init__(Path(folder), unedited)

    def report(self, **options: Any) -> Page:
        """Write report.html and return it; a notebook shows the page. Options as in `reports.page.page.write_page`."""
        return write_page(self, **options)
