"""Opening a store from Python or in a deployment prints nothing, whatever has to be done to it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from flows.settings import open_store
from store import Store

CORPUS = Path(__file__).parents[2] / "corpus"


@pytest.mark.parametrize("schema", ["none", "schema-1"])
def test_opening_a_store_prints_nothing(schema: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "store.sqlite"
    if schema != "none":
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript((CORPUS / f"{schema}.sql").read_text(encoding="utf-8"))
    Store.open(str(path)).close()
    open_store(str(path)).close()
    assert capfd.readouterr() == ("", "")
