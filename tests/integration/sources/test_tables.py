"""Reading tables of texts and pictures."""

from __future__ import annotations

import csv
import json
import time
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.drawn import draw, ids, reasons
from twothirds.sources.dataset import Example
from twothirds.sources.errors import DatasetError, Vanished
from twothirds.sources.load import iter_examples, load_dataset, read_metadata


def test_texts_are_read_alike_from_every_kind_of_table(tmp_path: Path) -> None:
    rows = [{"id": "a", "text": 'He said "no",\nthen left.', "year": 1}, {"id": "b", "text": "x" * 2**20, "year": 2}]
    table = pd.DataFrame(rows)
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_json(tmp_path / "t.jsonl", orient="records", lines=True)
    table.to_parquet(tmp_path / "t.parquet")
    loaded = [load_dataset(str(tmp_path / f"t.{suffix}")) for suffix in ("csv", "jsonl", "parquet")]
    assert len({data.digest for data in loaded}) == 1
    assert [example.text for example in loaded[0].examples] == [row["text"] for row in rows]
    assert all(read_metadata(data)["year"].astype(int).tolist() == [1, 2] for data in loaded)


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
    with pytest.raises(Vanished, match=r"groups\.parquet#image\[0\]' of example '0' has changed since"):
        data.examples[0].image_bytes()
    assert load_dataset(str(tmp_path / name)).examples[0].image_bytes() == blue


def test_bytes_in_a_binary_column_are_images_too(tmp_path: Path) -> None:
    content = draw(tmp_path / "r.png").read_bytes()
    pd.DataFrame({"id": ["a"], "image": [content]}).to_parquet(tmp_path / "t.parquet")
    (example,) = load_dataset(str(tmp_path / "t.parquet")).examples
    assert example.image_bytes() == content


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
    "no-text.csv": (b"id,txt\na,b\n", "no column 'text' or 'image'"),
    "empty.csv": (b"", "is empty"),
    "header.csv": (b"id,text\n", "has no rows"),
    "twice.csv": (b"id,text,text\n", "the column 'text' twice"),
    "quote.csv": (b'id,text\na,"never closed\nb,fine\n', "line 3"),
    "blank.csv": (b"id,text\na,\nb,\n", "nothing in data set"),
    "junk.parquet": (b"junk", "cannot be read"),
    "junk.jsonl": (b"junk\n", "nothing in data set"),
    "t.txt": (b"id,text\n", "is not a table"),
    "t.zip": (b"", "File is not a zip file"),
    "t.tar": (b"junk", "cannot be read"),
    "t.tar.gz": (b"junk", "unpack it"),
    "t.mp3": (b"ID3", "not audio"),
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_a_table_that_cannot_be_used_is_reported_on_one_line_that_names_it(tmp_path: Path, name: str) -> None:
    content, part = BAD_TABLES[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DatasetError) as caught:
        load_dataset(str(tmp_path / name))
    message = str(caught.value)
    assert part in message
    assert name in message
    assert len(message.splitlines()) == 1


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
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


def test_a_hundred_thousand_columns_are_read_at_once(tmp_path: Path) -> None:
    names = ["id", "text", *(f"c{number}" for number in range(100_000))]
    (tmp_path / "t.csv").write_text(",".join(names) + "\n" + ",".join("a" for _ in names) + "\n")
    start = time.process_time()
    assert ids(load_dataset(str(tmp_path / "t.csv"))) == ["a"]
    assert time.process_time() - start < 5, "it took minutes before"


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl"])
def test_a_line_without_end_is_refused_before_it_fills_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("twothirds.sources.tables.delimited.MAX_CELL_CHARACTERS", 1000)
    (tmp_path / name).write_text('id,text\n{"id": "a", "text": "x"}\n' + "x" * 1001)
    with pytest.raises(DatasetError, match=r"line 3 of .* has more than 1,000 characters: write shorter ones"):
        load_dataset(str(tmp_path / name))


@pytest.mark.parametrize("image", ["x.parquet?" + "::" * 5000 + "#a[1", "a" * 20_000, "x.parquet#image[" + "9" * 5000])
def test_an_image_path_made_to_take_for_ever_is_left_out(tmp_path: Path, image: str) -> None:
    draw(tmp_path / "a.png")
    (tmp_path / "t.csv").write_text(f"id,image\na,a.png\nb,{image}\n")
    assert ids(load_dataset(str(tmp_path / "t.csv"))) == ["a"]
