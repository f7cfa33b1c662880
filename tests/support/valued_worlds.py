"""Texts with attributes that have values, their truth, and a run whose labels are partly wrong."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.support.run_folders import make_run
from twothirds.reports.finished_run import Run

HAIR = ("black hair", "blonde hair", "grey hair", "red hair")
TOP = ("green top", "yellow top", "white top")
OTHERS = ("old coin", "tall tree", "lit lamp")
WITHOUT_HAIR = 0.25


class ValuedWorld:
    """`n` texts. One in four has no hair, every one has a top, and the others are independent. Of `HAIR` the run knows
    all but the last."""

    def __init__(self, folder: Path, n: int = 160, wrong: float = 0.05, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.folder = folder
        self.names = (*HAIR, *TOP, *OTHERS)
        hair = rng.choice(len(HAIR) + 1, n, p=[*[(1 - WITHOUT_HAIR) / len(HAIR)] * len(HAIR), WITHOUT_HAIR])
        top = rng.integers(len(TOP), size=n)
        parts = [hair[:, None] == np.arange(len(HAIR)), top[:, None] == np.arange(len(TOP))]
        self.truth: NDArray[np.int8] = np.hstack([*parts, rng.random((n, len(OTHERS))) < 0.45]).astype(np.int8)
        self.ids = [f"t{number:03d}" for number in range(n)]
        flips = rng.random(self.truth.shape) < wrong
        self.labels = np.where(flips, 1 - self.truth, self.truth).astype(np.int8)

    def write(self) -> str:
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "texts.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["id", "text"])
            for name, row in zip(self.ids, self.truth, strict=True):
                rows.writerow([name, f"{name}: {', '.join(np.array(self.names)[row == 1]) or 'nothing'}"])
        with (self.folder / "truth.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["id", *self.names])
            rows.writerows([name, *row] for name, row in zip(self.ids, self.truth.tolist(), strict=True))
        return str(self.folder / "texts.csv")

    def run(self, **settings: Any) -> Run:
        """As discover leaves it, without the last hair colour."""
        known = [place for place, name in enumerate(self.names) if name != HAIR[-1]]
        names = [self.names[place] for place in known]
        spec = self.write()
        run = make_run(self.folder / "run", spec, self.ids, names, self.labels[:, known].T, votes=1, divided=0.0)
        own = (
            run.summary.settings | {"replace": True, "votes": 1, "store": str(self.folder / "store.sqlite")} | settings
        )
        changed = run.summary.model_copy(update={"settings": own})
        (run.folder / "run.json").write_text(changed.model_dump_json())
        return Run(run.folder)

    def share_right(self, run: Run, attribute: str, values: tuple[str, ...]) -> float:
        given = run.attributes[attribute].astype(object)
        columns = [self.names.index(value) for value in values]
        true = [
            next((v for v, c in zip(values, columns, strict=True) if row[c]), "none of these") for row in self.truth
        ]
        return float(np.mean([one == other for one, other in zip(given, true, strict=True)]))
