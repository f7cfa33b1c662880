"""The training script, on so few faces that only its course can be looked at."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.faces_model import train as training
from benchmarks.faces_model.draw import DRAWN_SIZE, png, seen_pixels
from benchmarks.faces_model.face import training_faces
from benchmarks.faces_model.train import Course, Phrasing, build_tokenizer, roughened, train
from tests.support.asking import ask
from twothirds.models.contrastive.embeddings import Embedder
from twothirds.models.contrastive.oracle import SHIPPED, ContrastiveOracle
from twothirds.models.contrastive.vocabulary import read
from twothirds.models.local.files import find_model
from twothirds.models.oracle import Feature, Label, Verdict
from twothirds.sources.dataset import picture_at
from twothirds.sources.pictures.images import open_image


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "COURSES", (Course(2, 2e-3, rough=False), Course(1, 2e-3, rough=True)))
        patch.setattr(training, "WARM_UP", 1)
        train(folder, faces=training.BATCH)
    return folder


def test_what_it_saves_is_a_model_that_answers(trained: Path, tmp_path: Path) -> None:
    picture = tmp_path / "face.png"
    picture.write_bytes(png(training_faces(1)[0], DRAWN_SIZE))
    example = picture_at(picture)
    questions = [Label(Feature("beard"), example), Label(Feature("moped"), example)]
    verdicts = {answer.question: answer.verdict for answer in ask(ContrastiveOracle(trained), questions)}
    assert verdicts[questions[0]] in (Verdict.YES, Verdict.NO)
    assert verdicts[questions[1]] is Verdict.REFUSED


def test_it_is_trained_on_what_the_image_processor_will_show_it(trained: Path, tmp_path: Path) -> None:
    face = training_faces(3)[2]
    picture = tmp_path / "face.png"
    picture.write_bytes(png(face, DRAWN_SIZE))
    processed = Embedder(find_model(str(trained)))._pixels([open_image(picture_at(picture))])
    ours = training.normalised(seen_pixels(face)[None])
    assert np.allclose(np.asarray(processed["pixel_values"]), ours.numpy(), atol=1e-5)


def test_a_phrase_is_said_in_many_ways_and_never_with_an_unknown_word() -> None:
    phrases = list(read(SHIPPED / "vocabulary.json").phrases)
    tokenizer = build_tokenizer(phrases)
    rng = np.random.default_rng(0)
    drawn = [Phrasing(phrases, tokenizer).draw(rng) for _ in range(40)]
    assert all(bool((texts != tokenizer.unk_token_id).all()) for texts in drawn)
    assert len({tuple(texts[0].tolist()) for texts in drawn}) > 10


def test_roughened_pictures_differ_a_little() -> None:
    pictures = training.normalised(np.stack([seen_pixels(face) for face in training_faces(4)]))
    rough = roughened(pictures, np.random.default_rng(1))
    assert rough.shape == pictures.shape
    assert 0 < float((rough - pictures).abs().median()) < 0.1
