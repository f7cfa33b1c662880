"""What of reading data sets can be said without a file."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from twothirds.sources.dataset import Example, Quarantined, digest_of_content, digest_of_examples
from twothirds.sources.files.location import child, file_name, parent
from twothirds.sources.folder import natural_order
from twothirds.sources.pictures.images import problem_of
from twothirds.sources.pictures.limits import MAX_PIXELS
from twothirds.sources.rows import name_and_problem
from twothirds.sources.tables.parquet import cell_location, cell_of
from twothirds.sources.tables.records import Record

texts = st.text(alphabet=st.characters(codec=None, categories=None), max_size=40)


def encoded(image: Image.Image, format: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format, **options)
    return buffer.getvalue()


def test_numbers_in_file_names_are_ordered_by_their_value() -> None:
    names = ["b/1.png", "a/10.png", "a-1.png", "a/2.png", "a/02.png", "c.png"]
    assert sorted(names, key=natural_order) == ["a/02.png", "a/2.png", "a/10.png", "a-1.png", "b/1.png", "c.png"]


@given(st.lists(texts, unique=True))
def test_natural_order_tells_any_two_names_apart(names: list[str]) -> None:
    assert len({natural_order(name) for name in names}) == len(names)


@given(texts, texts)
def test_two_texts_have_the_same_digest_only_if_they_are_the_same(one: str, other: str) -> None:
    assert (digest_of_content(one, None) == digest_of_content(other, None)) == (one == other)


def test_the_digest_of_a_data_set_depends_on_ids_contents_and_order() -> None:
    a, b = Example("a", "1"), Example("b", "2")
    sets = [[a, b], [b, a], [a], [Example("a", "2"), b], [Example("a1", ""), b], []]
    assert len({digest_of_examples(examples) for examples in sets}) == len(sets)


@pytest.mark.parametrize(
    ("url", "above", "below", "name"),
    [
        ("/data/pets.csv", "/data", "/data/pets.csv/x", "pets.csv"),
        ("memory://a/pets.csv", "memory://a", "memory://a/pets.csv/x", "pets.csv"),
        (
            "zip://in/pets.csv::file:///a.zip",
            "zip://in::file:///a.zip",
            "zip://in/pets.csv/x::file:///a.zip",
            "pets.csv",
        ),
        ("zip://::file:///data/a.zip", "zip://::file:///data/a.zip", "zip://x::file:///data/a.zip", "a.zip"),
        ("simplecache::s3://b/c.csv", "simplecache::s3://b", "simplecache::s3://b/c.csv/x", "c.csv"),
    ],
)
def test_paths_are_found_inside_chained_urls(url: str, above: str, below: str, name: str) -> None:
    assert (parent(url), child(url, "x"), file_name(url)) == (above, below, name)


@given(st.sampled_from(["/data/a.parquet", "zip://a.parquet::memory://z.zip"]), st.integers(0, 10**9))
def test_the_location_of_a_cell_can_be_read_back(table: str, row: int) -> None:
    assert cell_of(cell_location(table, "image", row)) == (table, "image", row)
    assert cell_of(table) is None


@pytest.mark.parametrize("value", [None, "", "  ", float("nan"), [], {}, "a\nb", "a\0", "\ud800"])
def test_an_id_that_no_file_could_hold_is_a_problem(value: Any) -> None:
    assert name_and_problem(Record(3, {"id": value}))[1] is not None


def test_numbers_are_ids_too() -> None:
    assert name_and_problem(Record(1, {"id": 7})) == ("7", None)


def test_a_quarantined_row_is_reported_on_one_line() -> None:
    assert len(str(Quarantined("a\nb", "empty text")).splitlines()) == 1


@pytest.mark.parametrize("format", ["PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF"])
def test_whole_images_have_no_problem_and_cut_ones_do(format: str) -> None:
    content = encoded(Image.effect_noise((64, 48), 60).convert("RGB"), format)
    assert problem_of(content) is None
    assert problem_of(content[: len(content) // 2]) is not None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not an image",
        b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>",
        encoded(Image.new("RGB", (8, 8)), "ICO"),
        encoded(Image.new("L", (8, 8)), "PPM"),
    ],
)
def test_what_is_no_image_of_an_accepted_format_is_a_problem(content: bytes) -> None:
    assert problem_of(content) is not None


def test_an_image_with_too_many_pixels_is_refused_before_it_is_decoded() -> None:
    just_over = Image.new("1", (10_000, MAX_PIXELS // 10_000 + 1))
    reason = problem_of(encoded(just_over, "PNG"))
    assert reason is not None
    assert "million pixels" in reason


@given(st.binary(max_size=300), st.integers(0, 400), st.sampled_from(["PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF"]))
def test_no_bytes_raise_anything(junk: bytes, at: int, format: str) -> None:
    content = encoded(Image.new("RGB", (9, 7), "red"), format)
    reason = problem_of(content[:at] + junk + content[at + len(junk) :])
    assert reason is None or len(reason.splitlines()) == 1
