"""Small files that take minutes or gigabytes to decode are refused at once, and honest pictures like them are not."""

from __future__ import annotations

import io
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.support.made import write_film
from twothirds.sources.dataset import picture_at
from twothirds.sources.pictures import film
from twothirds.sources.pictures.images import open_image, problem_of
from twothirds.sources.pictures.limits import MAX_BLOCKS, TooCostly, has_more_frames, has_more_scans
from twothirds.sources.pictures.process import DecodingProcess, Undecodable

ROOT = Path(__file__).parents[3]


def jpeg(size: int, scans: int, mode: str = "L", **options: object) -> bytes:
    """A progressive JPEG with its last scan repeated."""
    written = io.BytesIO()
    Image.new(mode, (size, size)).save(written, "JPEG", progressive=True, **options)
    whole = written.getvalue()
    return whole[:-2] + whole[whole.rfind(b"\xff\xda") : -2] * scans + whole[-2:]


def tiff_of_jpeg(size: int, scans: int) -> bytes:
    """That JPEG as the only strip of a TIFF."""
    strip = jpeg(size, scans)
    tags = ((256, size), (257, size), (258, 8), (259, 7), (262, 1), (273, 8), (277, 1), (278, size), (279, len(strip)))
    entries = [struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags]
    directory = struct.pack("<H", len(tags)) + b"".join(entries) + bytes(4)
    return b"II*\0" + struct.pack("<I", 8 + len(strip)) + strip + directory


def moving(frames: int, format: str = "GIF") -> bytes:
    written = io.BytesIO()
    pixels = np.random.default_rng(0).integers(0, 255, (frames, 30, 40, 3), np.uint8)
    pictures = [Image.fromarray(frame) for frame in pixels]
    pictures[0].save(written, format, save_all=True, append_images=pictures[1:])
    return written.getvalue()


def test_half_a_megabyte_of_scans_is_refused_at_once() -> None:
    bomb = jpeg(4000, 15_000)
    assert len(bomb) < 1_000_000
    began = time.monotonic()
    assert problem_of(bomb) == "JPEG has more than 64 scans of 4000 × 4000 pixels: save it again"
    assert time.monotonic() - began < 2


def test_scans_are_counted_and_not_what_looks_like_them() -> None:
    scans = jpeg(50, 0, "RGB").count(b"\xff\xda")
    for more in (0, 1, 95):
        content = jpeg(50, more, "RGB", comment=b"\xff\xda" * 500)
        assert not has_more_scans(content, scans + more)
        assert has_more_scans(content, scans + more - 1)
    assert problem_of(jpeg(50, 3, "RGB", comment=b"\xff\xda" * 500)) is None


@pytest.mark.parametrize("frames", [1, 2, 30])
def test_frames_of_a_gif_are_counted_as_pillow_does(frames: int) -> None:
    content = moving(frames)
    with Image.open(io.BytesIO(content)) as image:
        assert image.n_frames == frames  # type: ignore[attr-defined]
    for damaged in (content, content + b",,,", content[:-1] + b"junk,;" + b"," * 99):
        with Image.open(io.BytesIO(damaged)) as image:
            seen = image.n_frames  # type: ignore[attr-defined]
        assert has_more_frames(damaged, seen - 1)
        assert not has_more_frames(damaged, seen + (damaged != content))


def test_a_gif_of_tiny_blocks_is_not_counted_to_its_end() -> None:
    blocks = b"GIF89a" + struct.pack("<HH", 4000, 4000) + b"\0\0\0!\xfe" + b"\x01," * (MAX_BLOCKS + 1)
    began = time.monotonic()
    assert problem_of(blocks) == "GIF consists of too many small blocks: save it again"
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("format", ["GIF", "WEBP"])
def test_animations_are_limited_by_frames_times_pixels(format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    content = moving(30, format)
    assert problem_of(content) is None
    monkeypatch.setattr("twothirds.sources.pictures.limits.MAX_MOVING_PIXELS", 29 * 40 * 30)
    assert problem_of(content) == "animation has more than 29 frames of 40 × 30 pixels: make it shorter or smaller"


def test_films_are_limited_by_frames_times_pixels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = write_film(tmp_path / "a.mp4", ["red"] * 20).read_bytes()
    frames = film.frames_of_film(content, 3)
    assert len(frames) == 3
    monkeypatch.setattr(film, "MAX_FILM_PIXELS", 10 * frames[0].width * frames[0].height)
    with pytest.raises(film.FilmError, match="film has more than 10 frames of its size: cut it or make it smaller"):
        film.frames_of_film(content, 3)


def test_a_process_that_takes_too_long_is_ended_and_the_next_picture_decoded() -> None:
    decoder = DecodingProcess(cpu_seconds=1)
    began = time.monotonic()
    with pytest.raises(TooCostly, match="takes more than 1 s or 4 GB to decode: save it again"):
        decoder.decode(tiff_of_jpeg(7000, 80), 10)
    assert time.monotonic() - began < 30
    assert decoder.decode(tiff_of_jpeg(50, 3), 10).size == (10, 10)
    with pytest.raises(Undecodable):
        decoder.decode(tiff_of_jpeg(50, 3)[:-60], 10)
    assert decoder.decode(tiff_of_jpeg(50, 3), None).size == (50, 50)


def test_a_picture_that_takes_too_much_memory_is_not_decoded() -> None:
    with pytest.raises((TooCostly, Undecodable)):  # some decoders report that they get no memory
        DecodingProcess(memory=3 * 10**8).decode(tiff_of_jpeg(8000, 0), 10)


def test_threads_share_the_process(tmp_path: Path) -> None:
    (tmp_path / "a.tif").write_bytes(tiff_of_jpeg(50, 3))
    example = picture_at(tmp_path / "a.tif")
    sizes: list[tuple[int, int]] = []
    threads = [threading.Thread(target=lambda: sizes.append(open_image(example).size)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sizes == [(50, 50)] * 8


OPENING = """
import resource, sys, threading
from pathlib import Path
from twothirds.sources.dataset import picture_at
from twothirds.sources.pictures.images import open_image
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
examples = [picture_at(Path(name)) for name in sys.argv[1:]]
threads = [threading.Thread(target=open_image, args=(one,), kwargs={"longest_side": 64}) for one in examples]
for thread in threads: thread.start()
for thread in threads: thread.join()
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["F", "I;16", "RGBA"])
def test_six_large_tiffs_at_once_take_the_memory_of_one(tmp_path: Path, mode: str) -> None:
    large = tmp_path / "large.tif"
    Image.new(mode, (7900, 7900)).save(large, compression="tiff_adobe_deflate")
    assert large.stat().st_size < 500_000
    command = [sys.executable, "-c", OPENING, *[str(large)] * 6]
    megabytes = int(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)
    assert megabytes < 1_600
