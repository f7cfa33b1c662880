"""Data sets as people have them: the table of forms in docs/data.md, row by row, and what each form must give."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.clouds import Clouds, clouds
from tests.support.input_forms import BEGIN, END, FORMS, JOKES, PAGE, Form, outcome, table_of_forms
from twothirds.sources import Dataset


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Clouds]:
    with clouds() as made:
        yield made


def test_the_table_in_the_docs_is_what_happens(tmp_path: Path, elsewhere: Clouds) -> None:
    shown = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0].strip().splitlines()
    assert shown == table_of_forms(tmp_path, elsewhere)
    assert len(FORMS) >= 25
    assert f"## What happens with {len(FORMS)} forms" in PAGE.read_text(encoding="utf-8")


def by_name(part: str) -> Form:
    return next(one for one in FORMS if part in one.name)


def read(part: str, folder: Path, elsewhere: Clouds) -> Dataset:
    data, message = outcome(by_name(part), folder, elsewhere)
    assert data is not None, message
    return data


@pytest.mark.parametrize(
    "part",
    [
        *("UTF-8", "byte order mark", "semicolons", "tabs, and", "TSV", "UTF-16", "Windows-1252", "compressed", "`ID`"),
        *("--id-column", "without an id", "one list", "an object per line", "saved to disk", "Google", "hub"),
        *("in parts",),
    ],
)
def test_every_letter_of_a_text_arrives(tmp_path: Path, elsewhere: Clouds, part: str) -> None:
    assert [one.text for one in read(part, tmp_path, elsewhere).examples] == JOKES


@pytest.mark.parametrize(
    "part", ["Parquet with pictures", "zip", "A tar", "shards: ", "DataFrame", "on S3", "shards on S3"]
)
def test_pictures_can_be_read_again_by_their_location(tmp_path: Path, elsewhere: Clouds, part: str) -> None:
    for example in read(part, tmp_path, elsewhere).examples:
        assert example.image_bytes()
