"""Unit vectors of one model by digest: appended, memory-mapped and shared by processes.

`NAME.keys` has a head and then a digest and a checksum per vector, `NAME.vectors` the numbers. Vectors are written
before their keys, so that a key without its vector, or the reverse, is a torn tail: it counts as absent, and the next
process that appends cuts it off. What fails its checksum, or is no unit vector, counts as absent too and is appended
again; of several vectors with one digest the last that is good counts."""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]  # one unit vector per row
KEY = np.dtype([("digest", "V32"), ("check", "<u4")])
MAGIC = b"twothirds vectors 1 "
ROUNDING = 1e-3  # of the length of a unit vector
GATHERED = 4096  # vectors copied out of the map before its pages are given back
MAX_STORED_SIZE = 100_000  # numbers of a vector that a file may tell
SAMPLED = 100  # digests by which the file of a data set is found
MERGED_FROM = 65_536  # new keys that are looked up in a dict before they are sorted in


def stored_size(path: Path) -> int | None:
    """How many numbers the vectors of a file have that is there already."""
    try:
        with path.with_name(f"{path.name}.keys").open("rb") as file:
            head = file.read(KEY.itemsize)
        return int(head.removeprefix(MAGIC)) if head.startswith(MAGIC) else None
    except (OSError, ValueError):
        return None


def find_stored(folder: Path, digests: Sequence[str]) -> Vectors | None:
    """Of the file that has most of them, zeros for what it lacks; None where none has half of them."""
    sample = list(digests[:: max(1, len(digests) // SAMPLED)])
    found: list[tuple[int, Path, int]] = []
    for keys in sorted(folder.glob("*.keys")):
        path = keys.with_suffix("")
        size = stored_size(path)
        if size is not None and 0 < size <= MAX_STORED_SIZE:
            found.append((int(VectorFile(path, size).find(sample)[1].sum()), path, size))
    most, path, size = max(found, key=lambda file: file[0], default=(0, folder, 0))
    return VectorFile(path, size).find(digests)[0] if 2 * most >= len(sample) > 0 else None


class VectorFile:
    """`path` is without suffix, `size` how many numbers a vector has; a file with another size counts as empty.

    A failure to write is no error: this is a cache. Not for use by several threads at once."""

    def __init__(self, path: Path, size: int) -> None:
        self._keys_path = path.with_name(f"{path.name}.keys")
        self._vectors_path = path.with_name(f"{path.name}.vectors")
        self.size, self._bytes = size, 4 * size
        self._head = (MAGIC + str(size).encode()).ljust(KEY.itemsize)
        self._forget()

    def _forget(self) -> None:
        self._indexed = 0  # vectors that can be found
        self._keys = np.empty(0, KEY)
        self._map: mmap.mmap | None = None
        self._prefixes = np.empty(0, np.uint64)  # of digests, sorted
        self._rows = np.empty(0, np.uint32)  # that go with them
        self._recent: dict[int, list[int]] = {}  # rows by prefix, not yet sorted in

    def find(self, digests: Sequence[str]) -> tuple[Vectors, NDArray[np.bool_]]:
        """The vectors, and which of them are there; the others are zeros."""
        found = np.zeros((len(digests), self.size), np.float32)
        there = np.zeros(len(digests), np.bool_)
        with contextlib.suppress(OSError, ValueError):  # not there yet, or cut off by another process meanwhile
            self._refresh()
        if self._map is None:
            return found, there
        for start in range(0, len(digests), GATHERED):
            for place in range(start, min(start + GATHERED, len(digests))):
                there[place] = self._copy(self._map, bytes.fromhex(digests[place]), found[place])
            self._map.madvise(mmap.MADV_DONTNEED)  # pages that were read count as memory of this process
        return found, there

    def add(self, new: Mapping[str, NDArray[np.float32]]) -> bool:
        """Append vectors, and say whether they could be written; safe while other processes append and read."""
        keys, vectors = np.zeros(len(new), KEY), np.stack(list(new.values())).astype("<f4")
        for place, digest in enumerate(new):
            raw = bytes.fromhex(digest)
            keys[place] = (np.void(raw), zlib.crc32(vectors[place].tobytes(), zlib.crc32(raw)))
        with contextlib.suppress(OSError), self._locked() as file:
            vectors_stored = self._count()
            with self._vectors_path.open("r+b") as numbers:
                numbers.truncate(vectors_stored * self._bytes)
                numbers.seek(0, os.SEEK_END)
                numbers.write(vectors.tobytes())
            file.truncate((1 + vectors_stored) * KEY.itemsize)
            file.write(keys.tobytes())
            file.flush()  # what is not written by now is an error here, and not when the file is closed
            return True
        return False

    @contextmanager
    def _locked(self) -> Iterator[BinaryIO]:
        """The file of keys, open for appending; begun anew where it is not this size's."""
        self._keys_path.parent.mkdir(parents=True, exist_ok=True)
        self._vectors_path.touch()
        with self._keys_path.open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            if file.read(KEY.itemsize) != self._head:
                file.truncate(0)
                file.write(self._head)
                file.flush()
            yield file

    def _count(self) -> int:
        """How many vectors have both their key and their numbers."""
        keys = self._keys_path.stat().st_size // KEY.itemsize - 1
        return max(0, min(keys, self._vectors_path.stat().st_size // self._bytes))

    def _refresh(self) -> None:
        """Take in what was appended since, by whichever process."""
        vectors_stored = self._count()
        if vectors_stored < self._indexed:
            self._forget()
        if vectors_stored == self._indexed:
            return
        with self._keys_path.open("rb") as file, self._vectors_path.open("rb") as numbers:
            if file.read(KEY.itemsize) != self._head:
                self._forget()
                return
            mapped = mmap.mmap(file.fileno(), (1 + vectors_stored) * KEY.itemsize, access=mmap.ACCESS_READ)
            self._keys = np.frombuffer(mapped, KEY)[1:]
            self._map = mmap.mmap(numbers.fileno(), vectors_stored * self._bytes, access=mmap.ACCESS_READ)
        if vectors_stored - len(self._rows) > MERGED_FROM:
            prefixes = _prefixes(self._keys)
            self._rows = np.argsort(prefixes, kind="stable").astype(np.uint32)
            self._prefixes = prefixes[self._rows]
            self._recent = {}
        else:
            for row, prefix in enumerate(_prefixes(self._keys[self._indexed :]).tolist(), start=self._indexed):
                self._recent.setdefault(prefix, []).append(row)
        self._indexed = vectors_stored

    def _copy(self, numbers: mmap.mmap, digest: bytes, to: NDArray[np.float32]) -> bool:
        """The last good vector of a digest."""
        prefix = int.from_bytes(digest[:8], "little")
        first, last = (np.searchsorted(self._prefixes, np.uint64(prefix), side) for side in ("left", "right"))
        rows = [*self._rows[first:last].tolist(), *self._recent.get(prefix, [])]
        return any(self._is_good(numbers, row, digest, to) for row in reversed(rows))

    def _is_good(self, numbers: mmap.mmap, row: int, digest: bytes, to: NDArray[np.float32]) -> bool:
        raw, key = numbers[row * self._bytes : (row + 1) * self._bytes], self._keys[row]
        if bytes(key["digest"]) != digest or zlib.crc32(raw, zlib.crc32(digest)) != key["check"]:
            return False
        vector = np.frombuffer(raw, "<f4")
        with np.errstate(all="ignore"):
            good = bool(abs(np.linalg.norm(vector) - 1) < ROUNDING)  # not true of NaN
        if good:
            to[:] = vector
        return good


def _prefixes(keys: NDArray[np.void]) -> NDArray[np.uint64]:
    digests = np.ndarray((len(keys), 8), np.uint8, keys, strides=(KEY.itemsize, 1))  # the first bytes of each
    return np.ascontiguousarray(digests).view("<u8").reshape(len(keys))
