"""Files and exported folders are replaced atomically: built under a hidden name, locked while written, then renamed.

What a killed process left under a hidden name is removed by the next write of the same path."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from twothirds.sources import printable

UNFINISHED = ".twothirds"  # suffix of the hidden names
EXPORTED = re.compile(
    r"README\.md|metadata\.(csv|parquet)|tasks\.json|config\.xml|labels\.json|sources\.csv"
    r"|(images|data)/([\w-]+/)*\d{6,}\.[a-z]+|data/train-\d{5}-of-\d{5}(-[0-9a-f]+)?\.parquet"
)
CARD_TAG = b"- twothirds\n"  # in the head of an exported folder's card
CARD_HEAD_BYTES = 4096
MAX_HOLDER_CHARS = 200  # of the line that says who holds a folder


class RunError(Exception):
    """A run folder that cannot be read or written; the message is one line with the remedy."""


class TableBusy(RunError):
    """Another run is writing it; the message says which."""


def check_writable(folder: Path) -> None:
    """Raises RunError if the folder cannot be written, before anything is spent."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise RunError(f"cannot write to {folder} ({error.strerror}): give another folder with --out") from None


@contextmanager
def locked(folder: Path, writer: str, busy: type[RunError] = RunError) -> Iterator[None]:
    """One writer per folder, such as a discovery; the lock of a process that dies is free. Raises `busy` at once where
    another process holds it."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            who = printable(file.read(MAX_HOLDER_CHARS).strip()) or "it does not say which"
            raise busy(f"another {writer} is writing {folder} ({who}): wait for it, or give another --out") from None
        file.truncate(0)
        began = datetime.now(UTC).isoformat(timespec="seconds")
        file.write(f"process {os.getpid()} on {socket.gethostname()}, since {began}")
        file.flush()
        yield


def replace_file(path: Path, write: Callable[[IO[Any]], object], *, binary: bool = False) -> None:
    """Replace the file by what `write` writes, or leave it unchanged if that fails."""
    options: dict[str, Any] = {"mode": "wb"} if binary else {"mode": "w", "encoding": "utf-8", "newline": ""}
    building, handle = _begin(path, _new_file)
    try:
        with os.fdopen(handle, **options) as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
            building.replace(path)  # before closing, which unlocks
    except BaseException:
        building.unlink(missing_ok=True)
        raise


@contextmanager
def replaced_folder(folder: Path) -> Iterator[Path]:
    """A new folder to fill, which replaces `folder` at the end. Raises RunError where export did not write `folder`."""
    check_replaceable(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    building, lock = _begin(folder, _new_folder)
    try:
        yield building
        old = _hidden(folder)
        if folder.exists():
            folder.rename(old)
        building.rename(folder)
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(building, ignore_errors=True)
        os.close(lock)


def check_replaceable(folder: Path) -> None:
    """Raises RunError if the folder holds anything that export did not write."""
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
    foreign = next((file for file in sorted(files) if not EXPORTED.fullmatch(file)), None)
    in_classes = [file for file in sorted(files) if file.count(os.sep) > 1]
    if foreign is None and in_classes:  # folders of classes may have any name: what is in them must be listed
        listed = _listings(folder)
        foreign = next((file for file in in_classes if _below_first(file) not in listed), None)
    if foreign is not None:
        return folder / foreign
    return None if not files or _has_card(folder) else folder


def _listings(folder: Path) -> str:
    """What the tables of an exported folder say, as text."""
    import pandas as pd

    texts = []
    for name in ("metadata.csv", "tasks.json", "labels.json"):
        with suppress(OSError, ValueError):
            texts.append((folder / name).read_text(encoding="utf-8"))
    with suppress(OSError, ValueError, KeyError):
        texts.append("\n".join(pd.read_parquet(folder / "metadata.parquet")["file_name"].astype(str)))
    return "\n".join(texts)


def _below_first(file: str) -> str:
    """As tables name it: without the folder of all pictures, and without its ending, which some leave out."""
    return os.path.splitext(file.partition(os.sep)[2])[0]


def _has_card(folder: Path) -> bool:
    try:
        with (folder / "README.md").open("rb") as file:
            return CARD_TAG in file.read(CARD_HEAD_BYTES)
    except OSError:
        return False


def _begin(path: Path, create: Callable[[Path], int]) -> tuple[Path, int]:
    """A new hidden file or folder beside the path and its handle, locked while open so that it is not abandoned."""
    _remove_abandoned(path)
    while True:
        building = _hidden(path)
        try:
            handle = create(building)
        except FileNotFoundError:
            if not path.parent.exists():
                raise
            continue  # another process removed it before it was locked
        with suppress(OSError):  # a file system without locks, on which nothing is taken for abandoned
            fcntl.flock(handle, fcntl.LOCK_EX)
        if building.exists():
            return building, handle
        os.close(handle)


def _new_file(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)  # less the umask


def _new_folder(path: Path) -> int:
    path.mkdir()
    return os.open(path, os.O_RDONLY)


def _hidden(path: Path) -> Path:
    return path.parent / f".{path.name}.{secrets.token_hex(6)}{UNFINISHED}"


def _remove_abandoned(path: Path) -> None:
    for entry in list(os.scandir(path.parent)):
        if not (entry.name.startswith(f".{path.name}.") and entry.name.endswith(UNFINISHED)):
            continue
        with suppress(OSError):
            handle = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while another process writes it
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path, ignore_errors=True)
                else:
                    os.unlink(entry.path)
            finally:
                os.close(handle)
