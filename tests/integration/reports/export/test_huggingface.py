"""The real `datasets` library, in an environment of its own, loads every folder and file that it is meant to."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from reports.export.formats import export_run
from sources.load import load_dataset
from tests.support.run_folders import make_run, random_matrix

ROOT = Path(__file__).parents[4]
LIBRARY = ("datasets==5.2.0", "pillow==12.3.0")
SCRIPT = """
import json, sys
from datasets import load_dataset

exported, cache = sys.argv[1:]
specs = {
    "imagefolder": ("imagefolder", {"data_dir": f"{exported}/imagefolder"}),
    "imagefolder-parquet": ("imagefolder", {"data_dir": f"{exported}/imagefolder-parquet"}),
    "huggingface": (f"{exported}/huggingface", {}),
    "wide": ("parquet", {"data_files": f"{exported}/wide.parquet"}),
    "jsonl": ("json", {"data_files": f"{exported}/labels.jsonl"}),
}
told = {}
for name, (spec, options) in specs.items():
    loaded = load_dataset(spec, split="train", cache_dir=cache, **options)
    sizes = [row["image"].size for row in loaded] if "image" in loaded.features else []
    rows = loaded.remove_columns(["image"]) if sizes else loaded
    told[name] = {"rows": [dict(row) for row in rows], "sizes": sizes}
print(json.dumps(told))
"""


@pytest.mark.slow
def test_load_dataset_reads_every_export_with_the_same_labels(tmp_path: Path) -> None:
    source = str(ROOT / "datasets" / "faces")
    dataset = load_dataset(source)
    ids = [example.id for example in dataset.examples]
    run = make_run(
        tmp_path / "run", source, ids, ["glasses", "a hat", "=beard"], random_matrix(3, len(ids), unknown=0.1)
    )
    export_run(run, ["all"], dataset)
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "env")], check=True)
    python = str(tmp_path / "env" / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", *LIBRARY], check=True)
    (tmp_path / "elsewhere").mkdir()
    done = subprocess.run(
        [python, "-c", SCRIPT, str(run.folder / "export"), str(tmp_path / "cache")],
        cwd=tmp_path / "elsewhere",
        env={"HF_HUB_OFFLINE": "1", "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for name, told in json.loads(done.stdout.splitlines()[-1]).items():
        rows = [row["labels"] | {"id": row["id"]} if "labels" in row else row for row in told["rows"]]
        table = pd.DataFrame(rows).rename(columns={"'=beard": "=beard"}).set_index("id").astype("Int8")
        table.index = table.index.astype(run.labels.index.dtype)
        pd.testing.assert_frame_equal(table[run.labels.columns], run.labels)
        assert len(told["sizes"]) == (len(ids) if name in ("imagefolder", "imagefolder-parquet", "huggingface") else 0)
