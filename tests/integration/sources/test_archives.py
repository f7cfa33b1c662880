"""Archives and saved data sets: what is hostile in them leads nowhere, and what the real libraries write is read."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from PIL import Image

from tests.support.drawn import ids, reasons
from tests.support.input_forms import JOKES, archive, picture, put, shard
from twothirds.sources import Columns, DatasetError, Vanished, load_dataset, read_metadata
from twothirds.sources.files import location

ROOT = Path(__file__).parents[3]


def test_members_that_are_links_devices_or_lead_out_are_no_way_to_private_files(tmp_path: Path) -> None:
    put(tmp_path / "private.png", picture("red"))
    with tarfile.open(tmp_path / "t.tar", "w") as tar:
        for name, kind in (
            ("link.png", tarfile.SYMTYPE),
            ("hard.png", tarfile.LNKTYPE),
            ("pipe.png", tarfile.FIFOTYPE),
        ):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, "../private.png"
            tar.addfile(member)
        for name in ("../../up.png", "/abs.png"):
            member = tarfile.TarInfo(name)
            member.size = len(picture("blue"))
            tar.addfile(member, io.BytesIO(picture("blue")))
    data = load_dataset(str(tmp_path / "t.tar"))
    assert ids(data) == ["../../up", "/abs"]  # names only: nothing is ever unpacked
    assert {one.image_bytes() for one in data.examples} == {picture("blue")}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["private.png", "t.tar"]


def test_a_name_in_an_archive_cannot_chain_to_another_file(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "secret.zip", "w") as packed:
        packed.writestr("x.png", picture("red"))
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as packed:
        packed.writestr(f"x.png::zip://x.png::file://{tmp_path}/secret.zip/y.png", picture("blue"))
        packed.writestr("fine.png", picture("green"))
    data = load_dataset(str(tmp_path / "t.zip"))
    assert ids(data) == ["fine.png"]
    assert ["lead out of the data set" in reason for reason in reasons(data).values()] == [True]


def test_members_and_tables_that_unpack_to_too_much_are_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("twothirds.sources.dataset", "twothirds.sources.webdataset", "twothirds.sources.folder"):
        monkeypatch.setattr(f"{module}.MAX_FILE_BYTES", 50_000)
    with zipfile.ZipFile(tmp_path / "t.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("bomb.png", b"\0" * 10_000_000)
        packed.writestr("fine.png", picture("green"))
    assert ids(load_dataset(str(tmp_path / "t.zip"))) == ["fine.png"]
    spec = archive(tmp_path / "t.tar", {"bomb.png": b"\0" * 100_000, "fine.png": picture("green")})
    assert reasons(load_dataset(spec)) == {"bomb": location.TOO_LARGE}
    monkeypatch.setattr("twothirds.sources.tables.delimited.MAX_CELL_CHARACTERS", 1000)
    with pytest.raises(DatasetError, match="has more than 1,000 characters"):
        load_dataset(put(tmp_path / "t.csv.gz", gzip.compress(b"id,text\na," + b"x" * 10_000_000)))


@pytest.mark.parametrize(("name", "kept"), [("t.tar", 100), ("t.tar", 600), ("t.csv.gz", 100), ("t.csv.gz", -5)])
def test_a_damaged_archive_or_compressed_table_is_reported_on_one_line(tmp_path: Path, name: str, kept: int) -> None:
    rows = "id,text\n" + "\n".join(f"{n},text {n * n}" for n in range(2000))
    whole = {"t.tar": Path(shard(tmp_path / "whole.tar", 0)).read_bytes(), "t.csv.gz": gzip.compress(rows.encode())}
    with pytest.raises(DatasetError) as caught:
        load_dataset(put(tmp_path / name, whole[name][:kept]))
    assert len(str(caught.value).splitlines()) == 1
    assert name in str(caught.value)


def test_a_shard_that_was_written_again_is_noticed(tmp_path: Path) -> None:
    data = load_dataset(shard(tmp_path / "t.tar", 0))
    archive(tmp_path / "t.tar", {"other.png": picture("green", size=(30, 30))})
    with pytest.raises(Vanished):
        data.examples[0].image_bytes()


def test_other_members_of_an_example_are_its_columns(tmp_path: Path) -> None:
    spec = archive(
        tmp_path / "t.tar",
        {
            "cats/1.png": picture("red"),
            "cats/1.json": json.dumps({"key": "k1", "joke": JOKES[0], "author": "A"}).encode(),
            "cats/2.png": picture("blue"),
            "cats/2.json": b"{broken",
        },
    )
    data = load_dataset(spec, Columns(id="key", text="joke"))
    assert [(one.id, one.text) for one in data.examples] == [("k1", JOKES[0])]
    assert read_metadata(data).to_dict("index") == {"k1": {"label": "cats", "author": "A"}}
    assert reasons(data)["cats/2"] == "its .json is not JSON"


def test_a_package_called_datasets_is_found_beside_our_folder_of_that_name(tmp_path: Path) -> None:
    put(tmp_path / "site" / "datasets" / "__init__.py", "WHO = 'the library'")
    command = [sys.executable, "-c", "import sources, datasets; print(datasets.WHO)"]
    done = subprocess.run(
        command, cwd=ROOT, env={"PYTHONPATH": f"{ROOT}:{tmp_path / 'site'}"}, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "the library"


SCRIPT = """
import sys
from datasets import Dataset, DatasetDict, Features, Image, Value
features = Features({"image": Image(), "text": Value("string")})
pictures = [f"{sys.argv[1]}/{n}.png" for n in range(5)]
made = Dataset.from_dict({"image": pictures, "text": list("abcde")}, features=features)
made.save_to_disk(f"{sys.argv[1]}/alone", num_shards=2)
DatasetDict({"train": made, "test": made}).save_to_disk(f"{sys.argv[1]}/splits")
made.to_parquet(f"{sys.argv[1]}/kept.parquet")
"""


@pytest.mark.slow
def test_what_the_real_library_saves_is_read(tmp_path: Path) -> None:
    for number in range(5):
        Image.new("RGB", (8 + number, 8), "red").save(tmp_path / f"{number}.png")
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "env")], check=True)
    python = str(tmp_path / "env" / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", "datasets==5.2.0", "pillow==12.3.0"], check=True)
    subprocess.run([python, "-c", SCRIPT, str(tmp_path)], cwd=tmp_path, env={"HOME": str(tmp_path)}, check=True)
    for spec in ("alone", "splits/train", "kept.parquet"):
        data = load_dataset(str(tmp_path / spec))
        assert [one.text for one in data.examples] == list("abcde"), spec
        assert [Image.open(io.BytesIO(one.image_bytes())).width for one in data.examples] == [8, 9, 10, 11, 12]
    with pytest.raises(DatasetError, match="holds the splits train, test: name one"):
        load_dataset(str(tmp_path / "splits"))
