"""A disk whose power is cut: what was synced is there, and of the rest nothing, all, the first part, or any sectors.

A name is in its folder, or gone from it, for certain only once the folder is synced."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

SECTOR = 512
ENTRY = struct.Struct("<cIqQ")
Write = tuple[int, bytes | None]  # at an offset; None: the file is cut off there
FATES = ("nothing", "all", "the first part", "any sectors")


@dataclass(frozen=True)
class Change:
    """One call that the process made: c(reate), w(rite), t(runcate), u(nlink), s(ync)."""

    what: str
    name: str  # of the file; empty: the folder itself
    offset: int
    data: bytes


def read_log(log: Path, folder: Path) -> Iterator[Change]:
    content, at = log.read_bytes(), 0
    while at < len(content):
        what, length, offset, size = ENTRY.unpack_from(content, at)
        at += ENTRY.size
        path, at = content[at : at + length].decode(), at + length
        data = b""
        if what == b"w":
            data, at = content[at : at + size], at + size
        yield Change(what.decode(), path.removeprefix(str(folder)).lstrip("/"), offset, data)


@dataclass
class File:
    synced: bytearray = field(default_factory=bytearray)
    waiting: list[Write] = field(default_factory=list)

    def sync(self) -> None:
        self.synced = self.left(self.waiting)
        self.waiting = []

    def left(self, survived: list[Write]) -> bytearray:
        content = bytearray(self.synced)
        for offset, data in survived:
            if data is None:
                content = content[:offset].ljust(offset, b"\0")
            else:
                content = content.ljust(offset + len(data), b"\0")
                content[offset : offset + len(data)] = data
        return content


class Disk:
    def __init__(self) -> None:
        self._synced: dict[str, File] = {}
        self._names: dict[str, File] = {}
        self._waiting: list[tuple[str, File | None]] = []  # names made, or with None taken away

    def apply(self, change: Change) -> None:
        if change.what == "c":
            self._rename(change.name, File())
        elif change.what == "u":
            self._rename(change.name, None)
        elif change.what == "s" and change.name == "":
            self._synced, self._waiting = dict(self._names), []
        elif change.name in self._names:  # else it was unlinked, and whoever has it open may write what they will
            file = self._names[change.name]
            if change.what == "s":
                file.sync()
            else:
                file.waiting.append((change.offset, change.data if change.what == "w" else None))

    def _rename(self, name: str, file: File | None) -> None:
        self._waiting.append((name, file))
        if file is None:
            self._names.pop(name, None)
        else:
            self._names[name] = file

    def after_a_cut(self, fate: str, dice: random.Random) -> dict[str, bytes]:
        """What is in the folder when the power is back."""
        names = dict(self._synced)
        for name, file in self._waiting[: _how_many(fate, len(self._waiting), dice)]:
            names.pop(name, None)
            if file is not None:
                names[name] = file
        return {name: bytes(file.left(_survivors(file.waiting, fate, dice))) for name, file in names.items()}


def _how_many(fate: str, count: int, dice: random.Random) -> int:
    return {"nothing": 0, "all": count}.get(fate, dice.randint(0, count))


def _survivors(waiting: list[Write], fate: str, dice: random.Random) -> list[Write]:
    if fate != "any sectors":
        return waiting[: _how_many(fate, len(waiting), dice)]
    pieces: list[Write] = []
    for offset, data in waiting:
        if data is None:
            pieces.append((offset, None))
        else:
            pieces += [(offset + at, data[at : at + SECTOR]) for at in range(0, len(data), SECTOR)]
    return [piece for piece in pieces if dice.random() < 0.5]
