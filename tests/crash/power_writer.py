"""A process of its own that pays for one answer after another and says of each, in a file, that it is kept.

Arguments: the folder, the journal (`wal` or `delete`), and how commits are synced: `ours`, `full` or `normal`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from sqlalchemy import event

import twothirds.store.engine
from tests.support.store_steps import begin, pay
from twothirds.store import Store, text_key

ROUNDS, ANSWERS = 2, 10  # the store is closed in between, and with it its journal


def main(folder: Path, journal: str, syncing: str) -> None:
    twothirds.store.engine.journal_mode = lambda library_version: journal  # noqa: ARG005 (its name belongs to its type)
    acknowledged = os.open(folder / "acknowledged", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for turn in range(ROUNDS):
        with Store.open(str(folder / "store.sqlite")) as opened:
            if syncing != "ours":
                event.listen(opened.engine, "checkout", lambda raw, *_: raw.execute(f"PRAGMA synchronous={syncing}"))
            begin(opened, f"run {turn}")
            for number in range(ANSWERS):
                name = f"key-{turn}-{number}"
                pay(opened, [(name,)], run_id=f"run {turn}")
                os.write(acknowledged, f"{text_key(name)}\n".encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
