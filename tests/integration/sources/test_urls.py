"""Reading data sets behind URLs and in archives, and places where there is none."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

from tests.support.drawn import draw, ids, reasons
from twothirds.sources.dataset import Example
from twothirds.sources.errors import DatasetError
from twothirds.sources.load import iter_examples, load_dataset


@pytest.fixture
def memory() -> Iterator[fsspec.AbstractFileSystem]:
    system = fsspec.filesystem("memory")
    yield system
    system.store.clear()
    system.pseudo_dirs[:] = [""]


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


def test_places_without_a_data_set_are_reported_on_one_line(tmp_path: Path, memory: fsspec.AbstractFileSystem) -> None:
    memory.makedirs("/hollow")
    (tmp_path / "faces").mkdir()
    (tmp_path / "faces" / "notes.txt").touch()
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "a.csv").touch()
    (tmp_path / "two" / "b.csv").touch()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "a.png").write_bytes(b"broken")
    expected = {
        f"{tmp_path}/faces": "nothing in data set",
        f"{tmp_path}/facse": "did you mean",
        f"{tmp_path}/two": "a.csv, b.csv",
        f"{tmp_path}/broken": "nothing in data set",
        f"{tmp_path}/no/where": "there is no data set",
        "": "no data set is called ''",
        "a\0b": "no data set is called",
        "memory://hollow": "is empty",
        "memory://gone.csv": "there is no data set",
        "nonsense://x": "nonsense",
        f"zip://::{tmp_path}/gone.zip": "missing file",
    }
    for spec, part in expected.items():
        with pytest.raises(DatasetError) as caught:
            load_dataset(spec)
        assert part in str(caught.value), spec
        assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(("spec", "package"), [("az://bucket/t.csv", "adlfs"), ("abfs://bucket/t.csv", "adlfs")])
def test_a_missing_package_is_named(tmp_path: Path, spec: str, package: str) -> None:
    if importlib.util.find_spec(package) is not None:
        pytest.skip(f"{package} is installed")
    (tmp_path / "t.csv").write_text(f"id,image\na,{spec}\n")
    for data in (spec, str(tmp_path / "t.csv")):
        with pytest.raises(DatasetError, match=f"pip install {package}$"):
            load_dataset(data)


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("file://{folder}/own.png", "may not name a file of this machine"),
        ("local://{folder}/own.png", "may not name a file of this machine"),
        ("zip://own.png::{folder}/own.zip", "may not name a file of this machine"),
        ("zip://own.png::file://{folder}/own.zip", "may not name a file of this machine"),
        ("{folder}/own.png", "missing file"),
        ("../own.png", "may not name 'memory://own.png'"),
        ("own.png::{folder}/own.zip", "would lead out of the data set"),
        ("reference://own.png::memory://refs.json", "of the kind 'reference'"),
        ("simplecache::memory://d/near.png", "of the kind 'simplecache'"),
        ("ssh://host.invalid/own.png", "of the kind 'ssh'"),
        ("github://a:b@c/own.png", "of the kind 'github'"),
    ],
)
def test_a_table_from_elsewhere_names_no_file_of_this_machine_and_no_strange_address(
    tmp_path: Path, memory: fsspec.AbstractFileSystem, address: str, reason: str
) -> None:
    own = draw(tmp_path / "own.png")
    with zipfile.ZipFile(tmp_path / "own.zip", "w") as archive:
        archive.write(own, "own.png")
    memory.pipe("/d/near.png", own.read_bytes())
    memory.pipe("/refs.json", json.dumps({"own.png": [f"file://{own}"]}).encode())
    memory.pipe("/d/t.csv", f"id,image\nnear,near.png\nfar,{address.format(folder=tmp_path)}\n".encode())
    data = load_dataset("memory://d/t.csv")
    assert ids(data) == ["near"]
    assert reason in reasons(data)["far"]


ELSEWHERE = [
    "s3://my-private-bucket/a.png",
    "s3a://my-private-bucket/a.png",
    "gs://my-private-bucket/a.png",
    "hf://datasets/me/private/a.png",
    "memory://private/a.png",
    "memory://pub/../private/a.png",
    "../private/a.png",
    "zip://a.png::memory://private/z.zip",
]


@pytest.mark.parametrize("row", ELSEWHERE)
def test_a_table_from_elsewhere_names_its_own_bucket_and_no_other(
    memory: fsspec.AbstractFileSystem, tmp_path: Path, row: str
) -> None:
    image = draw(tmp_path / "a.png").read_bytes()
    for path in ("/pub/a.png", "/private/a.png"):
        memory.pipe(path, image)
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        archive.writestr("a.png", image)
    memory.pipe("/private/z.zip", (tmp_path / "z.zip").read_bytes())
    memory.pipe("/pub/t.csv", f"id,image\nbeside,a.png\nown,memory://pub/a.png\nother,{row}\n".encode())
    data = load_dataset("memory://pub/t.csv")
    assert ids(data) == ["beside", "own"]
    assert re.fullmatch(
        r"a table from elsewhere may not name '\S+', which is read with your keys: "
        r"download the image, or set TWOTHIRDS_BUCKETS=\S+ if you trust its author",
        reasons(data)["other"],
    )


def test_a_variable_allows_more_buckets(
    memory: fsspec.AbstractFileSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.pipe("/other/a.png", draw(tmp_path / "a.png").read_bytes())
    memory.pipe("/pub/t.csv", b"id,image\na,memory://other/a.png\nb,s3://my-private-bucket/a.png\n")
    monkeypatch.setenv("TWOTHIRDS_BUCKETS", "gs://pets, memory://other/")
    data = load_dataset("memory://pub/t.csv")
    assert ids(data) == ["a"]
    assert "'s3://my-private-bucket'" in reasons(data)["b"]


@pytest.mark.parametrize("row", ["az://pets/a.png", "az://pets/t.parquet#image[0]"])
def test_a_row_whose_kind_of_address_has_no_package_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: str
) -> None:
    monkeypatch.setitem(sys.modules, "adlfs", None)
    draw(tmp_path / "a.png")
    (tmp_path / "t.csv").write_text(f"id,image\nnear,a.png\nfar,{row}\n")
    data = load_dataset(str(tmp_path / "t.csv"))
    assert ids(data) == ["near"]
    assert "needs a package that is not installed: pip install adlfs" in reasons(data)["far"]
