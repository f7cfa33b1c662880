"""Folders that `export` writes: built beside their place, put there whole, and in place of their own kind only."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from reports.run.folder import UNFINISHED, RunError

OWN = re.compile(r"README\.md|metadata\.(csv|parquet)|images/\d{6,}\.[a-z]+|data/train-\d{5}-of-\d{5}\.parquet")
TAG = b'"twothirds"'  # in the head of the card
HEAD_BYTES = 4096


@contextmanager
def built(folder: Path) -> Iterator[Path]:
    """A folder that takes the place of `folder` once it is complete. What an export that was killed left is removed."""
    check_replaceable(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(folder)
    building, lock = _unfinished(folder)
    try:
        yield building
        _replace(folder, building)
    finally:
        shutil.rmtree(building, ignore_errors=True)
        os.close(lock)


def _unfinished(folder: Path) -> tuple[Path, int]:
    """A new hidden folder, locked while its handle is open: that is how others know that somebody writes it."""
    while True:
        building = _hidden(folder)
        building.mkdir()
        with suppress(FileNotFoundError):  # it was taken for abandoned in the moment before it was locked
            lock = os.open(building, os.O_RDONLY)
            with suppress(OSError):  # a file system without locks, on which nothing is taken for abandoned
                fcntl.flock(lock, fcntl.LOCK_EX)
            if building.exists():
                return building, lock
            os.close(lock)


def check_replaceable(folder: Path) -> None:
    """Raises RunError where something is in the folder's place that no export has written."""
    if foreign := _foreign(folder):
        remedy = "move it away, or give another folder with --out"
        raise RunError(f"{foreign} is in the way, and it was not written by export: {remedy}")


def _foreign(folder: Path) -> Path | None:
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        return folder
    files: list[str] = []
    for current, folders, names in os.walk(folder):
        links = [name for name in folders if (Path(current) / name).is_symlink()]
        files += [os.path.relpath(os.path.join(current, name), folder) for name in (*names, *links)]
    strange = next((file for file in sorted(files) if not OWN.fullmatch(file)), None)
    if strange is not None:
        return folder / strange
    return None if not files or _has_card(folder) else folder


def _has_card(folder: Path) -> bool:
    try:
        with (folder / "README.md").open("rb") as file:
            return TAG in file.read(HEAD_BYTES)
    except OSError:
        return False


def _replace(folder: Path, building: Path) -> None:
    """The folder that was there is out of the way for no longer than a renaming takes."""
    old = _hidden(folder)
    if folder.exists():
        folder.rename(old)
    building.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def _hidden(folder: Path) -> Path:
    return folder.parent / f".{folder.name}.{secrets.token_hex(6)}{UNFINISHED}"


def _remove_abandoned(folder: Path) -> None:
    for entry in list(os.scandir(folder.parent)):
        if not (entry.name.startswith(f".{folder.name}.") and entry.name.endswith(UNFINISHED)):
            continue
        with suppress(OSError):
            handle = os.open(entry.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails where somebody writes it
                shutil.rmtree(entry.path, ignore_errors=True)
            finally:
                os.close(handle)
