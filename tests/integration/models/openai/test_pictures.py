"""Pictures, animations and films on their way to a server."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from tests.integration.models.openai.conftest import Build
from tests.support.asking import ask, bounds
from tests.support.fake_openai import CHAT, Abilities, FakeModel, FakeOpenAI
from tests.support.fake_openai.examples import labels, picture_example
from tests.support.fake_openai.mind import COLOURS
from tests.support.made import write_film
from twothirds.discovery.questions import Kind
from twothirds.models.oracle import Compare, Feature, Label, OracleUnavailable, Verdict
from twothirds.models.prompting.pictures import ImageUrls, data_url, frames_of
from twothirds.sources.dataset import Example, picture_at
from twothirds.sources.errors import DatasetError


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    with FakeOpenAI(FakeModel(["red", "green", "blue"])) as running:
        yield running


@pytest.fixture
def coloured(tmp_path: Path) -> dict[str, Example]:
    return {colour: picture_example(tmp_path, colour) for colour in COLOURS}


def opened(url: str) -> Image.Image:
    head, _, body = url.partition(",")
    assert head in ("data:image/png;base64", "data:image/jpeg;base64")
    return Image.open(io.BytesIO(base64.b64decode(body)))


def example(path: Path) -> Example:
    return picture_at(path)


def animation(path: Path, colours: list[str]) -> Example:
    frames = [Image.new("RGB", (40, 40), COLOURS[colour]) for colour in colours]
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=100, loop=0, lossless=True)
    return example(path)


@pytest.mark.parametrize("decisions", [False, True])
def test_pictures_are_compared_and_labelled(
    server: FakeOpenAI, oracle_of: Build, tmp_path: Path, decisions: bool
) -> None:
    server.abilities = Abilities(decisions=decisions)
    reds = [picture_example(tmp_path, "red", (40 + number, 30), f"red{number}") for number in range(3)]
    blues = [picture_example(tmp_path, "blue", (40 + number, 30), f"blue{number}") for number in range(3)]
    oracle = oracle_of()
    [answer] = ask(oracle, [Compare(Kind.TWO_OF_THREE, (reds[0], blues[0], reds[1]))])
    assert answer.feature is not None
    assert (answer.feature.name, answer.shown) == ("red", (0, 2))
    answers = list(ask(oracle, labels(["red", "blue"], [*reds, *blues])))
    for answer in answers:
        assert isinstance(answer.question, Label)
        has = answer.question.feature.name in answer.question.example.id
        assert answer.verdict is (Verdict.YES if has else Verdict.NO)
    assert all(bound > 0 for bound in bounds(oracle, [answer.question for answer in answers]))


def test_pictures_are_sent_small_and_with_the_detail_asked_for(
    server: FakeOpenAI, oracle_of: Build, tmp_path: Path
) -> None:
    large = picture_example(tmp_path, "green", (900, 300))
    list(ask(oracle_of(image_size=64, detail="low"), [Label(Feature("green"), large)]))
    [part] = [part for part in server.bodies(CHAT)[-1]["messages"][1]["content"] if part["type"] == "image_url"]
    assert part["image_url"]["detail"] == "low"
    assert opened(part["image_url"]["url"]).size == (64, 21)


def test_what_cameras_write_beside_the_pixels_is_not_sent(tmp_path: Path) -> None:
    path = tmp_path / "photo.jpg"
    exif = Image.Exif()
    exif[0x0112] = 6  # lying on its side
    exif[0x010F] = "Camera of Somebody"
    Image.effect_noise((60, 20), 80).convert("RGB").save(path, exif=exif)
    [url] = ImageUrls(512, 4).urls(example(path))
    sent = opened(url)
    assert sent.size == (20, 60)
    assert not sent.getexif()
    assert b"Somebody" not in base64.b64decode(url.partition(",")[2])


def test_drawings_stay_lossless_and_photographs_become_small() -> None:
    drawing = Image.new("RGB", (64, 64), "white")
    assert data_url(drawing).startswith("data:image/png")
    photograph = Image.merge("RGB", [Image.effect_noise((64, 64), 90) for _ in range(3)])
    assert data_url(photograph).startswith("data:image/jpeg")


@pytest.mark.parametrize("suffix", [".gif", ".webp"])
def test_animations_are_a_few_frames_in_order(
    server: FakeOpenAI, oracle_of: Build, tmp_path: Path, suffix: str
) -> None:
    moving = animation(tmp_path / f"moving{suffix}", ["red", "red", "green", "green", "blue", "blue"])
    [answer] = ask(oracle_of(frames=3), [Label(Feature("green"), moving)])
    assert answer.verdict is Verdict.YES
    content = server.bodies(CHAT)[-1]["messages"][1]["content"]
    urls = [part["image_url"]["url"] for part in content if part["type"] == "image_url"]
    seen = [opened(url).convert("RGB").getpixel((20, 20)) for url in urls]
    assert len(seen) == 3
    for pixel, colour in zip(seen, ("red", "green", "blue"), strict=True):
        assert isinstance(pixel, tuple)
        assert max(abs(a - b) for a, b in zip(pixel, COLOURS[colour], strict=True)) < 12
    assert "(3 frames of one moving picture, in order)" in content[0]["text"]


def test_films_are_a_few_frames(tmp_path: Path) -> None:
    path = write_film(tmp_path / "film.mp4", ["red"] * 5 + ["blue"] * 5)
    frames = frames_of(example(path), 32, 4)
    assert [frame.size for frame in frames] == [(32, 24)] * 4
    reds = [pixel[0] > 120 for frame in frames if isinstance(pixel := frame.getpixel((10, 10)), tuple)]
    assert reds == [True, True, False, False]


def test_a_film_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "broken.mp4"
    path.write_bytes(b"not a film")
    with pytest.raises(DatasetError, match=r"broken.*convert it"):
        frames_of(example(path), 32, 4)


def test_a_picture_is_made_ready_once(coloured: dict[str, Example], monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    real = Example.image_bytes

    def counted(self: Example) -> bytes:
        read.append(self.id)
        return real(self)

    monkeypatch.setattr(Example, "image_bytes", counted)
    pictures = ImageUrls(512, 4)
    first = pictures.urls(coloured["red"])
    once = len(read)
    assert pictures.urls(coloured["red"]) == first
    assert len(read) == once


def test_a_picture_that_is_gone_stops_the_run_with_its_name(
    oracle_of: Build, coloured: dict[str, Example], tmp_path: Path
) -> None:
    (tmp_path / "red.png").unlink()
    with pytest.raises(OracleUnavailable, match=r"red\.png"):
        list(ask(oracle_of(), [Label(Feature("red"), coloured["red"])]))


def test_a_model_that_does_not_see_is_one_line(
    server: FakeOpenAI, oracle_of: Build, coloured: dict[str, Example]
) -> None:
    server.abilities = Abilities(sees=False)
    with pytest.raises(
        OracleUnavailable, match=r"'gpt-4o-mini' does not accept images .*choose a model that accepts images"
    ):
        list(ask(oracle_of(), [Label(Feature("red"), coloured["red"])]))
