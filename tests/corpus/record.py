"""Adds to the corpus: `python -m tests.corpus.record` writes the recorded run in the newest schema, and its result.

Run it once when a schema is released, and commit the two new files. Those of older schemas are never written again."""

from __future__ import annotations

import json
import random
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from store.migrations import STEPS
from tests.corpus.recorded_run import crowd, label_rows, run

HERE = Path(__file__).parent


def write() -> None:
    path = HERE / f"schema-{len(STEPS)}.sql"
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store.sqlite"
        expected = run(str(store), Path(folder) / "run", crowd(), random.Random(0)) | label_rows(str(store), crowd())
        with closing(sqlite3.connect(store)) as made:
            made.execute("UPDATE charges SET owner = 'recorder'")  # it named the machine
            path.write_text("\n".join(made.iterdump()) + "\n", encoding="utf-8")
    path.with_suffix(".json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"wrote {path.name}, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    write()
