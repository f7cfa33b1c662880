"""Symbolic links in a folder make no example of a picture that lies elsewhere, unless the user says so."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.support.drawn import draw, ids, reasons
from twothirds.sources.dataset import Quarantined
from twothirds.sources.errors import DatasetError
from twothirds.sources.folder import FOLLOW_LINKS
from twothirds.sources.load import load_dataset

LEADS_OUT = f"is a link that leads out of the folder: copy it there, or set {FOLLOW_LINKS}=1 to follow such links"


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    """A folder of one picture, beside a folder of private ones."""
    draw(tmp_path / "pets" / "a.png")
    draw(tmp_path / "private" / "me.png")
    draw(tmp_path / "private" / "below" / "you.png")
    return tmp_path / "pets"


def test_links_out_of_the_folder_are_set_aside_and_nothing_else_is(pets: Path) -> None:
    (pets / "b.png").symlink_to("../private/me.png")
    (pets / "c.png").symlink_to(pets.parent / "private" / "me.png")
    (pets / "d.png").symlink_to("c.png")  # a link to a link
    (pets / "e.png").symlink_to("a.png")
    (pets / "album").symlink_to(pets.parent / "private")
    draw(pets / "sub" / "f.png")
    rows = ("a.png", "again/f.png", "album/me.png", "b.png", "e.png")
    (pets / "truth.csv").write_text("id,legs\n" + "".join(f"{name},1\n" for name in rows))
    (pets / "again").symlink_to("sub")
    data = load_dataset(str(pets))
    assert ids(data) == ["a.png", "again/f.png", "e.png"]
    assert reasons(data) == dict.fromkeys(("album/", "b.png", "c.png", "d.png"), LEADS_OUT)


def test_the_user_can_have_them_followed(pets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (pets / "b.png").symlink_to("../private/me.png")
    (pets / "album").symlink_to("../private")
    monkeypatch.setenv(FOLLOW_LINKS, "1")
    assert ids(load_dataset(str(pets))) == ["a.png", "album/below/you.png", "album/me.png", "b.png"]
    monkeypatch.setenv(FOLLOW_LINKS, "0")
    assert ids(load_dataset(str(pets))) == ["a.png"]


@pytest.mark.parametrize("spelling", ["{}", "file://{}", "local://{}"])
def test_the_folder_that_the_user_names_may_be_a_link(pets: Path, spelling: str) -> None:
    (pets / "b.png").symlink_to("../private/me.png")
    (pets / "c.png").symlink_to("a.png")
    link = pets.parent / "link"
    link.symlink_to("pets")
    data = load_dataset(spelling.format(link))
    assert ids(data) == ["a.png", "c.png"]
    assert reasons(data) == {"b.png": LEADS_OUT}


def test_metadata_makes_no_example_of_a_link_out_of_the_folder(pets: Path) -> None:
    (pets / "b.png").symlink_to("../private/me.png")
    (pets / "album").symlink_to("../private")
    (pets / "metadata.csv").write_text("file_name,id\na.png,1\nb.png,2\nalbum/me.png,3\n")
    data = load_dataset(str(pets))
    assert ids(data) == ["1"]
    assert reasons(data) == {"2": LEADS_OUT, "3": "missing file", "album/": LEADS_OUT}


@pytest.mark.parametrize("name", ["metadata.csv", "truth.csv"])
def test_a_table_that_belongs_to_the_data_set_may_not_be_a_link_out_of_it(pets: Path, name: str) -> None:
    (pets.parent / "private" / "t.csv").write_text("file_name,id,legs\na.png,a.png,1\n")
    (pets / name).symlink_to("../private/t.csv")
    with pytest.raises(DatasetError, match=f"{name}' {LEADS_OUT}$"):
        load_dataset(str(pets))


def test_so_is_the_only_table_of_a_folder_but_not_a_table_that_the_user_names(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,text\n1,words\n")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "t.csv").symlink_to("../t.csv")
    with pytest.raises(DatasetError, match=f"t.csv' {LEADS_OUT}$"):
        load_dataset(str(tmp_path / "data"))
    assert ids(load_dataset(str(tmp_path / "data" / "t.csv"))) == ["1"]


def test_a_folder_of_nothing_but_links_says_so(pets: Path) -> None:
    album = pets.parent / "album"
    album.mkdir()
    (album / "link").symlink_to("../private")
    with pytest.raises(DatasetError, match=f"link/: {LEADS_OUT}$"):
        load_dataset(str(album))


def test_links_in_archives_lead_nowhere_else(pets: Path) -> None:
    me = pets.parent / "private" / "me.png"
    with tarfile.open(pets.parent / "t.tar", "w") as tar:
        tar.add(pets / "a.png", "a.png")
        for name, target, kind in (
            ("b.png", str(me), tarfile.SYMTYPE),
            ("c.png", "../private/me.png", tarfile.SYMTYPE),
            ("d.png", str(me), tarfile.LNKTYPE),
            ("e.png", "a.png", tarfile.SYMTYPE),
        ):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = kind, target
            tar.addfile(link, io.BytesIO())
    with zipfile.ZipFile(pets.parent / "z.zip", "w") as archive:
        archive.write(pets / "a.png", "a.png")
        member = zipfile.ZipInfo("b.png")
        member.create_system, member.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
        archive.writestr(member, str(me))
    tarred, zipped = (
        load_dataset(f"{kind}://::{pets.parent / name}") for kind, name in (("tar", "t.tar"), ("zip", "z.zip"))
    )
    assert (ids(tarred), ids(zipped)) == (["a.png", "e.png"], ["a.png"])
    assert reasons(tarred).keys() == {"b.png", "c.png", "d.png"}
    assert reasons(zipped).keys() == {"b.png"}


def test_many_rows_with_one_reason_are_one_line() -> None:
    from twothirds.sources.dataset import lines_of_skipped

    links = [Quarantined(f"{number}.png", LEADS_OUT) for number in range(1000)]
    others = [Quarantined("x", "empty file"), Quarantined("y", "empty file")]
    assert lines_of_skipped([*others, *links]) == [
        "left out x: empty file",
        "left out y: empty file",
        f"left out 0.png and 999 more: {LEADS_OUT}",
    ]
