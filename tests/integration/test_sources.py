"""Reading data sets from real folders, tables and file systems."""

from __future__ import annotations

import csv
import hashlib
import importlib.util
import json
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from sources.dataset import Dataset, DatasetError, Example
from sources.load import iter_examples, load_dataset


def draw(path: Path, colour: str = "red") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (12, 9), colour).save(path, "PNG")
    return path


def ids(data: Dataset) -> list[str]:
    return [example.id for example in data.examples]


def reasons(data: Dataset) -> dict[str, str]:
    return {bad.id: bad.reason for bad in data.quarantined}


@pytest.fixture
def memory() -> Iterator[fsspec.AbstractFileSystem]:
    system = fsspec.filesystem("memory")
    yield system
    system.store.clear()
    system.pseudo_dirs[:] = [""]


def test_a_folder_of_class_folders_is_walked_in_natural_order(tmp_path: Path) -> None:
    for name in ("dogs/10.png", "dogs/9.png", "cats/siamese/1.png", "top.png"):
        draw(tmp_path / "pets" / name)
    (tmp_path / "pets" / "notes.txt").write_text("no picture")
    draw(tmp_path / "pets" / ".thumbnails" / "1.png")
    data = load_dataset(str(tmp_path / "pets"))
    assert ids(data) == ["cats/siamese/1.png", "dogs/9.png", "dogs/10.png", "top.png"]
    assert data.name == "pets"
    assert data.quarantined == ()
    assert data.metadata["label"].fillna("").tolist() == ["siamese", "dogs", "dogs", ""]


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
    assert data.metadata["age"].astype(int).tolist() == [1, 2]


def test_metadata_cannot_reach_out_of_its_folder(tmp_path: Path) -> None:
    draw(tmp_path / "secret.png")
    draw(tmp_path / "pets" / "a.png")
    (tmp_path / "pets" / "metadata.csv").write_text("file_name\na.png\n../secret.png\n")
    data = load_dataset(str(tmp_path / "pets"))
    assert ids(data) == ["a.png"]
    assert reasons(data) == {"../secret.png": "missing file"}


def test_texts_are_read_alike_from_every_kind_of_table(tmp_path: Path) -> None:
    rows = [{"id": "a", "text": 'He said "no",\nthen left.', "year": 1}, {"id": "b", "text": "x" * 2**20, "year": 2}]
    table = pd.DataFrame(rows)
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_json(tmp_path / "t.jsonl", orient="records", lines=True)
    table.to_parquet(tmp_path / "t.parquet")
    loaded = [load_dataset(str(tmp_path / f"t.{suffix}")) for suffix in ("csv", "jsonl", "parquet")]
    assert len({data.digest for data in loaded}) == 1
    assert [example.text for example in loaded[0].examples] == [row["text"] for row in rows]
    assert all(data.metadata["year"].astype(int).tolist() == [1, 2] for data in loaded)


def test_images_of_a_table_lie_beside_it_or_at_an_absolute_path_or_behind_a_url(
    tmp_path: Path, memory: fsspec.AbstractFileSystem
) -> None:
    near, far = draw(tmp_path / "pics" / "near.png"), draw(tmp_path / "elsewhere" / "far.png", "blue")
    memory.pipe("/pics/remote.png", near.read_bytes())
    lines = ["id,image", "near,pics/near.png", f"far,{far}", "remote,memory://pics/remote.png", f"file,file://{far}"]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    data = load_dataset(str(tmp_path / "t.csv"))
    assert ids(data) == ["near", "far", "remote", "file"]
    assert [example.image_bytes() for example in data.examples[:2]] == [near.read_bytes(), far.read_bytes()]


def test_image_bytes_inside_a_parquet_table_stay_there_and_are_found_again(tmp_path: Path) -> None:
    red, blue = draw(tmp_path / "r.png").read_bytes(), draw(tmp_path / "sub" / "b.png", "blue").read_bytes()
    images = [
        {"bytes": red, "path": "r.png"},
        {"bytes": blue, "path": None},
        {"bytes": None, "path": "sub/b.png"},
        None,
    ]
    table = pd.DataFrame({"id": range(4), "image": pd.Series(images, dtype=object)})
    for name in ("one.parquet", "groups.parquet"):
        table.to_parquet(tmp_path / name, row_group_size=1 if name == "groups.parquet" else None)
        data = load_dataset(str(tmp_path / name))
        assert ids(data) == ["0", "1", "2"]
        assert [example.image_bytes() for example in data.examples] == [red, blue, blue]
        assert reasons(data) == {"3": "missing image"}
    pd.DataFrame({"id": range(4), "image": pd.Series([images[1]] * 4, dtype=object)}).to_parquet(
        tmp_path / name, row_group_size=1
    )
    assert data.examples[0].image_bytes() == blue


def test_bytes_in_a_binary_column_are_images_too(tmp_path: Path) -> None:
    content = draw(tmp_path / "r.png").read_bytes()
    pd.DataFrame({"id": ["a"], "image": [content]}).to_parquet(tmp_path / "t.parquet")
    (example,) = load_dataset(str(tmp_path / "t.parquet")).examples
    assert example.image_bytes() == content


def test_a_folder_with_one_table_is_that_table(tmp_path: Path) -> None:
    (tmp_path / "zoo.csv").write_text("id,text\nant,small\n")
    (tmp_path / "truth.csv").write_text("id,legs\nant,1\n")
    (tmp_path / "README.md").write_text("a card")
    data = load_dataset(str(tmp_path))
    assert ids(data) == ["ant"]
    assert data.truth is not None
    assert data.name == "-".join(tmp_path.name.split())


def test_the_same_data_set_is_read_from_memory_from_a_file_url_and_from_an_archive(
    tmp_path: Path, memory: fsspec.AbstractFileSystem
) -> None:
    folder = tmp_path / "pets"
    draw(folder / "a.png")
    draw(folder / "sub" / "b.png", "blue")
    (folder / "truth.csv").write_text("id,red\na.png,1\nsub/b.png,0\n")
    with zipfile.ZipFile(tmp_path / "pets.zip", "w") as archive:
        for file in sorted(folder.rglob("*.*")):
            archive.write(file, file.relative_to(tmp_path))
    memory.put(str(folder), "/pets", recursive=True)
    memory.put(str(tmp_path / "pets.zip"), "/pets.zip")
    specs = [str(folder), f"file://{folder}", "memory://pets", f"zip://pets::file://{tmp_path}/pets.zip"]
    loaded = [load_dataset(spec) for spec in [*specs, "memory://pets/", "zip://pets::memory://pets.zip"]]
    assert len({data.digest for data in loaded}) == 1
    assert {data.name for data in loaded} == {"pets"}
    for data in loaded:
        assert data.truth is not None
        assert data.truth.matrix.tolist() == [[1], [0]]
        assert [len(example.image_bytes()) > 0 for example in data.examples] == [True, True]


def test_a_table_in_an_archive_finds_its_images_and_the_root_of_an_archive_is_a_folder(tmp_path: Path) -> None:
    image = draw(tmp_path / "a.png").read_bytes()
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        archive.writestr("in/t.jsonl", json.dumps({"id": "a", "image": "pics/a.png"}))
        archive.writestr("in/pics/a.png", image)
    data = load_dataset(f"zip://in/t.jsonl::file://{tmp_path}/z.zip")
    assert data.examples[0].image_bytes() == image
    root = load_dataset(f"zip://::file://{tmp_path}/z.zip")
    assert (root.name, ids(root)) == ("z", ["in/pics/a.png"])


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


def test_bad_lines_of_jsonl_are_set_aside(tmp_path: Path) -> None:
    good = {"id": "good", "text": "fine\0 \u202e \ud800"}
    lines = [
        json.dumps(good).encode(),
        b"{broken",
        b'["a list"]',
        b'{"text": "no id"}',
        b'{"id": "blank", "text": " "}',
        b'{"id": "none"}',
        b'{"id": "listed", "text": ["a"]}',
        b'{"id": "good", "text": "again"}',
        b'{"id": "nopicture", "image": "gone.png"}',
        b'{"id": "nul", "image": "a\\u0000.png"}',
        b'{"id": "\\ud800", "text": "lone surrogate"}',
        b"[" * 100_000,
    ]
    (tmp_path / "t.jsonl").write_bytes(b"\n\n".join(lines))
    data = load_dataset(str(tmp_path / "t.jsonl"))
    assert [example.text for example in data.examples] == [good["text"]]
    assert [str(bad) for bad in data.quarantined] == [
        "row 2: is not JSON",
        "row 3: is not a JSON object",
        "row 4: missing id",
        "blank: empty text",
        "none: empty text",
        "listed: text is a list, not a string",
        "good: duplicate id: the first one is kept",
        "nopicture: missing file",
        "nul: image path contains a NUL",
        "'\\ud800': id is not valid Unicode: rename it",
        "row 12: is not JSON",
    ]


def test_bad_lines_of_csv_are_set_aside(tmp_path: Path) -> None:
    lines = [b"\xef\xbb\xbfid, text", b"a,fine", b"b", b"c,one,two", b"d,caf\xe9", b",no id", b"", b"e,  "]
    (tmp_path / "t.csv").write_bytes(b"\r\n".join(lines))
    data = load_dataset(str(tmp_path / "t.csv"))
    assert ids(data) == ["a"]
    assert reasons(data) == {
        "row 2": "has 1 cells where the header has 2",
        "row 3": "has 3 cells where the header has 2",
        "row 4": "is not UTF-8",
        "row 5": "missing id",
        "e": "empty text",
    }


def test_a_duplicate_of_a_row_that_was_set_aside_is_kept(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,text\na,\na,fine\n")
    assert ids(load_dataset(str(tmp_path / "t.csv"))) == ["a"]


BAD_TABLES = {
    "no-id.csv": (b"name,text\na,b\n", "no column 'id' (it has name, text)"),
    "no-text.csv": (b"id,txt\na,b\n", "no column 'text' or 'image'"),
    "empty.csv": (b"", "is empty"),
    "header.csv": (b"id,text\n", "has no rows"),
    "twice.csv": (b"id,text,text\n", "the column 'text' twice"),
    "quote.csv": (b'id,text\na,"never closed\nb,fine\n', "line 3"),
    "utf16.csv": ("id,text\na,b\n".encode("utf-16"), "save it as UTF-8"),
    "blank.csv": (b"id,text\na,\nb,\n", "nothing in data set"),
    "junk.parquet": (b"junk", "cannot be read"),
    "junk.jsonl": (b"junk\n", "nothing in data set"),
    "t.txt": (b"id,text\n", "is no table"),
    "t.zip": (b"", "zip://::"),
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_a_table_that_cannot_be_used_is_told_on_one_line_that_names_it(tmp_path: Path, name: str) -> None:
    content, part = BAD_TABLES[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DatasetError) as caught:
        load_dataset(str(tmp_path / name))
    message = str(caught.value)
    assert part in message
    assert name in message
    assert len(message.splitlines()) == 1


def test_places_without_a_data_set_are_told_on_one_line(tmp_path: Path, memory: fsspec.AbstractFileSystem) -> None:
    memory.makedirs("/hollow")
    (tmp_path / "faces").mkdir()
    (tmp_path / "faces" / "notes.txt").touch()
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "a.csv").touch()
    (tmp_path / "two" / "b.csv").touch()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "a.png").write_bytes(b"broken")
    expected = {
        f"{tmp_path}/faces": "holds no images and no table",
        f"{tmp_path}/facse": "did you mean",
        f"{tmp_path}/two": "a.csv, b.csv",
        f"{tmp_path}/broken": "nothing in data set",
        f"{tmp_path}/no/where": "there is no data set",
        "": "no data set is called ''",
        "a\0b": "no data set is called",
        "memory://hollow": "holds no images",
        "memory://gone.csv": "there is no data set",
        "nonsense://x": "nonsense",
        f"zip://::{tmp_path}/gone.zip": "missing file",
    }
    for spec, part in expected.items():
        with pytest.raises(DatasetError) as caught:
            load_dataset(spec)
        assert part in str(caught.value), spec
        assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(("spec", "package"), [("http://localhost/t.csv", "aiohttp"), ("s3://bucket/t.csv", "s3fs")])
def test_a_missing_package_is_named(tmp_path: Path, spec: str, package: str) -> None:
    if importlib.util.find_spec(package) is not None:
        pytest.skip(f"{package} is installed")
    (tmp_path / "t.csv").write_text(f"id,image\na,{spec}\n")
    for data in (spec, str(tmp_path / "t.csv")):
        with pytest.raises(DatasetError, match=f"pip install {package}$"):
            load_dataset(data)


def test_two_archives_can_be_read_at_once(tmp_path: Path) -> None:
    image = draw(tmp_path / "a.png").read_bytes()
    for name in ("one.zip", "two.zip"):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("a.png", image)
            url = f"zip://a.png::file://{tmp_path}/two.zip"
            archive.writestr("t.csv", "id,image\n" + "".join(f"{number},{url}\n" for number in range(9000)))
    streams = [iter_examples(f"zip://t.csv::file://{tmp_path}/{name}") for name in ("one.zip", "two.zip")]
    for _ in range(40):
        for found in map(next, streams):
            assert isinstance(found, Example)
            assert found.image_bytes() == image


def test_truth_is_aligned_with_the_examples_and_may_know_what_was_set_aside(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,text\nb,x\nempty,\na,y\n")
    (tmp_path / "truth.csv").write_text("id,big,red one\na,1,\nempty,1,1\nb,0,1\n")
    truth = load_dataset(str(tmp_path / "t.csv")).truth
    assert truth is not None
    assert truth.columns == ("big", "red one")
    assert truth.matrix.tolist() == [[0, 1], [1, -1]]


BAD_TRUTHS = {
    "id,big\na,1\n": "no row for example 'b': add it",
    "id,big\n": "no row for example 'a' and 1 more",
    "id,big\na,1\nb,1\nc,1\n": "id 'c', which the data set lacks",
    "id,big\na,1\na,1\nb,0\n": "two rows for id 'a'",
    "id,big\na,yes\nb,0\n": "'yes' for 'big' of id 'a': write 0, 1",
    "id,big\na\nb,0\n": "row 1",
    "name,big\na,1\n": "no column 'id'",
    "id\na\nb\n": "must name every feature",
    "id,\na,1\nb,1\n": "must name every feature",
    "": "is empty",
}


@pytest.mark.parametrize("content", BAD_TRUTHS)
def test_truth_that_does_not_fit_is_told_on_one_line(tmp_path: Path, content: str) -> None:
    (tmp_path / "t.csv").write_text("id,text\na,x\nb,y\n")
    (tmp_path / "truth.csv").write_text(content)
    with pytest.raises(DatasetError) as caught:
        load_dataset(str(tmp_path / "t.csv"))
    assert BAD_TRUTHS[content] in str(caught.value)
    assert "truth.csv" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


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


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.text(max_size=8), st.text(max_size=30)), min_size=1, max_size=8))
def test_any_texts_survive_the_way_through_csv_and_jsonl(tmp_path: Path, rows: list[tuple[str, str]]) -> None:
    with open(tmp_path / "t.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("id", "text"), *rows])
    with open(tmp_path / "t.jsonl", "w", encoding="utf-8") as file:
        file.writelines(json.dumps({"id": name, "text": text}) + "\n" for name, text in rows)
    read = []
    for name in ("t.csv", "t.jsonl"):
        found = list(iter_examples(str(tmp_path / name)))
        assert len(found) == len(rows)
        read.append([(each.id, each.text) for each in found if isinstance(each, Example)])
    assert read[0] == read[1]
    assert set(read[0]) <= set(rows)
