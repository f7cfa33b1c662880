"""An image tower as an ONNX file with a table of names: the tower is tiny and knows colours, the way to it is real."""

from __future__ import annotations

import pickle
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.support.asking import ask
from tests.support.tiny_tower import colour_vectors, write_tower
from twothirds.discovery.questions import Kind
from twothirds.flows.oracles import build_oracle
from twothirds.flows.settings import Environment
from twothirds.models.contrastive.onnx_tower import DEVIATION, TowerEmbedder, find_tower, prepared
from twothirds.models.contrastive.oracle import ContrastiveOracle
from twothirds.models.oracle import Answer, Compare, Feature, Label, OracleUnavailable, Question, Verdict
from twothirds.models.predicted import embedder_of
from twothirds.sources import load_dataset
from twothirds.sources.dataset import Example, picture_at

COLOURS = {"red": (230, 20, 20), "green": (20, 200, 20), "blue": (20, 20, 230), "yellow": (240, 230, 10)}
OTHERS = ("black", "amber")
NAMES = (*COLOURS, *OTHERS)
PLAIN = (*COLOURS.values(), (0, 0, 0), (235, 205, 20))


@pytest.fixture
def tower(tmp_path: Path) -> Path:
    return write_tower(tmp_path / "tower.onnx")


@pytest.fixture
def names(tmp_path: Path) -> Path:
    path = tmp_path / "names.txt"
    path.write_text("\n".join(NAMES) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    path = tmp_path / "vectors.npy"
    np.save(path, colour_vectors(*PLAIN).astype(np.float16))
    return path


@pytest.fixture
def oracle(tower: Path, names: Path, vectors: Path) -> ContrastiveOracle:
    return ContrastiveOracle(tower, vocabulary=names, vectors=vectors)


@pytest.fixture
def pictures(tmp_path: Path) -> dict[str, Example]:
    folder = tmp_path / "pictures"
    folder.mkdir()
    for name, colour in COLOURS.items():
        Image.new("RGB", (40, 60), colour).save(folder / f"{name}.png")
    return {name: picture_at(folder / f"{name}.png", name) for name in COLOURS}


def answers(oracle: ContrastiveOracle, questions: list[Question]) -> list[Answer]:
    found = {answer.question: answer for answer in ask(oracle, questions)}
    return [found[question] for question in questions]


def test_a_label_is_a_name_against_all_others(oracle: ContrastiveOracle, pictures: dict[str, Example]) -> None:
    table = colour_vectors(*PLAIN).astype(np.float16).astype(np.float64)
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    image = oracle.vectors([pictures["yellow"]])[0].astype(np.float64)
    fits = np.exp(100 * (table @ image - 1))
    for place, name in enumerate(NAMES):
        (answer,) = answers(oracle, [Label(Feature(name.upper()), pictures["yellow"])])
        odds = fits[place] / np.delete(fits, place).sum() * np.sqrt(len(NAMES))
        assert answer.probability is not None
        assert answer.probability == pytest.approx(odds / (1 + odds), abs=1e-4)
        assert answer.verdict is (Verdict.YES if name in ("yellow", "amber") else Verdict.NO)
        assert name != "amber" or 0.5 < answer.probability < 0.9


def test_a_comparison_names_one_of_the_names(oracle: ContrastiveOracle, pictures: dict[str, Example]) -> None:
    (answer,) = answers(oracle, [Compare(Kind.PAIR, (pictures["red"], pictures["blue"]), known=("blue",))])
    assert answer.feature == Feature("red")
    assert answer.shown == (0,)


def test_a_name_without_a_vector_is_refused(oracle: ContrastiveOracle, pictures: dict[str, Example]) -> None:
    (answer,) = answers(oracle, [Label(Feature("dog"), pictures["red"])])
    assert answer.verdict is Verdict.REFUSED
    assert answer.note == "vectors.npy has no vector of 'dog'"


def test_pictures_are_prepared_as_transformers_does_for_clip() -> None:
    transformers: Any = import_module("transformers")
    processor = transformers.CLIPImageProcessorPil()
    rng = np.random.default_rng(0)
    for shape in ((300, 231, 3), (90, 250, 3), (224, 224, 3)):
        picture = Image.fromarray(rng.integers(0, 256, shape, dtype=np.uint8))
        expected = processor(images=[picture], return_tensors="np")["pixel_values"][0]
        different = np.abs(prepared(picture, 224) - expected)
        assert different.max() < 1.01 / 255 / DEVIATION.min(), "more than one shade of 255"
        assert (different > 1e-5).mean() < 0.001


def test_a_long_and_narrow_picture_does_not_fill_the_memory() -> None:
    narrow = Image.new("RGB", (1, 2_000_000), "red")  # scaled as a whole it would take 300 TB
    assert prepared(narrow, 224).shape == (3, 224, 224)


def test_pictures_with_the_same_content_have_a_row_each(
    tower: Path, names: Path, vectors: Path, pictures: dict[str, Example]
) -> None:
    oracle = ContrastiveOracle(tower, vocabulary=names, vectors=vectors)
    assert len(oracle.vectors([pictures["red"], pictures["red"], pictures["blue"]])) == 3


@pytest.mark.parametrize(("side", "batch", "expected"), [(32, 1, 32), ("side", "batch", 224)])
def test_the_size_of_pictures_is_read_from_the_file(tmp_path: Path, side: int, batch: int, expected: int) -> None:
    embedder = TowerEmbedder(find_tower(str(write_tower(tmp_path / "other.onnx", side=side, batch=batch))))
    assert embedder._side == expected


def test_the_command_line_and_predicted_labels_share_the_vectors_of_pictures(
    tower: Path, names: Path, vectors: Path, pictures: dict[str, Example], monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = Environment.read()
    text = f"contrastive:{tower}?vocabulary={names}&vectors={vectors}"
    dataset = load_dataset(str(tower.parent / "pictures"))
    oracle = build_oracle(text, dataset, 0, environment)
    assert isinstance(oracle, ContrastiveOracle)
    first = oracle.vectors(list(pictures.values()))

    def never(*_: object) -> None:
        raise AssertionError("a picture is embedded again")

    monkeypatch.setattr(TowerEmbedder, "images", never)
    for name in (str(tower), f"contrastive:{tower}"):
        source = embedder_of(name, list(pictures.values()), environment.cache / "embeddings")
        assert np.array_equal(source.vectors(list(pictures.values())), first)
        assert source.name.startswith("tower.onnx-")


def test_other_vectors_or_another_tower_are_another_oracle(
    oracle: ContrastiveOracle, tower: Path, names: Path, vectors: Path
) -> None:
    identities = {oracle.identity}
    np.save(vectors, colour_vectors(*reversed(PLAIN)))
    identities.add(ContrastiveOracle(tower, vocabulary=names, vectors=vectors).identity)
    write_tower(tower, side=64)
    identities.add(ContrastiveOracle(tower, vocabulary=names, vectors=vectors).identity)
    (tower.parent / "tower.onnx.data").write_bytes(b"weights")
    identities.add(ContrastiveOracle(tower, vocabulary=names, vectors=vectors).identity)
    assert len(identities) == 4


def problem(model: Path, oracle: dict[str, Any]) -> str:
    """Said when it is built or loaded, in one line."""
    with pytest.raises(OracleUnavailable) as raised:
        list(ask(ContrastiveOracle(model, **oracle), [Label(Feature("cat"), Example("a", "a" * 64, image=__file__))]))
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_bad_vectors_are_one_line(tower: Path, names: Path, vectors: Path, tmp_path: Path) -> None:
    given = {"vocabulary": names, "vectors": tmp_path / "bad.npy"}
    assert "cannot be read (No such file or directory)" in problem(tower, given)
    for content in (b"", b"no numbers", pickle.dumps({"red": 1})):
        (tmp_path / "bad.npy").write_bytes(content)
        assert "is no table of numbers" in problem(tower, given)
    for table in (np.ones(6), np.ones((6, 3), int), np.array([[None] * 3] * 6)):
        np.save(tmp_path / "bad.npy", table, allow_pickle=True)
        assert "is no table of numbers" in problem(tower, given)
    np.save(tmp_path / "bad.npy", np.zeros((6, 3)))
    assert "has a row that is zero or not finite" in problem(tower, given)
    np.save(tmp_path / "bad.npy", np.ones((5, 3)))
    assert "has 5 rows, and the vocabulary 6 different names" in problem(tower, given)
    np.save(tmp_path / "bad.npy", np.ones((6, 4)))
    assert "makes vectors of 3 numbers, and those of bad.npy have 4" in problem(tower, given)
    assert "add vectors=FILE" in problem(tower, {"vocabulary": names})
    assert "add vocabulary=FILE" in problem(tower, {"vectors": vectors})
    np.save(tmp_path / "bad.npy", np.ones((1, 3)))
    assert "lets names compete, and the vocabulary has one" in problem(tower, given | {"vocabulary": ["red"]})


def test_bad_towers_are_one_line(names: Path, vectors: Path, tmp_path: Path) -> None:
    given = {"vocabulary": names, "vectors": vectors}
    assert "there is no file" in problem(tmp_path / "none.onnx", given)
    (tmp_path / "broken.onnx").write_bytes(b"no model")
    assert "tower 'broken.onnx' cannot be loaded" in problem(tmp_path / "broken.onnx", given)
    several = write_tower(tmp_path / "several.onnx", batch=8)
    assert "takes 8 × 3 × 32 × 32, not a square picture" in problem(several, given)
    with pytest.raises(OracleUnavailable, match="has a text tower of its own"):
        ContrastiveOracle(vectors=vectors)


def test_without_onnxruntime_it_says_what_to_install(
    tower: Path, names: Path, vectors: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    said = problem(tower, {"vocabulary": names, "vectors": vectors})
    assert "need onnxruntime, which is optional and not installed: pip install onnxruntime" in said


def test_texts_cannot_be_embedded_by_an_image_tower(tower: Path) -> None:
    with pytest.raises(OracleUnavailable, match="looks at pictures and reads no texts"):
        embedder_of(str(tower), [Example("a", "00", "a text")], None).vectors([Example("a", "00", "a text")])


def test_a_vocabulary_that_is_not_there_is_no_word(tower: Path, vectors: Path, pictures: dict[str, Example]) -> None:
    dataset = load_dataset(str(tower.parent / "pictures"))
    assert len(dataset.examples) == len(pictures)
    with pytest.raises(OracleUnavailable, match=r"vocabulary 'none.txt' cannot be read"):
        build_oracle(f"contrastive:{tower}?vocabulary=none.txt&vectors={vectors}", dataset, 0, Environment.read())
