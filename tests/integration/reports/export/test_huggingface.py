"""The real `datasets` loads every folder and file that it is meant to, each time what is in it.

In a process and a folder of its own: the clone has a folder `datasets`, too."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.support.run_folders import make_run, random_matrix
from twothirds.reports.curation.log import plan_change, record_change
from twothirds.reports.export.formats import export_run
from twothirds.reports.finished_run import Run
from twothirds.sources.load import load_dataset

ROOT = Path(__file__).parents[4]
FACES = str(ROOT / "datasets" / "faces")
LOAD = """
import json, sys
from datasets import load_dataset

found = []
for spec in map(json.loads, sys.argv[2:]):
    loaded = load_dataset(*spec[0], split="train", cache_dir=sys.argv[1], **spec[1])
    sizes = [row["image"].size for row in loaded] if "image" in loaded.features else []
    rows = loaded.remove_columns(["image"]) if sizes else loaded
    found.append({"rows": [dict(row) for row in rows], "sizes": sizes})
print(json.dumps(found))
"""


def output_of(script: str, folder: Path, *arguments: str) -> list[dict[str, Any]]:
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-c", script, str(folder / "cache"), *arguments],
        cwd=elsewhere,
        env={"HF_HUB_OFFLINE": "1", "HOME": str(folder), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return found


def loaded(folder: Path, *specs: tuple[list[str], dict[str, str]]) -> list[dict[str, Any]]:
    return output_of(LOAD, folder, *map(json.dumps, specs))


def labels_in(rows: list[dict[str, Any]], run: Run) -> pd.DataFrame:
    table = pd.DataFrame([row["labels"] | {"id": row["id"]} if "labels" in row else row for row in rows])
    table = table.set_index("id")[run.labels.columns].astype("Int8")
    return table.set_index(table.index.astype(run.labels.index.dtype))


def made(folder: Path, source: str, seed: int) -> Run:
    ids = [example.id for example in load_dataset(source).examples]
    run = make_run(folder, source, ids, ["glasses", "a hat"], random_matrix(2, len(ids), seed=seed, unknown=0.1))
    export_run(run, ["huggingface,imagefolder-parquet"], load_dataset(source))
    return run


def test_what_is_loaded_is_what_was_exported_last(tmp_path: Path) -> None:
    """Two runs with the same names everywhere, then the second one curated, under the same paths and one cache."""
    source = tmp_path / "pictures"
    source.mkdir()
    for path in sorted(Path(FACES).rglob("*.png"))[:8]:
        (source / path.name).write_bytes(path.read_bytes())
    runs = [made(tmp_path / name / "run", str(source), seed) for seed, name in enumerate(("one", "two"))]
    specs: list[tuple[list[str], dict[str, str]]] = [
        ([str(run.folder / "export" / name)], {}) for run in runs for name in ("huggingface", "imagefolder-parquet")
    ]
    specs += [(["imagefolder"], {"data_dir": str(run.folder / "export" / "imagefolder-parquet")}) for run in runs]
    for found, run in zip(loaded(tmp_path, *specs), [runs[0]] * 2 + [runs[1]] * 2 + runs, strict=True):
        pd.testing.assert_frame_equal(labels_in(found["rows"], run), run.labels)
    second = runs[1]
    second = record_change(second, plan_change(second, "rename", {"name": "a hat", "to": "headwear"}))
    export_run(second, ["huggingface,imagefolder-parquet"], load_dataset(str(source)))
    for found in loaded(tmp_path, *specs[2:4], specs[5]):
        pd.testing.assert_frame_equal(labels_in(found["rows"], second), second.labels)


@pytest.mark.slow
def test_load_dataset_reads_every_export_with_the_same_labels(tmp_path: Path) -> None:
    ids = [example.id for example in load_dataset(FACES).examples]
    matrix = random_matrix(3, len(ids), unknown=0.1)
    run = make_run(tmp_path / "run", FACES, ids, ["glasses", "a hat", "=beard"], matrix)
    export_run(run, ["all"], load_dataset(FACES))
    exported = run.folder / "export"
    specs: dict[str, tuple[list[str], dict[str, str]]] = {
        "imagefolder": (["imagefolder"], {"data_dir": f"{exported}/imagefolder"}),
        "imagefolder-parquet": (["imagefolder"], {"data_dir": f"{exported}/imagefolder-parquet"}),
        "imagefolder by its path": ([f"{exported}/imagefolder"], {}),
        "huggingface": ([f"{exported}/huggingface"], {}),
        "wide": (["parquet"], {"data_files": f"{exported}/wide.parquet"}),
        "jsonl": (["json"], {"data_files": f"{exported}/labels.jsonl"}),
    }
    for (name, _), found in zip(specs.items(), loaded(tmp_path, *specs.values()), strict=True):
        pd.testing.assert_frame_equal(labels_in(found["rows"], run), run.labels)
        assert len(found["sizes"]) == (0 if name in ("wide", "jsonl") else len(ids))
