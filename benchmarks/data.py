"""Data sets with truth for benchmarks: drawn faces, small pictures, and short texts."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.faces_model.draw import png
from benchmarks.faces_model.face import Face, sample
from benchmarks.faces_model.truth import ATTRIBUTES, visible
from twothirds.models.oracle import Feature

SIDE = 160
PAID_CROWD = "simulated?price=0.000001"  # answers at once; the labels of a free one would be computed, and not kept
PER_FOLDER = 1_000  # small pictures
TEXT = "A few words about example {}, as long as such descriptions tend to be in practice, more or less."
COMMON = (0.05, 0.95)  # shares between which an attribute is worth a label
WORDS = (
    "the market report says that early trade was calm while a new survey of readers in several towns found more "
    "interest in local news sport weather and music than in the prices of grain oil or steel this season"
)


def draw_faces(folder: Path, count: int, seed: int) -> Path:
    """So many faces, each different from the others, with what can be seen in them."""
    rng = np.random.default_rng([seed, 1])
    faces: dict[Face, None] = {}
    while len(faces) < count:
        faces[sample(rng)] = None
    images = folder / "faces"
    images.mkdir(parents=True)
    names = [f"face-{number:05d}.png" for number in range(count)]
    for name, face in zip(names, faces, strict=True):
        (images / name).write_bytes(png(face, SIDE))
    truth = ([int(seen) for seen in visible(face).values()] for face in faces)
    _write(images / "truth.csv", ["id", *ATTRIBUTES], ([name, *row] for name, row in zip(names, truth, strict=True)))
    return images


def write_faces(folder: Path, count: int, side: int) -> None:
    """So many faces without a truth, quickly: a few bytes after the end make each another file."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number in range(count):
        (folder / f"{number:06}.png").write_bytes(png(sample(rng), side) + number.to_bytes(4))


def write_texts(folder: Path, count: int, features: int, seed: int) -> Path:
    """Texts of 15 to 35 words, with a truth that has nothing to do with them: prices are measured, not answers."""
    rng = np.random.default_rng([seed, 2])
    texts = [" ".join(rng.choice(WORDS.split(), int(rng.integers(15, 36)))) + f", number {row}" for row in range(count)]
    truth = (rng.random((count, features)) < rng.uniform(*COMMON, features)).astype(int).tolist()
    return _write_dataset(folder / "texts", texts, truth)


def write_telling_texts(folder: Path, count: int, features: int, seed: int) -> Path:
    """Texts whose topics can be read from their words: each topic of a text adds three of its own eight words."""
    rng = np.random.default_rng([seed, 3])
    words = [[f"{name.split()[1].lower()}{letter}word" for letter in "abcdefgh"] for name in _topics(features)]
    truth = (rng.random((count, features)) < rng.uniform(0.05, 0.4, features)).astype(int)
    texts = []
    for row in truth:
        own = [word for topic in np.flatnonzero(row) for word in rng.choice(words[topic], 3, replace=False)]
        texts.append(" ".join(rng.permutation([*own, *rng.choice(WORDS.split(), 12)])))
    return _write_dataset(folder / "telling", texts, truth.tolist())


def _topics(count: int) -> list[str]:
    return [f"topic {chr(65 + place // 26)}{chr(65 + place % 26)}" for place in range(count)]


def _write_dataset(folder: Path, texts: Sequence[str], truth: Sequence[Sequence[int]]) -> Path:
    folder.mkdir()
    header = ["id", *_topics(len(truth[0]))]
    _write(folder / "texts.csv", ["id", "text"], ([f"t{row}", text] for row, text in enumerate(texts)))
    _write(folder / "truth.csv", header, ([f"t{row}", *values] for row, values in enumerate(truth)))
    return folder / "texts.csv"


def write_plain_texts(folder: Path, count: int) -> None:
    """As world.csv; their ids are e00000000 and so on."""
    rows = ([f"e{number:08}", TEXT.format(number)] for number in range(count))
    _write(folder / "world.csv", ["id", "text"], rows)


def write_small_pictures(folder: Path, count: int) -> list[str]:
    """One picture many times, with a few bytes after its end that make each another file; returns their paths."""
    drawn = io.BytesIO()
    Image.new("RGB", (16, 16), "teal").save(drawn, "PNG")
    names = [f"{number // PER_FOLDER:04}/{number:07}.png" for number in range(count)]
    for number, name in enumerate(names):
        if number % PER_FOLDER == 0:
            (folder / name).parent.mkdir(parents=True)
        (folder / name).write_bytes(drawn.getvalue() + number.to_bytes(8))
    return names


def write_traits(folder: Path, ids: Iterable[str], features: int) -> None:
    """A random truth, as truth.csv."""
    rng = np.random.default_rng(0)
    rows = ([name, *rng.integers(0, 2, features).tolist()] for name in ids)
    _write(folder / "truth.csv", ["id", *traits(features)], rows)


def traits(features: int) -> list[str]:
    return [f"trait {number}" for number in range(features)]


def feature_list(path: Path, names: Iterable[str]) -> list[Feature]:
    """Features with definitions of the usual length, also as a table for `enrich`."""
    features = [Feature(name, f"It can be seen or read that the example has {name}.") for name in names]
    _write(path, ["name", "definition"], [[feature.name, feature.definition] for feature in features])
    return features


def common_columns(truth: Path, count: int) -> list[str]:
    """The columns of a truth that are neither rare nor nearly everywhere, the most even ones first."""
    with truth.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    shares = np.array([[value == "1" for value in row[1:]] for row in rows]).mean(axis=0)
    order = np.argsort(np.abs(shares - 0.5), kind="stable")[:count]
    return [header[1 + place] for place in sorted(order.tolist())]


def _write(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])
