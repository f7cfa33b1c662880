"""Films among the examples."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from PIL import Image

from tests.support.made import write_film
from twothirds.sources.load import load_dataset
from twothirds.sources.pictures.film import FilmError, evenly, first_frame, frames_of_film, is_film
from twothirds.sources.pictures.images import open_image


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_film(tmp_path / "a.mp4", ["red"] * 3 + ["blue"] * 3)
    write_film(tmp_path / "b.avi", ["green"] * 2)
    Image.new("RGB", (8, 8), "white").save(tmp_path / "c.png")
    return tmp_path


def test_a_folder_may_hold_films_beside_pictures(folder: Path) -> None:
    dataset = load_dataset(str(folder))
    assert [example.id for example in dataset.examples] == ["a.mp4", "b.avi", "c.png"]
    red, green = (open_image(example, longest_side=32).getpixel((5, 5)) for example in dataset.examples[:2])
    assert isinstance(red, tuple)
    assert isinstance(green, tuple)
    assert red[0] > 200 > red[1]
    assert green[1] > 100 > green[0]


def test_a_damaged_film_is_left_out_with_its_reason(folder: Path) -> None:
    whole = (folder / "a.mp4").read_bytes()
    (folder / "a.mp4").write_bytes(whole[:60])
    dataset = load_dataset(str(folder))
    assert [(skipped.id, "film" in skipped.reason) for skipped in dataset.quarantined] == [("a.mp4", True)]


def test_without_its_package_films_are_left_out_with_the_remedy(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "av", None)
    dataset = load_dataset(str(folder))
    assert [example.id for example in dataset.examples] == ["c.png"]
    assert all("pip install av" in skipped.reason for skipped in dataset.quarantined)


def test_frames_are_taken_over_the_whole_length(folder: Path) -> None:
    content = (folder / "a.mp4").read_bytes()
    assert is_film(content)
    reds = [
        pixel[0] > 120 for frame in frames_of_film(content, 4) if isinstance(pixel := frame.getpixel((9, 9)), tuple)
    ]
    assert reds == [True, True, False, False]


def test_a_container_without_film_is_no_film() -> None:
    assert not is_film(b"\0\0\0\x18ftypavif....")
    with pytest.raises(FilmError, match="convert it"):
        first_frame(b"\0\0\0\x18ftypmp42" + b"\0" * 64)


def test_frames_are_evenly_spaced() -> None:
    assert evenly(10, 4) == [0, 3, 6, 9]
    assert evenly(3, 4) == [0, 1, 2]
    assert evenly(9, 1) == [0]
