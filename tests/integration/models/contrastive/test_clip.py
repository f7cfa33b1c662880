"""A CLIP that was built here and knows nothing: the real path through transformers, whatever it answers."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.support.asking import ask
from twothirds.discovery.questions import Kind
from twothirds.models.contrastive.embeddings import Embedder
from twothirds.models.contrastive.oracle import ContrastiveOracle
from twothirds.models.local.files import find_model
from twothirds.models.oracle import Answer, Compare, Feature, Label, OracleUnavailable, Question, Verdict
from twothirds.sources.dataset import Example, picture_at

WORDS = ["red", "green", "blue", "square", "round thing", "stripes", "a dog", "two cats", "snow", "night"]


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch: Any = import_module("torch")
    transformers: Any = import_module("transformers")
    folder = tmp_path_factory.mktemp("models") / "clip"
    letters = import_module("tokenizers").pre_tokenizers.ByteLevel.alphabet()
    tokens = ["<|startoftext|>", "<|endoftext|>", *sorted(letters), *(f"{letter}</w>" for letter in sorted(letters))]
    tokenizer = transformers.CLIPTokenizer({token: number for number, token in enumerate(tokens)}, [])
    layers = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    marks = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1}
    text = {**layers, **marks, "vocab_size": len(tokens), "max_position_embeddings": 40}
    vision = {**layers, "image_size": 32, "patch_size": 8}
    torch.manual_seed(1)
    config = transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=16)
    transformers.CLIPModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    size = {"shortest_edge": 32}
    transformers.CLIPImageProcessorPil(size=size, crop_size={"height": 32, "width": 32}).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> list[Example]:
    folder = tmp_path_factory.mktemp("pictures")
    rng = np.random.default_rng(3)
    examples = []
    for number in range(24):
        path = folder / f"{number}.png"
        Image.fromarray(rng.integers(0, 256, (40, 48, 3), dtype=np.uint8)).save(path)
        examples.append(picture_at(path, str(number)))
    return examples


@pytest.fixture(scope="module")
def oracle(clip: Path) -> ContrastiveOracle:
    return ContrastiveOracle(clip, vocabulary=WORDS, threshold=0.01)


def answers(oracle: ContrastiveOracle, questions: list[Question]) -> list[Answer]:
    found = {answer.question: answer for answer in ask(oracle, questions)}
    return [found[question] for question in questions]


def test_a_label_compares_the_prompt_with_a_negated_and_a_neutral_one(
    oracle: ContrastiveOracle, clip: Path, pictures: list[Example]
) -> None:
    embedder = Embedder(find_model(str(clip)))
    image = embedder.images(pictures[:1])[0]
    yes, without, neutral = np.exp(
        embedder.scale * embedder.texts(["red", "a picture without red", "a picture"]).astype(float) @ image
    )
    (answer,) = answers(oracle, [Label(Feature("red"), pictures[0])])
    assert answer.probability is not None
    assert answer.probability == pytest.approx(yes / (yes + (without + neutral) / 2), abs=1e-5)
    assert answer.verdict is (Verdict.YES if answer.probability > 0.5 else Verdict.NO)


def test_vectors_are_those_of_the_library_itself(clip: Path, pictures: list[Example]) -> None:
    torch: Any = import_module("torch")
    transformers: Any = import_module("transformers")
    model = transformers.CLIPModel.from_pretrained(clip).eval()
    processor = transformers.CLIPProcessor(
        transformers.CLIPImageProcessorPil.from_pretrained(clip), transformers.CLIPTokenizer.from_pretrained(clip)
    )
    images = [Image.open(str(example.image)) for example in pictures[:5]]
    with torch.inference_mode():
        expected = model(**processor(text=WORDS, images=images, padding=True, return_tensors="pt")).logits_per_image
    embedder = Embedder(find_model(str(clip)))
    ours = embedder.scale * embedder.images(pictures[:5]) @ embedder.texts(WORDS).T
    assert np.allclose(ours, expected.numpy(), atol=1e-4)


@pytest.mark.parametrize(
    ("kind", "shown", "without", "having"),
    [
        (Kind.TWO_OF_THREE, 3, 0, 2),
        (Kind.PAIR, 2, 0, 1),
        (Kind.ONE_OF_THREE, 3, 0, 1),
        (Kind.LEFT_RIGHT, 2, 2, 2),
        (Kind.TAG, 1, 0, 1),
    ],
)
def test_every_kind_of_comparison_is_answered_out_of_the_vocabulary(
    oracle: ContrastiveOracle, pictures: list[Example], kind: Kind, shown: int, without: int, having: int
) -> None:
    question = Compare(kind, tuple(pictures[:shown]), tuple(pictures[shown : shown + without]))
    (answer,) = answers(oracle, [question])
    assert answer.verdict is Verdict.FEATURE
    assert answer.feature is not None
    assert answer.feature.name in WORDS
    assert len(answer.shown) == having
    assert answer.cost == 0
    assert answer.seconds > 0


def test_a_high_threshold_makes_it_say_none(clip: Path, pictures: list[Example]) -> None:
    strict = ContrastiveOracle(clip, vocabulary=WORDS, threshold=0.99)
    assert answers(strict, [Compare(Kind.TWO_OF_THREE, tuple(pictures[:3]))])[0].verdict is Verdict.NONE


def test_known_features_are_never_named_again(oracle: ContrastiveOracle, pictures: list[Example]) -> None:
    known: tuple[str, ...] = ()
    for _ in WORDS:
        (answer,) = answers(oracle, [Compare(Kind.TAG, (pictures[0],), known=known)])
        if answer.feature is None:
            break
        assert answer.feature.name not in known
        known = (*known, answer.feature.name.upper())
    (last,) = answers(oracle, [Compare(Kind.TAG, (pictures[0],), known=tuple(WORDS))])
    assert last.verdict is Verdict.NONE


def test_voters_say_it_differently(oracle: ContrastiveOracle, pictures: list[Example]) -> None:
    votes = answers(oracle, [Label(Feature("snow"), pictures[0], voter) for voter in range(4)])
    assert len({vote.raw for vote in votes}) == len({vote.probability for vote in votes}) == 4


def test_a_picture_is_embedded_once_for_all_runs(
    clip: Path, pictures: list[Example], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions: list[Question] = [Label(Feature("snow"), example) for example in pictures]
    first = answers(ContrastiveOracle(clip, vocabulary=WORDS, cache=tmp_path), questions)

    def refuse(_self: Embedder, _examples: list[Example]) -> None:
        raise AssertionError("a picture was embedded again")

    monkeypatch.setattr(Embedder, "images", refuse)
    second = answers(ContrastiveOracle(clip, vocabulary=WORDS, cache=tmp_path), questions)
    assert [answer.probability for answer in first] == [answer.probability for answer in second]


def test_a_damaged_cache_file_is_made_anew(clip: Path, pictures: list[Example], tmp_path: Path) -> None:
    questions: list[Question] = [Label(Feature("snow"), pictures[0])]
    first = answers(ContrastiveOracle(clip, cache=tmp_path), questions)
    (file,) = tmp_path.glob("*.vectors")
    size = file.stat().st_size
    for content in (b"", b"no longer what it was", b"\0" * size, b"\xff" * (3 * size)):
        file.write_bytes(content)
        again = answers(ContrastiveOracle(clip, cache=tmp_path), questions)
        assert again[0].probability == pytest.approx(first[0].probability, abs=1e-5)


def test_vectors_that_cannot_be_written_stay_in_memory(
    clip: Path, pictures: list[Example], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "no folder").touch()
    oracle = ContrastiveOracle(clip, cache=tmp_path / "no folder")
    first = oracle.vectors(pictures)
    monkeypatch.setattr(Embedder, "images", lambda *_: pytest.fail("a picture was embedded again"))
    assert np.array_equal(oracle.vectors(pictures), first)


def test_several_threads_may_ask_at_once(clip: Path, pictures: list[Example], tmp_path: Path) -> None:
    oracle = ContrastiveOracle(clip, vocabulary=WORDS, cache=tmp_path)
    counted: list[int] = []

    def ask(word: str) -> None:
        counted.append(len(answers(oracle, [Label(Feature(word), example) for example in pictures])))

    threads = [threading.Thread(target=ask, args=(word,)) for word in WORDS[:4]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counted == [24] * 4


def test_fifteen_thousand_labels_are_a_matter_of_seconds(oracle: ContrastiveOracle, pictures: list[Example]) -> None:
    examples = [replace(pictures[number % 24], id=f"{number}") for number in range(100)]
    questions = [
        Label(Feature(f"{word} {turn}"), example, voter)
        for word in WORDS
        for turn in range(3)
        for voter in range(5)
        for example in examples
    ]
    list(ask(oracle, questions[::100]))
    started = time.process_time()
    assert len(list(ask(oracle, questions))) == 15_000
    assert time.process_time() - started < 2.0


def test_a_text_is_refused_in_one_line(oracle: ContrastiveOracle) -> None:
    text = Example("frog", "abc", text="a frog")
    for question in (Label(Feature("snow"), text), Compare(Kind.TAG, (text,))):
        with pytest.raises(OracleUnavailable, match="'frog' is a text"):
            list(ask(oracle, [question]))


def test_a_model_without_vocabulary_can_label_but_not_name(clip: Path, pictures: list[Example]) -> None:
    oracle = ContrastiveOracle(clip)
    assert answers(oracle, [Label(Feature("snow"), pictures[0])])[0].probability is not None
    with pytest.raises(OracleUnavailable, match="without a vocabulary"):
        list(ask(oracle, [Compare(Kind.TAG, (pictures[0],))]))


def test_what_is_not_there_is_named_in_one_line(tmp_path: Path, clip: Path) -> None:
    (tmp_path / "empty").mkdir()
    for model in (str(tmp_path / "nothing"), str(tmp_path / "empty")):
        with pytest.raises(OracleUnavailable) as raised:
            ContrastiveOracle(model)
        assert "\n" not in str(raised.value)
        assert model in str(raised.value)
    with pytest.raises(OracleUnavailable, match=r"threshold=2"):
        ContrastiveOracle(clip, threshold=2)


def test_a_model_of_another_kind_is_told_apart(tmp_path: Path, pictures: list[Example]) -> None:
    transformers: Any = import_module("transformers")
    tiny = {"vocab_size": 8, "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    transformers.BertModel(transformers.BertConfig(**tiny)).save_pretrained(tmp_path)
    with pytest.raises(OracleUnavailable, match="is a bert, not a CLIP or SigLIP"):
        list(ask(ContrastiveOracle(tmp_path), [Label(Feature("snow"), pictures[0])]))


def test_identity_holds_what_can_change_an_answer(clip: Path, tmp_path: Path) -> None:
    import shutil

    base = ContrastiveOracle(clip, vocabulary=WORDS).identity
    assert base == ContrastiveOracle(clip, vocabulary=WORDS, cache=tmp_path).identity
    copied = shutil.copytree(clip, tmp_path / "elsewhere" / "clip")
    assert base == ContrastiveOracle(copied, vocabulary=WORDS).identity
    weights = copied / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x01")
    others = [
        ContrastiveOracle(copied, vocabulary=WORDS).identity,
        ContrastiveOracle(clip, vocabulary=WORDS[:-1]).identity,
        ContrastiveOracle(clip, vocabulary=WORDS, threshold=0.6).identity,
    ]
    assert base not in others


def test_a_model_whose_vectors_are_not_numbers_is_one_line(clip: Path, pictures: list[Example], tmp_path: Path) -> None:
    import shutil

    transformers: Any = import_module("transformers")
    model = transformers.CLIPModel.from_pretrained(clip)
    model.visual_projection.weight.data[:] = float("nan")
    broken = shutil.copytree(clip, tmp_path / "clip")
    model.save_pretrained(broken)
    with pytest.raises(OracleUnavailable, match="its vectors are not numbers"):
        list(ask(ContrastiveOracle(broken), [Label(Feature("snow"), pictures[0])]))
