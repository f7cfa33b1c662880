"""Keys that can be packed, and statements in the database's own words."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy.exc import DBAPIError

from store import Store
from store.packed.keys import digests_of, packable
from store.sql import in_words
from store.transactions import is_conflict

GOOD = ["ab" * 32, "0f" * 32]


@pytest.mark.parametrize("bad", ["", "ab", "AB" * 32, "g" * 64, "ab" * 31 + " a", "a" * 63, "a" * 65, "é" * 64])
def test_only_digests_are_packed_also_beside_others(bad: str) -> None:
    assert packable(GOOD) == GOOD
    assert packable([GOOD[0], bad, GOOD[1]]) == GOOD
    assert packable([bad]) == []
    assert digests_of([GOOD[0], bad]) == [bytes.fromhex(GOOD[0])]


def test_keys_whose_lengths_add_up_are_told_apart() -> None:
    assert packable(["a" * 63, "a" * 65]) == []
    assert digests_of([]) == []


def test_errors_in_the_databases_own_words_are_those_that_are_retried(tmp_path: Path) -> None:
    with Store.open(str(tmp_path / "store.sqlite")) as store, store.engine.connect() as connection:
        assert in_words(connection, "SELECT ?, 2", (1,)) == [(1, 2)]
        with pytest.raises(DBAPIError, match="no such table"):
            in_words(connection, "SELECT * FROM unheard_of", ())
        connection.rollback()
        with store.engine.execution_options(writes=True).begin(), store.engine.connect() as other:
            in_words(other, "PRAGMA busy_timeout = 1", ())
            with pytest.raises(DBAPIError) as locked:
                in_words(other, "UPDATE scopes SET spent = spent", ())
            assert is_conflict(locked.value)
