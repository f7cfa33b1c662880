"""The data sets that ship, as the loader sees them, and what their builders make of their sources."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sources.load import load_dataset, read_metadata
from sources.pictures.images import open_image

DATASETS = Path(__file__).resolve().parents[3] / "datasets"
LEGS = {"no legs": "0", "two legs": "2", "four legs": "4", "five legs": "5", "six legs": "6", "eight legs": "8"}
NATIVE = 15


@pytest.mark.parametrize(("name", "examples", "columns"), [("zoo", 101, 28), ("flags", 100, 0)])
def test_a_shipped_data_set_is_read_whole(name: str, examples: int, columns: int) -> None:
    data = load_dataset(str(DATASETS / name))
    assert data.name == name
    assert len(data.examples) == len({example.digest for example in data.examples}) == examples
    assert data.quarantined == ()
    assert (0 if data.truth is None else len(data.truth.columns)) == columns


def test_flags_are_pictures_of_the_stated_size_with_the_name_of_their_country() -> None:
    data = load_dataset(str(DATASETS / "flags"))
    assert {max(open_image(example).size) for example in data.examples} == {192}
    assert read_metadata(data).loc["jp", "country"] == "Japan"


def test_every_animal_has_one_number_of_legs_and_one_type_and_a_text_that_names_it() -> None:
    data = load_dataset(str(DATASETS / "zoo"))
    assert data.truth is not None
    values = dict(zip(data.truth.columns, data.truth.matrix.T, strict=True))
    assert (np.sum([values[name] for name in LEGS], axis=0) == 1).all()
    assert (np.sum([values[name] for name in data.truth.columns[NATIVE + len(LEGS) :]], axis=0) == 1).all()
    for example in data.examples:
        letters = "".join(letter for letter in (example.text or "").lower() if letter.isalpha())
        assert example.id.removesuffix("-venomous") in letters


def original_zoo_table() -> str:
    """The table that the truth was made from, put together again from the truth."""
    with open(DATASETS / "zoo" / "truth.csv", encoding="utf-8", newline="") as file:
        animals = list(csv.DictReader(file))
    native, rest = list(animals[0])[1 : NATIVE + 1], list(animals[0])[NATIVE + 1 :]
    types = [name for name in rest if name not in LEGS]
    before, after = native[:12], native[12:]
    lines = [["name", *before, "legs", *after, "type"], ["string", *"d" * 17], ["meta", *[""] * 16, "class"]]
    for animal in animals:
        legs = next(count for name, count in LEGS.items() if animal[name] == "1")
        kind = next(name for name in types if animal[name] == "1")
        name = animal["id"].removesuffix("-venomous")
        lines.append([name, *(animal[key] for key in before), legs, *(animal[key] for key in after), kind])
    return "".join("\t".join(line) + "\n" for line in lines)


def test_the_zoo_is_rebuilt_byte_for_byte_from_the_original_table(tmp_path: Path) -> None:
    table = tmp_path / "zoo.tab"
    table.write_text(original_zoo_table(), encoding="utf-8")
    # The builder refuses any table whose SHA-256 is not that of the package: the truth holds nothing else than it.
    command = [sys.executable, str(DATASETS / "zoo" / "build.py"), str(table), "--out", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True)
    for name in ("animals.csv", "truth.csv"):
        assert (tmp_path / name).read_bytes() == (DATASETS / "zoo" / name).read_bytes()
    table.write_text(original_zoo_table().replace("wren", "hen"), encoding="utf-8")
    refused = subprocess.run(command, check=False, capture_output=True, text=True)
    assert refused.returncode == 1
    assert "SHA-256" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
