"""A folder elsewhere and its copy here: fetched whole before a run works on it, uploaded whole when the run is done.

Object stores have no locks and no renaming. A file arrives whole or not at all; a folder arrives file by file, the one
that says that it is complete last. Whoever finds that it was written meanwhile by somebody else uploads nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from twothirds.sources.errors import DatasetError, Unreadable
from twothirds.sources.files.location import file_system, reason_of
from twothirds.sources.printable import quoted
from twothirds.sources.secrets import with_variables

PROBE = ".twothirds"


class RemoteFolder:
    """`last` is the file that is uploaded last, and by which a change by others is recognised."""

    def __init__(self, url: str, local: Path, last: str) -> None:
        self.url, self.local, self._last = url.rstrip("/"), local, last
        self._seen: bytes | None = None

    def fetch(self, *, writable: bool = True, skip: tuple[str, ...] = ()) -> None:
        """Make the copy what the folder is now, without the folders `skip`. Raises DatasetError where it cannot be
        read, or written if it must."""
        self.local.mkdir(parents=True, exist_ok=True)
        for entry in self.local.iterdir():
            if not entry.name.startswith("."):
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        try:
            fs, path = self._system()
            if writable:
                with fs.open(f"{path}/{PROBE}", "wb") as file:
                    file.write(b"")
                fs.rm_file(f"{path}/{PROBE}")
            fs.invalidate_cache()
            for name in self._names(fs, path):
                if name.partition("/")[0] in skip:
                    continue
                target = self.local / name
                target.parent.mkdir(parents=True, exist_ok=True)
                with fs.open(f"{path}/{name}", "rb") as source, target.open("wb") as copy:
                    shutil.copyfileobj(source, copy, 2**20)
        except DatasetError:
            raise
        except Exception as error:  # file systems raise any exception
            problem = f"cannot {'write to' if writable else 'read'} {quoted(self.url)} ({reason_of(error)})"
            raise DatasetError(f"{problem}: check the bucket and its permissions, or give another --out") from None
        self._seen = self._marker(self.local / self._last)

    def deliver(self, only: str = "*") -> None:
        """Upload the copy. Raises Unreadable where that fails, or where somebody else has written the folder."""
        files = sorted(path for path in self.local.rglob(only) if path.is_file() and not path.name.startswith("."))
        files.sort(key=lambda path: path == self.local / self._last)
        try:
            fs, path = self._system()
            fs.invalidate_cache()
            if self._remote_marker(fs, f"{path}/{self._last}") != self._seen:
                raise Unreadable("somebody else has written it since this run began")
            for file in files:
                with (
                    file.open("rb") as source,
                    fs.open(f"{path}/{file.relative_to(self.local).as_posix()}", "wb") as to,
                ):
                    shutil.copyfileobj(source, to, 2**20)
        except Unreadable:
            raise
        except Exception as error:  # as above
            raise Unreadable(reason_of(error)) from None
        self._seen = self._marker(self.local / self._last)

    def _system(self) -> tuple[Any, str]:
        fs, path = file_system(with_variables(self.url))
        return fs, path.rstrip("/")

    @staticmethod
    def _names(fs: Any, path: str) -> Iterator[str]:
        """Relative to the folder; none leads out of it."""
        found = fs.find(path) if fs.exists(path) else []
        for file in found:
            name = os.path.normpath(str(file).removeprefix(f"{path}/"))
            if not name.startswith(("..", "/", ".")):
                yield name

    @staticmethod
    def _marker(path: Path) -> bytes | None:
        return path.read_bytes() if path.exists() else None

    @staticmethod
    def _remote_marker(fs: Any, path: str) -> bytes | None:
        if not fs.exists(path):
            return None
        with fs.open(path, "rb") as file:
            content: bytes = file.read()
            return content
