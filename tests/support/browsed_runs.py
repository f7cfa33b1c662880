"""Runs to browse: examples with columns of every kind, labels with every mark, and attributes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tests.support.run_folders import make_run, random_matrix
from twothirds.reports.curation.corrections import LabelEdit, record_corrections
from twothirds.reports.finished_run import Run
from twothirds.sources.load import load_dataset

NAMES = ["beard", "glasses", "open mouth", "hat", "long hair"]
PLACES = ["garden", "studio", "street"]


def table_of(folder: Path, count: int, *, pictures: bool = True) -> list[str]:
    """`people.csv`: of the shipped faces, or of texts, with values, numbers, many values, and cells without one."""
    rng = np.random.default_rng(5)
    faces = [Path(str(one.image)) for one in load_dataset("datasets/faces").examples[:count]] if pictures else []
    ids = [path.stem for path in faces] if pictures else [f"note-{number}" for number in range(1, count + 1)]
    texts = [f"Note {number} about {PLACES[number % 3]}s" for number in range(count)]
    shown = [str(path.resolve()) for path in faces] if pictures else texts
    rows = {
        "id": ids,
        "image" if pictures else "text": shown,
        "place": [PLACES[one] if rng.random() > 0.1 else "" for one in rng.integers(3, size=count)],
        "age": [round(float(one), 1) if rng.random() > 0.05 else None for one in rng.normal(40, 12, count)],
        "drawn by": [f"Drawer {one}" for one in rng.integers(max(20, count // 3), size=count)],
        "source": [f"https://user:secret@example.org/{one % 2}" for one in range(count)],
    }
    folder.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(rows).to_csv(folder / "people.csv", index=False)
    return ids


def true_labels(ids: list[str]) -> NDArray[np.int8]:
    """Of faces, with some unknown."""
    truth = pd.read_csv("datasets/faces/truth.csv").set_index("id")
    matrix = np.array([truth.loc[ids, {"hat": "headwear"}.get(name, name)] for name in NAMES], np.int8)
    matrix[np.random.default_rng(1).random(matrix.shape) < 0.04] = -1
    return matrix


def browsed_run(folder: Path, count: int = 60, *, pictures: bool = True, **options: object) -> Run:
    """With labels that are unknown, divided and corrected, and a feature that contradicts its question."""
    ids, table = table_of(folder.parents[1], count, pictures=pictures), folder.parents[1] / "people.csv"
    matrix = true_labels(ids) if pictures else random_matrix(len(NAMES), len(ids), seed=3, unknown=0.05)
    run = make_run(folder, str(table), ids, NAMES, matrix, divided=0.2, **options)  # type: ignore[arg-type]
    features = pd.read_csv(folder / "features.csv")
    features.loc[features["name"] == "hat", "consistent"] = False
    features.to_csv(folder / "features.csv", index=False)
    run = Run(folder)
    edits = [LabelEdit(ids[row], "glasses", label) for row, label in ((1, 1), (2, 0), (5, 1))]
    record_corrections(run, run.findings, edits, "Ann", {}, 0)
    return Run(folder)
