"""The shipped faces are what their script draws."""

from __future__ import annotations

import csv
import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[4] / "datasets" / "faces"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_faces", FOLDER / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rows(name: str) -> list[dict[str, str]]:
    with (FOLDER / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_pictures_come_out_byte_for_byte(script: ModuleType) -> None:
    for identifier, face in list(script.faces().items())[::12]:
        assert script.png(face, script.SIZE) == (FOLDER / "images" / f"{identifier}.png").read_bytes()


def test_the_truth_is_that_of_the_drawn_faces(script: ModuleType) -> None:
    drawn = script.faces()
    shipped = rows("truth.csv")
    assert [row.pop("id") for row in shipped] == list(drawn)
    for row, face in zip(shipped, drawn.values(), strict=True):
        assert {name: value == "1" for name, value in row.items()} == script.visible(face)


def test_a_hundred_different_files_are_listed() -> None:
    listed = rows("metadata.csv")
    contents = {(FOLDER / row["file_name"]).read_bytes() for row in listed}
    assert len({row["id"] for row in listed}) == len(contents) == 100


def test_every_attribute_is_true_of_three_and_false_of_three_and_no_two_are_the_same() -> None:
    table = np.array([[value for name, value in row.items() if name != "id"] for row in rows("truth.csv")]) == "1"
    counts = table.sum(axis=0)
    assert 50 <= table.shape[1] <= 80
    assert counts.min() >= 3
    assert counts.max() <= 97
    assert len({column.tobytes() for column in table.T}) == table.shape[1]
