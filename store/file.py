"""The file of an SQLite store, which must stay in its place while it is in use: commits to a deleted file are lost."""

from __future__ import annotations

import os
from typing import NamedTuple

from store.errors import StoreUnavailable


class OpenedFile(NamedTuple):
    """The file that a connection has opened, and its journal, as device and inode."""

    name: str  # of the store
    path: str
    file: tuple[int, int] | None
    journal: tuple[int, int] | None

    @classmethod
    def at(cls, name: str, path: str) -> OpenedFile:
        return cls(name, path, _identity(path), _identity(f"{path}-wal"))

    def check(self) -> None:
        """Raise StoreUnavailable if another file, or none, is now where this one was."""
        moved = self.file is None or _identity(self.path) != self.file
        if moved or (self.journal is not None and _identity(f"{self.path}-wal") != self.journal):
            raise StoreUnavailable(
                f"store {self.name} was deleted, moved or replaced while it was in use, and what was written since is "
                "not in it: put the file and its -wal back or restore a backup, then run again; nothing more is sent"
            )


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
