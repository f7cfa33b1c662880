"""A process of its own that replays every recorded run with the oracle disabled, and prints what each says as JSON."""

from __future__ import annotations

import json
import locale
import random
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from tests.corpus.recorded_run import PACKED_SINCE, Disabled, crowd, label_rows, run

HERE = Path(__file__).parent


def replay(dump: Path, folder: Path, seed: int) -> dict[str, str]:
    with closing(sqlite3.connect(folder / "store.sqlite")) as connection:
        connection.executescript(dump.read_text(encoding="utf-8"))
    store, nobody = str(folder / "store.sqlite"), Disabled(crowd())
    said = run(store, folder / "run", nobody, random.Random(seed))
    return said | label_rows(store, nobody) if int(dump.stem.rpartition("-")[2]) >= PACKED_SINCE else said


def main(seed: int) -> None:
    locale.setlocale(locale.LC_ALL, "")
    said = {}
    for dump in sorted(HERE.glob("schema-*.sql")):
        with tempfile.TemporaryDirectory() as folder:
            said[dump.stem] = replay(dump, Path(folder), seed)
    print(json.dumps(said))


if __name__ == "__main__":
    main(int(sys.argv[1]))
