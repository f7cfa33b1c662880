"""The sections that were asked for with a report: kept beside the run, so that a report written again has them too."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import ValidationError

from reports.curation import CuratedRun
from reports.run import JsonPart, RunError, replace_file

NAME = "report.json"


class Sections(JsonPart):
    target: str | None = None
    tagging: str | None = None  # run folder of the control, with `target`
    by: str | None = None
    against: str | None = None  # run folder

    @classmethod
    def read(cls, folder: Path) -> Sections:
        """None of them where the file is missing or not what was written."""
        try:
            return cls.model_validate_json((folder / NAME).read_bytes())
        except (OSError, ValidationError):
            return cls()

    def write(self, folder: Path) -> None:
        text = json.dumps({name: value for name, value in self.to_json().items() if value is not None}, indent=2)
        replace_file(folder / NAME, lambda file: file.write(text + "\n"))

    def over(self, kept: Sections) -> Sections:
        """These, and of those kept before what they do not replace."""
        other_groups = self.by is not None or self.against is not None
        return Sections(
            target=self.target or kept.target,
            tagging=self.tagging or (kept.tagging if self.target in (None, kept.target) else None),
            by=self.by if other_groups else kept.by,
            against=self.against if other_groups else kept.against,
        )


def check_tagging(run: CuratedRun, tagging: CuratedRun) -> None:
    """Raises RunError where the control is no tagging run, or one of other examples."""
    strategy, folder = tagging.summary.settings["strategy"], tagging.folder
    if strategy != "tagging":
        raise RunError(f"--tagging {folder} is a run with --strategy {strategy}: give one made with --strategy tagging")
    if tagging.summary.dataset.digest != run.summary.dataset.digest:
        raise RunError(
            f"--tagging {folder} is about other examples (of {tagging.summary.dataset.name}): give a tagging run of "
            f"the same data set as {run.folder}"
        )
