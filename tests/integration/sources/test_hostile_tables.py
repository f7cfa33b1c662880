"""Names and texts that spreadsheets, terminals and parsers choke on come back from the run folder as they went in."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.support.run_folders import label_table, summary_of
from twothirds.models.prompting.feature_names import clean
from twothirds.reports.finished_run import Run
from twothirds.reports.run.folder import write_run
from twothirds.sources.errors import DatasetError
from twothirds.sources.load import load_dataset
from twothirds.sources.printable import printable

HOSTILE = [
    *("=cmd|' /C calc'!A0", "+1", "-1", "@x", "'=a", "''=a", "\t=a", '"', '""', "a,b", "a;b", "a\nb", "a\r\nb", "a\rb"),
    *("\u202eevil", "שלום", "מ\u200fx", "\ufeffbom", "é", "e\u0301", "id", "NA", "null", "nan", "True", "1", "1.0"),
    *("0x1f",),
    *("#REF!", "😀", "\u2028line", "a\x0bb", "﷽" * 20, "`x`", "$(x)", "\\", "\\n", "%s", "{x}"),
]
NAMES = st.sampled_from(HOSTILE) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=12
)


def written(folder: Path, names: list[str], definition: str) -> Run:
    folder.mkdir(exist_ok=True)
    matrix = np.array([[1, 0, -1]] * len(names), np.int8)
    features = [
        {"order": order, "name": name, "definition": definition, "question": "tag", "examples": "a b", "positives": 1}
        for order, name in enumerate(names, start=1)
    ]
    answers = [{"question": {"feature": name}, "answer": {"raw": definition}} for name in names]
    summary = summary_of("t.csv", ["=a", "b", "c"], matrix, len(names), names=names)
    write_run(
        folder, summary=summary, features=features, labels=label_table(["=a", "b", "c"], names, matrix), answers=answers
    )
    return Run(folder)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=20)
@given(st.lists(NAMES, min_size=1, max_size=4, unique=True), NAMES)
@example([*HOSTILE], "=1+1")
def test_names_come_back_from_every_file(tmp_path: Path, names: list[str], definition: str) -> None:
    run = written(tmp_path / "run", names, definition)
    assert list(run.found_features["name"]) == names
    assert set(run.found_features["definition"]) == {definition}
    assert [feature.name for feature in run.found_labels.features] == names
    assert list(run.found_labels.ids) == ["=a", "b", "c"]
    assert run.found_labels.value[0].tolist() == [1, 0, -1]
    assert run.summary.to_json()["names"] == names
    lines = (tmp_path / "run" / "answers.jsonl").read_bytes().decode("utf-8").split("\n")
    assert [json.loads(line)["question"]["feature"] for line in lines if line] == names
    with (tmp_path / "run" / "labels.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert [len(row) for row in rows] == [1 + len(names)] * 4
    for cell in (cell for row in rows for cell in row):
        assert not cell.startswith(("=", "+", "-", "@", "\t", "\r"))


@pytest.mark.parametrize("name", ["a\0b", "a\ud800b", "\ud800", "a\u202e\0"])
def test_what_no_file_can_hold_is_cleaned_before_it_is_a_name(tmp_path: Path, name: str) -> None:
    name = clean(name) or "nothing"
    assert list(written(tmp_path / "run", [name], name).found_features["name"]) == [name]


PIECES = [b"id", b"text", b"image", b",", b"\n", b'"', b"\0", b"\xff", b"{", b"}", b":", b"1", b"\r", b"\xef\xbb\xbf"]
BYTES = st.binary(max_size=200) | st.lists(st.sampled_from(PIECES), max_size=30).map(b"".join)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=150)
@given(BYTES, st.sampled_from(["csv", "jsonl", "parquet", "png", "zip", "txt"]), st.booleans())
def test_any_bytes_are_a_data_set_or_one_line(tmp_path: Path, content: bytes, suffix: str, headed: bool) -> None:
    head = {"csv": b"id,text\n", "jsonl": b'{"id": 1, "text": "a"}\n'}.get(suffix, b"") if headed else b""
    for old in tmp_path.iterdir():
        old.unlink()
    path = tmp_path / f"data.{suffix}"
    path.write_bytes(head + content)
    for spec in (path, tmp_path):
        said = ""
        try:
            data = load_dataset(str(spec))
            assert data.examples
            assert len({one.id for one in data.examples}) == len(data.examples)
            assert all(printable(one.reason) == one.reason for one in data.quarantined)
        except DatasetError as error:
            said = str(error)
        assert printable(said) == said


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=60)
@given(st.integers(0, 2000), st.binary(min_size=1, max_size=8))
def test_a_damaged_parquet_file_is_a_data_set_or_one_line(tmp_path: Path, at: int, junk: bytes) -> None:
    path = tmp_path / "data.parquet"
    pd.DataFrame({"id": ["a", "b", "c"], "text": ["x", "y", "z"]}).to_parquet(path)
    whole = path.read_bytes()
    at %= len(whole)
    path.write_bytes(whole[:at] + junk + whole[at + len(junk) :])
    said = ""
    try:
        assert load_dataset(str(path)).examples
    except DatasetError as error:
        said = str(error)
    assert printable(said) == said
