"""What can be wrong with a store, as one error whose message is one line with the store and the remedy."""

from __future__ import annotations

import re

_USER_PART = re.compile(r"(?<=://)([^:@\s]*):\S*(?=@)")  # up to the last @: a password may hold any character
_PASSWORD_OPTION = re.compile(r"(?i)(password|passfile|sslpassword)=[^&\s]*")


class StoreError(Exception):
    """The store cannot be used, or its connection is lost after all retries; the message says what to do."""


class DamagedStore(StoreError):
    """The file is damaged or not a store; it was left unchanged."""


class StoreUnavailable(StoreError):
    """Nothing is wrong with what was given: its server is away, its file is locked or gone."""


class StoreFull(StoreUnavailable):
    """Its disk is full: a retry fails too, until somebody frees some space."""


def masked(text: str) -> str:
    """The text without passwords of connection URLs."""
    return _PASSWORD_OPTION.sub(r"\1=***", _USER_PART.sub(r"\1:***", text))


def first_line(error: BaseException) -> str:
    """The message of the database, as one line without secrets."""
    cause = getattr(error, "orig", None) or error
    return masked(next(iter(str(cause).strip().splitlines()), type(cause).__name__).strip().rstrip(".:"))


def explained(name: str, error: BaseException) -> StoreError:
    """The error as one that a user can act on."""
    message = first_line(error)
    problem, remedy = next((remedy for sign, remedy in _REMEDIES if sign in message.lower()), _UNKNOWN)
    return _KINDS.get(problem, StoreError)(f"store {name} {problem} ({message}): {remedy}")


_UNKNOWN = ("failed", "check it with another program or give another --store")
_DAMAGED = ("is damaged or not a store", "it was left as it is; restore a copy of it or give another --store")
_UNREACHABLE = ("cannot be reached", "start the server or give another --store, then run again")
_FULL = ("cannot grow", "free some space on its disk and run again")
_LOCKED = ("stayed locked by another process", "end that process and run again")
_BROKEN_DISK = ("cannot be read or written", "check its disk and run again")
_KINDS: dict[str, type[StoreError]] = {
    **{problem: StoreUnavailable for problem, _ in (_UNREACHABLE, _LOCKED, _BROKEN_DISK)},
    _DAMAGED[0]: DamagedStore,
    _FULL[0]: StoreFull,
}
_REMEDIES = (
    ("not a database", _DAMAGED),
    ("malformed", _DAMAGED),
    ("unsupported file format", _DAMAGED),
    ("could not decode", _DAMAGED),
    ("codec can't decode", _DAMAGED),  # the message itself quotes damaged bytes
    ("foreign key mismatch", _DAMAGED),  # the definition of a table was altered
    ("disk is full", _FULL),
    ("no space left", _FULL),
    ("readonly", ("is read-only", "make the file and its folder writable or give another --store")),
    ("read-only", ("is read-only", "make it writable or give another --store")),
    ("is locked", _LOCKED),
    ("lock timeout", _LOCKED),
    ("could not obtain lock", _LOCKED),
    ("unable to open", ("cannot be opened", "give a file in a folder that can be written with --store")),
    ("disk i/o", _BROKEN_DISK),
    ("password authentication", ("refused the user", "correct the user and password in --store")),
    ("does not exist", ("is not there", "create the database and the user or correct the names in --store")),
    ("connection option", ("has an unknown option", "correct what follows the ? in --store")),
    ("permission denied", ("refused the user", "grant the right to create tables or give another --store")),
    ("connect", _UNREACHABLE),
    ("could not translate host", _UNREACHABLE),
    ("failed to resolve host", _UNREACHABLE),
    ("timeout", _UNREACHABLE),
    ("terminat", _UNREACHABLE),
    ("shutting down", _UNREACHABLE),
    ("starting up", _UNREACHABLE),
)
