"""The file of vectors: appended by several processes, and whatever is damaged in it counts as absent."""

from __future__ import annotations

import hashlib
import multiprocessing
from pathlib import Path

import numpy as np
import pytest

from twothirds.models.contrastive.vector_file import VectorFile, stored_size

SIZE = 16


def vectors(first: int, count: int, size: int = SIZE) -> dict[str, np.ndarray]:
    numbers = np.random.default_rng(first).standard_normal((count, size)).astype(np.float32)
    numbers /= np.linalg.norm(numbers, axis=1, keepdims=True)
    names = (hashlib.sha256(str(number).encode()).hexdigest() for number in range(first, first + count))
    return dict(zip(names, numbers, strict=True))


def known(path: Path, wanted: dict[str, np.ndarray]) -> list[bool]:
    """Which are there; those that are must be what was added."""
    found, there = VectorFile(path, SIZE).find(list(wanted))
    for vector, expected, is_there in zip(found, wanted.values(), there, strict=True):
        assert np.array_equal(vector, expected if is_there else np.zeros(SIZE))
    return list(map(bool, there))


def test_what_was_added_is_found_by_this_file_and_the_next(tmp_path: Path) -> None:
    file, first, second = VectorFile(tmp_path / "model", SIZE), vectors(0, 5), vectors(10, 3)
    assert not file.find(list(first))[1].any()
    file.add(first)
    assert file.find(list(first))[1].all()
    VectorFile(tmp_path / "model", SIZE).add(second)
    found, there = file.find([*second, *first, "00" * 32])
    assert there.tolist() == [True] * 8 + [False]
    assert np.array_equal(found[:8], np.stack([*second.values(), *first.values()]))


def test_it_says_whether_vectors_could_be_written(tmp_path: Path) -> None:
    (tmp_path / "no folder").touch()
    assert VectorFile(tmp_path / "model", SIZE).add(vectors(0, 2))
    assert not VectorFile(tmp_path / "no folder" / "model", SIZE).add(vectors(0, 2))


def test_a_damaged_vector_counts_as_absent_and_a_later_one_takes_its_place(tmp_path: Path) -> None:
    path, every = tmp_path / "model", vectors(0, 4)
    VectorFile(path, SIZE).add(every)
    file = tmp_path / "model.vectors"
    raw = list(every.values())[1].tobytes()
    file.write_bytes(file.read_bytes().replace(raw, raw[:-1] + bytes([raw[-1] ^ 1])))
    assert known(path, every) == [True, False, True, True]
    VectorFile(path, SIZE).add(every)
    assert all(known(path, every))


@pytest.mark.parametrize("bad", [np.nan, np.inf, 0.0, 2.0])
def test_what_is_no_unit_vector_counts_as_absent(tmp_path: Path, bad: float) -> None:
    every = vectors(0, 3)
    spoiled = {
        name: vector * np.float32(bad) if place == 1 else vector for place, (name, vector) in enumerate(every.items())
    }
    VectorFile(tmp_path / "model", SIZE).add(spoiled)
    assert known(tmp_path / "model", every) == [True, False, True]


def test_a_file_of_another_size_or_of_nothing_we_wrote_is_begun_anew(tmp_path: Path) -> None:
    path, every = tmp_path / "model", vectors(0, 3)
    VectorFile(path, 8).add(vectors(0, 3, 8))
    assert known(path, every) == [False] * 3
    VectorFile(path, SIZE).add(every)
    assert all(known(path, every))
    path.with_name("model.vectors").write_bytes(b"something else" * 300)
    assert known(path, every) == [False] * 3
    VectorFile(path, SIZE).add(every)
    assert all(known(path, every))


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    VectorFile(tmp_path / "file" / "model", SIZE).add(vectors(0, 1))
    assert known(tmp_path / "file" / "model", vectors(0, 1)) == [False]


def _append(path: Path, first: int) -> None:
    file = VectorFile(path, SIZE)
    for start in range(first, first + 50, 5):
        file.add(vectors(start, 5))


def test_processes_that_append_together_lose_nothing(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("fork")
    workers = [spawn.Process(target=_append, args=(tmp_path / "model", first)) for first in (0, 100, 200)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    every = [one for first in (0, 100, 200) for start in range(first, first + 50, 5) for one in vectors(start, 5)]
    assert VectorFile(tmp_path / "model", SIZE).find(every)[1].all()


def test_a_file_tells_the_size_of_its_vectors(tmp_path: Path) -> None:
    assert stored_size(tmp_path / "none") is None
    file = VectorFile(tmp_path / "model", 8)
    file.add({"ab" * 32: np.eye(8, dtype=np.float32)[0]})
    assert stored_size(tmp_path / "model") == 8
    (tmp_path / "model.vectors").write_bytes(b"something else" * 300)
    assert stored_size(tmp_path / "model") is None
