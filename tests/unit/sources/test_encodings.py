"""How texts are decoded, tables are told apart and JSON is streamed, whatever they hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from tests.support.input_forms import picture, put
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.sources import Columns, Dataset, DatasetError, keep_frame, load_dataset
from twothirds.sources.dataset import TEXT_LIMIT, Example, digest_of_content
from twothirds.sources.pictures.images import problem_of
from twothirds.sources.tables.encoding import decoded

WORDS = st.text(st.characters(codec="cp1252", exclude_categories=["Cc"]), min_size=1, max_size=40)
JSONABLE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=3)
    ),
    max_leaves=6,
)
OFTEN = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@given(st.text(st.characters(codec="utf-8", exclude_characters="\ufeff")))
@OFTEN
def test_utf_8_is_never_taken_for_anything_else(text: str) -> None:
    assert decoded(text.encode()) == (text, "utf-8-sig")


@given(WORDS)
@OFTEN
def test_windows_1252_is_read_where_it_cannot_be_utf_8(text: str) -> None:
    content = f"caf\xe9 {text}".encode("cp1252")
    try:
        content.decode()
    except UnicodeDecodeError:
        found, encoding = decoded(content + "déjà ".encode("cp1252") * 20)
        assert encoding == "cp1252"
        assert found.startswith(f"caf\xe9 {text}")


def test_one_damaged_row_of_many_is_set_aside_and_the_others_stay_utf_8(tmp_path: Path) -> None:
    rows = [f"{number},déjà vu".encode() for number in range(9)]
    spec = put(tmp_path / "t.csv", b"\n".join([b"id,text", *rows, b"bad,caf\xe9"]))
    data = load_dataset(spec)
    assert {one.text for one in data.examples} == {"déjà vu"}
    assert [str(one) for one in data.quarantined] == ["row 10: is not UTF-8"]


@given(
    st.lists(st.dictionaries(st.text(st.characters(codec="utf-8")), JSONABLE, max_size=4), max_size=8), st.booleans()
)
@OFTEN
def test_a_json_list_is_read_as_python_reads_it(tmp_path: Path, rows: list[dict[str, Any]], indented: bool) -> None:
    from twothirds.sources.tables import records

    spec = put(tmp_path / "t.json", json.dumps(rows, indent=1 if indented else None))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "CHUNK", 7)  # so that entries are cut anywhere
        assert list(records.json_values(spec, "utf-8", lines=False)) == [(row, None) for row in rows]


@pytest.mark.parametrize("content", ["[{]", '[{"id": 1}', "{", '[{"id": 1}, nonsense]'])
def test_a_json_list_that_is_none_is_reported_on_one_line(tmp_path: Path, content: str) -> None:
    with pytest.raises(DatasetError, match="is not JSON") as caught:
        load_dataset(put(tmp_path / "t.json", content))
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (Columns(text="joke"), "no column 'joke' (it has id, text, image): name one of these with --text-column"),
        (Columns(id="key"), "no column 'key' (it has id, text, image): name one of these with --id-column"),
    ],
)
def test_a_column_that_is_not_there_is_reported_with_those_that_are(
    tmp_path: Path, columns: Columns, message: str
) -> None:
    spec = put(tmp_path / "t.csv", "id,text,image\n1,a,\n")
    with pytest.raises(DatasetError) as caught:
        load_dataset(spec, columns)
    assert message in str(caught.value)


def test_naming_one_of_text_and_image_leaves_the_other_out(tmp_path: Path) -> None:
    put(tmp_path / "a.png", picture("red"))
    spec = put(tmp_path / "t.csv", "id,text,image\n1,words,a.png\n")
    by_name = {kind: load_dataset(spec, Columns(**{kind: kind})).examples[0] for kind in ("text", "image")}
    assert by_name["text"] == Example("1", digest_of_content("words", None), text="words")
    assert by_name["image"].digest == digest_of_content(None, picture("red"))
    both = load_dataset(spec).examples[0]
    assert both.digest not in {one.digest for one in by_name.values()}
    assert both.image_bytes() == picture("red")


def test_notes_count_what_is_cut_and_what_is_there_twice() -> None:
    texts = ["a" * TEXT_LIMIT, "b" * (TEXT_LIMIT + 1), "c" * 20_000, "d", "d", "d"]
    examples = tuple(Example(str(at), digest_of_content(text, None), text=text) for at, text in enumerate(texts))
    assert Dataset("d", "d", examples, (), None, "").notes() == [
        "2 of 6 texts are longer than 12,000 characters (up to 20,000): models are shown the beginning",
        "2 of 6 examples have the same content as another: each content is labelled once",
    ]


def test_heic_names_its_plug_in_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    heic = b"\0\0\0\x18ftypheic" + b"\0" * 12
    monkeypatch.setitem(__import__("sys").modules, "pillow_heif", None)
    assert problem_of(heic) == "a HEIC image, which needs pillow-heif: pip install pillow-heif, or convert it"


@pytest.mark.parametrize("content", [b"ID3\4", b"RIFF\0\0\0\0WAVE", b"OggS", b"fLaC", b"\0\0\0\x20ftypM4A "])
def test_audio_is_named_as_out_of_scope(content: bytes) -> None:
    assert problem_of(content) == "audio: twothirds reads pictures, films and texts, not audio: give a transcript"


def test_tables_of_python_are_kept_by_their_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "a.png", picture("red"))
    frame = pd.DataFrame({"File": ["a.png", None], "n": [1, 2]}, index=pd.Index(["x", "y"], name="id"))
    first, second = (DiscoverSettings(dataset=frame, oracle="simulated", image_column="File").dataset for _ in range(2))
    assert first == second
    data = load_dataset(first, Columns(image="File"))
    assert [(one.id, one.image_bytes()) for one in data.examples] == [("x", picture("red"))]
    drawn = pd.DataFrame({"Image": [Image.new("RGB", (3, 2))]})
    assert load_dataset(str(keep_frame(drawn, tmp_path))).examples[0].image_bytes()
    assert load_dataset(str(keep_frame(pa.table({"text": ["a"]}), tmp_path))).examples[0].text == "a"
    with pytest.raises(DatasetError, match="a dict is no data set"):
        keep_frame({"text": ["a"]}, tmp_path)


def test_a_dataset_of_the_library_writes_itself(tmp_path: Path) -> None:
    class Library:
        features = ("text",)

        def to_parquet(self, path: str) -> None:
            pd.DataFrame({"text": ["a", "b"]}).to_parquet(path)

    assert len(load_dataset(str(keep_frame(Library(), tmp_path))).examples) == 2
