"""Reading folders of pictures."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pandas as pd
import pytest

from tests.support.drawn import draw, ids, reasons
from twothirds.sources.dataset import Example
from twothirds.sources.load import iter_examples, load_dataset, read_metadata


def test_a_folder_of_class_folders_is_walked_in_natural_order(tmp_path: Path) -> None:
    for name in ("dogs/10.png", "dogs/9.png", "cats/siamese/1.png", "top.png"):
        draw(tmp_path / "pets" / name)
    (tmp_path / "pets" / "notes.txt").write_text("no picture")
    draw(tmp_path / "pets" / ".thumbnails" / "1.png")
    data = load_dataset(str(tmp_path / "pets"))
    assert ids(data) == ["cats/siamese/1.png", "dogs/9.png", "dogs/10.png", "top.png"]
    assert data.name == "pets"
    assert data.quarantined == ()
    assert read_metadata(data)["label"].fillna("").tolist() == ["siamese", "dogs", "dogs", ""]


def test_many_pictures_come_in_their_order_and_few_are_read_ahead(tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f"{number}.png").write_bytes(b"" if number % 7 == 3 else number.to_bytes(4))
    read: list[str] = []

    def known(digest: str) -> bool:
        read.append(digest)
        return digest != hashlib.sha256(b"").hexdigest()

    stream = iter_examples(str(tmp_path), known=known)
    first = next(stream)
    assert len(read) < 200
    found = [first, *stream]
    assert [one.id for one in found] == [f"{number}.png" for number in range(300)]
    assert [isinstance(one, Example) for one in found] == [number % 7 != 3 for number in range(300)]


def test_the_digest_of_an_image_is_that_of_its_file_and_its_bytes_can_be_read_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = draw(tmp_path / "pets" / "a.png")
    monkeypatch.chdir(tmp_path)
    (example,) = load_dataset("pets").examples
    monkeypatch.chdir("/")
    assert example.digest == hashlib.sha256(file.read_bytes()).hexdigest()
    assert example.image_bytes() == file.read_bytes()


@pytest.mark.parametrize("format", ["csv", "jsonl", "parquet"])
def test_metadata_names_the_images_their_order_and_their_ids(tmp_path: Path, format: str) -> None:
    for name in ("x.png", "sub/y.png", "unlisted.png"):
        draw(tmp_path / name)
    table = pd.DataFrame({"file_name": ["sub/y.png", "x.png", "gone.png"], "id": ["Y", "X", "G"], "age": [1, 2, 3]})
    if format == "csv":
        table.to_csv(tmp_path / "metadata.csv", index=False)
    elif format == "jsonl":
        table.to_json(tmp_path / "metadata.jsonl", orient="records", lines=True)
    else:
        table.to_parquet(tmp_path / "metadata.parquet")
    data = load_dataset(str(tmp_path))
    assert ids(data) == ["Y", "X"]
    assert reasons(data).keys() == {"G", "unlisted.png"}
    assert read_metadata(data)["age"].astype(int).tolist() == [1, 2]


def test_metadata_cannot_reach_out_of_its_folder(tmp_path: Path) -> None:
    draw(tmp_path / "secret.png")
    draw(tmp_path / "pets" / "a.png")
    (tmp_path / "pets" / "metadata.csv").write_text("file_name\na.png\n../secret.png\n")
    data = load_dataset(str(tmp_path / "pets"))
    assert ids(data) == ["a.png"]
    assert reasons(data) == {"../secret.png": "missing file"}


def test_a_folder_with_one_table_is_that_table(tmp_path: Path) -> None:
    (tmp_path / "zoo.csv").write_text("id,text\nant,small\n")
    (tmp_path / "truth.csv").write_text("id,legs\nant,1\n")
    (tmp_path / "README.md").write_text("a card")
    data = load_dataset(str(tmp_path))
    assert ids(data) == ["ant"]
    assert data.truth is not None
    assert data.name == "-".join(tmp_path.name.split())


def test_bad_rows_are_set_aside_with_their_reason_and_the_rest_goes_on(tmp_path: Path) -> None:
    good = draw(tmp_path / "good.png")
    (tmp_path / "empty.png").touch()
    (tmp_path / "cut.png").write_bytes(good.read_bytes()[:-30])
    (tmp_path / "drawing.svg").write_text("<svg><script>alert(1)</script></svg>")
    (tmp_path / "suffix.jpg").write_bytes(good.read_bytes())
    (tmp_path / "folder.png").mkdir()
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "loop").symlink_to(tmp_path)
    data = load_dataset(str(tmp_path))
    assert ids(data) == ["good.png", "suffix.jpg"]
    assert reasons(data).keys() == {"empty.png", "cut.png", "drawing.svg", "pipe.png"}
    assert reasons(data)["empty.png"] == "empty file"
    assert "damaged" in reasons(data)["cut.png"]
    assert "PNG, JPEG" in reasons(data)["drawing.svg"]


def test_progress_counts_every_row_and_knows_the_total_where_it_can(tmp_path: Path) -> None:
    for number in range(30):
        draw(tmp_path / "pets" / f"{number}.png")
    seen: list[tuple[int, int | None]] = []
    load_dataset(str(tmp_path / "pets"), progress=lambda done, total: seen.append((done, total)))
    assert seen == [(done, 30) for done in range(1, 31)]


def test_reading_is_a_stream_that_can_be_left_at_any_time(tmp_path: Path) -> None:
    for number in range(60):
        draw(tmp_path / f"{number}.png")
    (tmp_path / "59.png").unlink()
    stream = iter_examples(str(tmp_path))
    first = next(stream)
    assert isinstance(first, Example)
    assert first.id == "0.png"
    (tmp_path / "58.png").unlink()  # not looked at so far: only a few rows are read ahead
    later = {found.id: found for found in stream}
    assert len(later) == 58
    assert not isinstance(later["58.png"], Example)
