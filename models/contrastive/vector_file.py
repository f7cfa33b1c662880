"""Unit vectors of one model by digest, in a SQLite file that processes share.

It is a cache: what is damaged, is no unit vector or has another size counts as absent, and what cannot be written is
computed again next time."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]  # one unit vector per row
SUFFIX = ".vectors"
TABLE = "CREATE TABLE IF NOT EXISTS vectors (digest BLOB PRIMARY KEY, vector BLOB NOT NULL, checksum INTEGER NOT NULL)"
ROUNDING = 1e-3  # of the length of a unit vector
TOGETHER = 500  # digests that are looked up in one query
BUSY_SECONDS = 30.0
SAMPLED = 100  # digests by which the file of a data set is found


class VectorFile:
    """`path` is without suffix, `size` how many numbers a vector has. Safe for many threads and processes."""

    def __init__(self, path: Path, size: int) -> None:
        self._path = path.with_name(path.name + SUFFIX)
        self.size = size

    def find(self, digests: Sequence[str]) -> tuple[Vectors, NDArray[np.bool_]]:
        """The vectors, and which of them are there; the others are zeros."""
        found, there = np.zeros((len(digests), self.size), np.float32), np.zeros(len(digests), np.bool_)
        places = dict[bytes, list[int]]()
        for place, digest in enumerate(digests):
            places.setdefault(bytes.fromhex(digest), []).append(place)
        for key, vector in self._rows(list(places)):
            found[places[key]], there[places[key]] = vector, True
        return found, there

    def _rows(self, digests: Sequence[bytes]) -> Iterator[tuple[bytes, Vectors]]:
        with suppress(sqlite3.Error), _opened(self._path) as database:
            for start in range(0, len(digests), TOGETHER):
                part = digests[start : start + TOGETHER]
                query = f"SELECT * FROM vectors WHERE digest IN ({','.join('?' * len(part))})"  # noqa: S608 (question marks only)
                for digest, raw, checksum in database.execute(query, part):
                    if len(raw) == 4 * self.size and zlib.crc32(raw, zlib.crc32(digest)) == checksum:
                        vector = np.frombuffer(raw, "<f4")
                        with np.errstate(all="ignore"):
                            is_unit = abs(np.linalg.norm(vector) - 1) < ROUNDING  # not true of NaN
                        if is_unit:
                            yield digest, vector

    def add(self, new: Mapping[str, NDArray[np.float32]]) -> bool:
        """Write vectors, and say whether they could be written."""
        rows = []
        for digest, vector in new.items():
            key, raw = bytes.fromhex(digest), vector.astype("<f4").tobytes()
            rows.append((key, raw, zlib.crc32(raw, zlib.crc32(key))))
        for _ in range(2):  # a file that is none of ours is begun again
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                with _opened(self._path, mode="rwc") as database, database:
                    database.execute(TABLE)
                    database.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)
                return True
            except sqlite3.DatabaseError as error:
                if isinstance(error, sqlite3.OperationalError):
                    return False
                self._path.unlink(missing_ok=True)
            except OSError:
                return False
        return False


@contextmanager
def _opened(path: Path, mode: str = "ro") -> Iterator[sqlite3.Connection]:
    address = f"{path.absolute().as_uri()}?mode={mode}"
    with closing(sqlite3.connect(address, timeout=BUSY_SECONDS, uri=True)) as database:
        database.execute("PRAGMA synchronous = OFF")  # after a power cut they are computed again
        yield database


def stored_size(path: Path) -> int | None:
    """How many numbers the vectors of a file have that is there already."""
    with suppress(sqlite3.Error), _opened(path.with_name(path.name + SUFFIX)) as database:
        for (size,) in database.execute("SELECT length(vector) / 4 FROM vectors LIMIT 1"):
            return int(size) or None
    return None


def find_stored(folder: Path, digests: Sequence[str]) -> Vectors | None:
    """Of the file that has most of them, zeros for what it lacks; None where none has half of them."""
    sample = list(digests[:: max(1, len(digests) // SAMPLED)])
    best: tuple[int, VectorFile | None] = 0, None
    for file in sorted(folder.glob(f"*{SUFFIX}")):
        path = file.with_name(file.name.removesuffix(SUFFIX))
        if size := stored_size(path):
            stored = VectorFile(path, size)
            best = max(best, (int(stored.find(sample)[1].sum()), stored), key=lambda found: found[0])
    most, found = best
    return found.find(digests)[0] if found is not None and 2 * most >= len(sample) > 0 else None
