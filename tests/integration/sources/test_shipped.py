"""The data sets that ship, as the loader sees them, and what their builders make of their sources."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from twothirds.sources.load import load_dataset, read_metadata
from twothirds.sources.pictures.images import open_image

DATASETS = Path(__file__).resolve().parents[3] / "datasets"
LEGS = {"no legs": "0", "two legs": "2", "four legs": "4", "five legs": "5", "six legs": "6", "eight legs": "8"}
NATIVE = 15
EMOJI_GROUPS = ("animals and nature", "smileys and emotion", "food and drink")


@pytest.mark.parametrize(("name", "examples", "columns"), [("zoo", 101, 28), ("flags", 100, 0), ("emoji", 300, 67)])
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


def test_emoji_have_one_group_each_and_a_vocabulary_that_names_the_truth() -> None:
    data = load_dataset(str(DATASETS / "emoji"))
    assert data.truth is not None
    assert {open_image(example).size for example in data.examples} == {(64, 64)}
    groups = [data.truth.columns.index(name) for name in EMOJI_GROUPS]
    assert (data.truth.matrix[:, groups].sum(axis=1) == 1).all()
    assert (data.truth.matrix.sum(axis=0) >= 6).all()
    words = (DATASETS / "emoji" / "vocabulary.txt").read_text(encoding="utf-8").splitlines()
    assert set(data.truth.columns) <= set(words)
    named = read_metadata(data).loc["1f32d", "name"]
    assert named == "hot dog"


def test_emoji_are_drawn_from_the_packages_as_the_card_says(tmp_path: Path) -> None:
    """A small package of the same form: families are left out, keywords with digits too, other versions refused."""
    signs = [("1F40C", "Animals & Nature", "animal-bug"), ("2764-FE0F", "Smileys & Emotion", "heart")]
    signs += [("1F468-200D-1F469", "Smileys & Emotion", "heart"), ("1F697", "Travel & Places", "transport-ground")]
    listed = [
        {"unified": code, "category": group, "subcategory": sub, "has_img_google": True, "image": f"{code.lower()}.png"}
        for code, group, sub in signs
    ]
    about = {
        "🐌": {"default": ["snail", "Slow"], "tts": ["snail"]},
        "❤": {"default": ["heart", "143"], "tts": ["red heart"]},
    }
    files = {"emoji.json": listed, "package.json": {"name": "emoji-datasource-google", "version": "16.0.0"}}
    pictures = packed(
        tmp_path / "pictures.tgz", files, {f"img/google/64/{code.lower()}.png": b"png" for code, *_ in signs}
    )
    said = {"annotations/en/annotations.json": {"annotations": {"annotations": about}}}
    words = packed(tmp_path / "w.tgz", said | {"package.json": {"name": "cldr-annotations-full", "version": "48.2.0"}})
    command = [sys.executable, str(DATASETS / "emoji" / "build.py"), str(pictures), str(words), "--out", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True)
    with open(tmp_path / "metadata.csv", encoding="utf-8", newline="") as file:
        assert [(row["id"], row["name"]) for row in csv.DictReader(file)] == [
            ("1f40c", "snail"),
            ("2764-fe0f", "red heart"),
        ]
    assert sorted(path.name for path in (tmp_path / "images").iterdir()) == ["1f40c.png", "2764-fe0f.png"]
    packed(tmp_path / "pictures.tgz", files | {"package.json": {"name": "emoji-datasource-google", "version": "1"}})
    refused = subprocess.run(command, check=False, capture_output=True, text=True)
    assert refused.returncode == 1
    assert "take emoji-datasource-google 16.0.0" in refused.stderr


def packed(path: Path, files: Mapping[str, object], contents: Mapping[str, bytes] | None = None) -> Path:
    """As npm packs: everything in a folder `package`."""
    all_of_them = {name: json.dumps(data).encode() for name, data in files.items()} | dict(contents or {})
    with tarfile.open(path, "w:gz") as archive:
        for name, content in all_of_them.items():
            about = tarfile.TarInfo(f"package/{name}")
            about.size = len(content)
            archive.addfile(about, io.BytesIO(content))
    return path


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
