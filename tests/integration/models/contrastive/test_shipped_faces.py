"""The model that ships, on faces it has never seen."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from PIL import Image

from benchmarks.faces_model.evaluate import evaluate, held_out_paraphrases
from benchmarks.faces_model.face import choosing_faces, held_out_faces, shipped_faces, training_faces
from benchmarks.faces_model.train import words_of
from benchmarks.faces_model.truth import ATTRIBUTES
from tests.support.asking import Asked, ask
from twothirds.discovery.metrics import interesting_and_distinct, matches_with_truth
from twothirds.discovery.questions import Kind, Labels
from twothirds.discovery.strategies import make_strategy
from twothirds.models.contrastive.embeddings import Embedder
from twothirds.models.contrastive.oracle import SHIPPED, ContrastiveOracle
from twothirds.models.contrastive.vocabulary import read
from twothirds.models.labelling import LabelBatch, collect_votes
from twothirds.models.local.files import find_model
from twothirds.models.oracle import Compare, Feature, Label, OracleUnavailable, Verdict
from twothirds.sources.dataset import Example
from twothirds.sources.load import load_dataset

DATASET = SHIPPED.parents[1] / "datasets" / "faces"


@pytest.fixture(scope="module")
def oracle() -> ContrastiveOracle:
    return ContrastiveOracle()


@pytest.fixture(scope="module")
def examples() -> tuple[Example, ...]:
    return load_dataset(str(DATASET)).examples


def test_held_out_faces_are_labelled_well(oracle: ContrastiveOracle) -> None:
    figures = evaluate(oracle, held_out_faces()[:120], triples=60)
    assert np.nanmean(figures.named) >= 0.97
    assert np.nanmean(figures.paraphrased) >= 0.93
    assert figures.calibration_error < 0.02
    assert figures.answered >= 54
    assert figures.precision >= 0.95


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.slow
def test_the_figures_of_the_card_hold(oracle: ContrastiveOracle) -> None:
    figures = evaluate(oracle, held_out_faces())
    assert figures.named.mean() >= 0.97
    assert figures.paraphrased.mean() >= 0.93
    assert figures.calibration_error < 0.02
    assert figures.precision >= 0.95
    card = (SHIPPED / "README.md").read_text(encoding="utf-8")
    assert f"| mean | {figures.named.mean():.3f} | {figures.paraphrased.mean():.3f} |" in card


def test_no_face_is_in_two_splits() -> None:
    splits = [shipped_faces(), held_out_faces(), choosing_faces(), training_faces(3000)]
    together = [face for split in splits for face in split]
    assert len(set(together)) == len(together)


def test_the_vocabulary_names_what_the_truth_knows_and_the_model_knows_its_words() -> None:
    phrases = read(SHIPPED / "vocabulary.json").phrases
    assert [phrase.name for phrase in phrases] == list(ATTRIBUTES)
    trained = {tuple(words_of(text)) for phrase in phrases for text in (phrase.name, *phrase.paraphrases)}
    embedder = Embedder(find_model(str(SHIPPED)))
    for phrase, unseen in zip(phrases, held_out_paraphrases().values(), strict=True):
        assert phrase.definition.endswith(".")
        assert tuple(words_of(unseen)) not in trained
        assert all(embedder.problem_with(text) is None for text in (*phrase.prompts, unseen))


@pytest.mark.parametrize(
    "name", ["moped", "glasses on a moped", "no glasses", "a face without a beard", "帽子", "red 帽子", ""]
)
def test_what_it_does_not_understand_is_refused(
    oracle: ContrastiveOracle, examples: tuple[Example, ...], name: str
) -> None:
    for voter in range(3):
        (answer,) = ask(oracle, [Label(Feature(name), examples[0], voter)])
        assert answer.verdict is Verdict.REFUSED
        assert answer.probability is None
        assert answer.note


def test_words_it_does_not_know_leave_nothing_to_name(examples: tuple[Example, ...]) -> None:
    oracle = ContrastiveOracle(vocabulary=["moped", "harmonica"])
    with pytest.raises(OracleUnavailable, match="does not know 'moped'"):
        list(ask(oracle, [Compare(Kind.TWO_OF_THREE, tuple(examples[:3]))]))


def test_transformers_loads_it_and_gives_the_same_probabilities(
    oracle: ContrastiveOracle, examples: tuple[Example, ...]
) -> None:
    torch: Any = import_module("torch")
    transformers: Any = import_module("transformers")
    model = transformers.AutoModel.from_pretrained(SHIPPED).float().eval()
    processor = transformers.AutoProcessor.from_pretrained(SHIPPED, backend="pil")
    names = ["glasses", "a beard", "red top"]
    images = [Image.open(str(example.image)).convert("RGB") for example in examples[:10]]
    encoded = processor(text=names, images=images, padding="max_length", return_tensors="pt")
    with torch.inference_mode():
        expected = torch.sigmoid(model(**encoded).logits_per_image).numpy()
    for column, name in enumerate(names):
        questions = [Label(Feature(name), example) for example in examples[:10]]
        found = {answer.question: answer.probability for answer in ask(oracle, questions)}
        assert [found[question] for question in questions] == pytest.approx(expected[:, column], abs=1e-4)


def test_loading_it_again_gives_identical_answers(examples: tuple[Example, ...]) -> None:
    questions = [Label(Feature(name), example) for name in ("glasses", "smile") for example in examples]
    once, again = (
        [answer.probability for answer in ask(ContrastiveOracle(), questions)],
        [answer.probability for answer in ask(ContrastiveOracle(), questions)],
    )
    assert once == again


def test_near_synonyms_of_known_features_are_not_named(
    oracle: ContrastiveOracle, examples: tuple[Example, ...]
) -> None:
    known = ("spectacles", "sunglasses")
    for row in range(len(examples) - 2):
        for answer in ask(oracle, [Compare(Kind.TWO_OF_THREE, tuple(examples[row : row + 3]), known=known)]):
            assert answer.feature is None or answer.feature.name not in ("glasses", "dark glasses")


def test_discovery_finds_features_that_are_true(oracle: ContrastiveOracle, examples: tuple[Example, ...]) -> None:
    """The whole loop in memory: Adaptive Triple, one question at a time, three votes per label."""
    truth = load_dataset(str(DATASET)).truth
    assert truth is not None
    strategy = make_strategy("adaptive-triple", len(examples), np.random.default_rng(0))
    found: list[Labels] = []
    for _ in range(35):
        for comparison in strategy.next_questions(1):
            rows = tuple(examples[row] for row in comparison.examples)
            (answer,) = ask(oracle, [Compare(comparison.kind, rows)])
            if answer.feature is None:
                strategy.learn(comparison, [], [])
                continue
            labels = collect_votes(Asked(oracle), LabelBatch(examples, [answer.feature], 3)).labels[0]
            strategy.learn(comparison, [answer.feature.name], [labels])
            found.append(labels)
    kept = [labels for labels, counts in zip(found, interesting_and_distinct(found), strict=True) if counts]
    assert len(kept) >= 12
    assert matches_with_truth(kept, np.ascontiguousarray(truth.matrix.T)).mean_balanced_accuracy >= 0.9


def test_it_is_small_enough_to_ship() -> None:
    assert sum(path.stat().st_size for path in SHIPPED.iterdir() if path.suffix != ".py" and path.is_file()) < 8e6
