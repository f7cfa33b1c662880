"""Adds to the corpus: `python -m tests.corpus.record` writes the recorded run in the newest schema, and its result.

Run it once when a schema is released, and commit the two new files. Those of older schemas are never written again;
with `--all` what is missing is made from the same run, in the tables and columns that the schema has."""

from __future__ import annotations

import json
import random
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from sqlalchemy import create_engine

from store.migrations import STEPS, migrate
from tests.corpus.recorded_run import crowd, run

HERE = Path(__file__).parent


def write(schemas: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        newest = Path(folder) / "store.sqlite"
        expected = run(str(newest), Path(folder) / "run", crowd(), random.Random(0))
        for schema in schemas:
            path = HERE / f"schema-{schema}.sql"
            if path.exists():
                continue
            with closing(_converted(newest, Path(folder) / f"{schema}.sqlite", schema)) as made:
                path.write_text("\n".join(made.iterdump()) + "\n", encoding="utf-8")
            text = json.dumps(expected, indent=1, ensure_ascii=False) + "\n"
            (HERE / f"schema-{schema}.json").write_text(text, encoding="utf-8")
            print(f"wrote {path.name}, {path.stat().st_size:,} bytes")


def _converted(newest: Path, path: Path, schema: int) -> sqlite3.Connection:
    """The same rows in a store of that schema."""
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        migrate(connection, "the corpus", STEPS[:schema])
    engine.dispose()
    made = sqlite3.connect(path)
    made.execute("ATTACH ? AS newest", (str(newest),))
    for (table,) in made.execute("SELECT name FROM main.sqlite_master WHERE type = 'table'").fetchall():
        if table != "twothirds_schema":
            columns = ", ".join(row[1] for row in made.execute(f"PRAGMA main.table_info({table})"))
            made.execute(f"INSERT INTO main.{table} ({columns}) SELECT {columns} FROM newest.{table}")
    made.execute("UPDATE charges SET owner = 'recorder'")  # it named the machine
    made.commit()
    made.execute("DETACH newest")
    return made


if __name__ == "__main__":
    write(list(range(1, len(STEPS) + 1)) if "--all" in sys.argv else [len(STEPS)])
