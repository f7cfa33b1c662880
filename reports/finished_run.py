"""A finished run, as scripts and notebooks use it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from twothirds.reports.curation import CuratedRun
from twothirds.reports.page import Page, write_page
from twothirds.reports.run import RunSummary


@dataclass(frozen=True, repr=False, init=False)
class Run(CuratedRun):
    """A run read from its folder: `run.features`, `run.labels`, `run.report()`. With `summary` it keeps its own, for
    its file may be another run's by then."""

    own_summary: RunSummary | None = field(init=False, compare=False)

    def __init__(
        self, folder: Path | str, unedited: CuratedRun | None = None, *, summary: RunSummary | None = None
    ) -> None:
        super().__init__(Path(folder), unedited)
        object.__setattr__(self, "own_summary", summary)

    @cached_property
    def summary(self) -> RunSummary:
        return self.own_summary or super().summary

    def report(self, **options: Any) -> Page:
        """Write report.html and return it; a notebook shows the page. Options as in `reports.page.page.write_page`."""
        return write_page(self, **options)
