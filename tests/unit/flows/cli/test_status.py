"""The exit status tells what was given wrongly (2) from what is wrong with the machine (1) or a server (4)."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from twothirds.flows.cli.app import main
from twothirds.flows.cli.errors import explain
from twothirds.flows.errors import UsageError
from twothirds.models import OracleUnavailable, ServerAway
from twothirds.reports.run import RunError
from twothirds.store import DamagedStore, StoreError, StoreFull, StoreUnavailable
from twothirds.store.errors import explained

FULL = OSError(errno.ENOSPC, "No space left on device", "runs/faces/labels.csv")
NO_PATH = OSError(errno.ENOSPC, "No space left on device")


def wrapped(error: Callable[[str], Exception], cause: Exception) -> Exception:
    """As raised while the cause was handled."""
    try:
        try:
            raise cause
        except OSError:
            raise error("cannot write to runs/faces: give another folder") from None
    except Exception as raised:
        return raised


@pytest.mark.parametrize(
    ("error", "status", "says"),
    [
        (FULL, 1, "cannot use 'runs/faces/labels.csv' (no space left on device): free some of it and run again"),
        (NO_PATH, 1, "cannot read or write a file (no space left on device): free some of it"),
        (OSError(errno.EDQUOT, "Disk quota exceeded", "x"), 1, "disk quota exceeded"),
        (OSError(errno.EMFILE, "Too many open files", "x"), 1, "too many open files"),
        (wrapped(RunError, FULL), 1, "cannot write to runs/faces"),
        (wrapped(UsageError, FULL), 1, "cannot write to runs/faces"),
        (wrapped(StoreError, FULL), 1, "cannot write to runs/faces"),
        (PermissionError(errno.EACCES, "Permission denied", "x"), 2, "give another path"),
        (wrapped(RunError, PermissionError(errno.EACCES, "Permission denied", "x")), 2, "cannot write"),
        (ServerAway("host cannot be reached: start it"), 4, "cannot be reached"),
        (OracleUnavailable("host does not accept the API key: set it"), 2, "API key"),
        (StoreUnavailable("store x cannot be reached: start it"), 1, "cannot be reached"),
        (StoreError("store x is of an unknown kind: give a path"), 2, "unknown kind"),
        (DamagedStore("store x is damaged: restore it"), 2, "damaged"),
    ],
)
def test_the_status_is_that_of_the_cause(error: Exception, status: int, says: str) -> None:
    found, line = explain(error)
    assert found == status
    assert says in line
    assert "\n" not in line


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("database or disk is full", StoreFull),
        ("could not extend file: No space left on device", StoreFull),
        ("database is locked", StoreUnavailable),
        ("canceling statement due to lock timeout", StoreUnavailable),
        ("disk I/O error", StoreUnavailable),
        ("connection to server at 127.0.0.1 failed: Connection refused", StoreUnavailable),
        ("terminating connection due to administrator command", StoreUnavailable),
        ("the database system is starting up", StoreUnavailable),
        ('connection failed: FATAL:  password authentication failed for user "me"', StoreError),
        ('FATAL:  database "nowhere" does not exist', StoreError),
        ("attempt to write a readonly database", StoreError),
        ("unable to open database file", StoreError),
        ("file is not a database", DamagedStore),
    ],
)
def test_what_a_database_says_is_of_the_world_or_of_what_was_given(message: str, kind: type[StoreError]) -> None:
    assert type(explained("x", Exception(message))) is kind


def test_a_database_that_is_away_is_1_and_a_wrong_address_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["costs", "--store", "postgresql://me@127.0.0.1:1/answers"]) == 1
    assert main(["costs", "--store", "mysql://me@127.0.0.1:1/answers"]) == 2
    assert main(["costs", "--store", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 3
