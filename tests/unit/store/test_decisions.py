"""What the store decides without touching a database."""

from __future__ import annotations

import os

import pytest

from twothirds.store.engine import journal_mode
from twothirds.store.errors import masked
from twothirds.store.owners import is_dead, new_owner


@pytest.mark.parametrize(
    ("library", "mode"),
    [
        ((3, 7, 0), "delete"),
        ((3, 40, 1), "delete"),
        ((3, 44, 5), "delete"),
        ((3, 44, 6), "wal"),
        ((3, 45, 0), "delete"),
        ((3, 49, 9), "delete"),
        ((3, 50, 6), "delete"),
        ((3, 50, 7), "wal"),
        ((3, 51, 2), "delete"),
        ((3, 51, 3), "wal"),
        ((3, 52, 0), "wal"),
        ((3, 53, 4), "wal"),
        ((4, 0, 0), "wal"),
    ],
)
def test_wal_is_used_only_where_it_cannot_corrupt(library: tuple[int, int, int], mode: str) -> None:
    assert journal_mode(library) == mode


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:secret@host/db", "postgresql://me:***@host/db"),
        ("postgresql://me:sec@re/t:@host/db", "postgresql://me:***@host/db"),
        ("postgresql://:secret@host/db", "postgresql://:***@host/db"),
        ("postgresql://host/db?user=me&password=secret&x=1", "postgresql://host/db?user=me&password=***&x=1"),
        ("postgresql://me@host/db", "postgresql://me@host/db"),
        ("folder/store.sqlite", "folder/store.sqlite"),
    ],
)
def test_passwords_are_not_shown(url: str, shown: str) -> None:
    assert masked(url) == shown


def test_owners_differ_and_the_living_are_not_dead() -> None:
    assert new_owner() != new_owner()
    assert not is_dead(new_owner())


def test_a_process_number_that_was_used_again_is_another_process() -> None:
    mark, machine, process, started, own = new_owner().split("/")
    assert is_dead("/".join([mark, machine, process, str(int(started) - 1), own])) == (started != "0")


def test_nobody_elsewhere_is_declared_dead() -> None:
    mark, _machine, _process, _started, own = new_owner().split("/")
    for owner in ("", "someone", f"host:{os.getpid()}:1", f"{mark}/elsewhere/999999999/5/{own}"):
        assert not is_dead(owner)
