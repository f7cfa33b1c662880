"""What a batch of labels does once: reading a repeated text, and computing the instructions."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.support.tiny_models import save_tiny_llava
from twothirds.models.local.chat_model import ChatModel, EachTextOnce, Prompt
from twothirds.models.local.files import find_model
from twothirds.models.local.yes_no import YesNoReader
from twothirds.models.oracle import Feature, Label
from twothirds.models.prompting.labels import label_form
from twothirds.sources.dataset import Example, picture_at


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> ChatModel:
    files = find_model(str(save_tiny_llava(tmp_path_factory.mktemp("llava"))), None)
    return ChatModel(files, device="cpu", dtype="float32", longest_side=64)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> list[Example]:
    folder, rng = tmp_path_factory.mktemp("pictures"), np.random.default_rng(0)
    examples = []
    for number in range(8):
        path = folder / f"{number}.png"
        Image.fromarray(rng.integers(0, 256, (40, 40, 3), dtype=np.uint8)).save(path)
        examples.append(picture_at(path, str(number)))
    return examples


def asked(model: ChatModel, feature: Feature, examples: list[Example], feature_first: bool = False) -> list[Prompt]:
    return [
        model.prompt(label_form([Label(feature, example)], feature_first=feature_first).messages)
        for example in examples
    ]


@pytest.mark.parametrize("options", [{}, {"padding": True, "padding_side": "right", "return_tensors": "pt"}])
def test_a_repeated_text_is_read_once_and_gets_the_same_tokens(model: ChatModel, options: dict[str, Any]) -> None:
    texts = ["a red hat", "glasses", "a red hat", "a red hat and a very long scarf", "glasses"]
    read: list[int] = []

    class Counting:
        def __call__(self, text: list[str], **others: Any) -> Any:
            read.append(len(text))
            return model.tokenizer(text, **others)

    expected = model.tokenizer(texts, **options)
    encoded = EachTextOnce(Counting())(texts, **options)
    assert read == [3]
    assert encoded.keys() == expected.keys()
    for name, values in expected.items():
        assert np.array_equal(encoded[name], values) if options else encoded[name] == values


def test_everything_but_the_call_is_the_tokenizers_own(model: ChatModel) -> None:
    stand_in = copy.copy(EachTextOnce(model.tokenizer))
    assert stand_in.pad_token_id == model.tokenizer.pad_token_id
    assert stand_in("a red hat")["input_ids"] == model.tokenizer("a red hat")["input_ids"]


def test_instructions_are_computed_once_for_many_batches_and_anew_when_they_change(
    model: ChatModel, pictures: list[Example]
) -> None:
    hat, scarf = Feature("red hat"), Feature("long scarf")
    batches = [
        (asked(model, feature, shown, feature_first=True), [example.digest for example in shown])
        for feature in (hat, scarf, hat)
        for shown in (pictures[:4], pictures[4:])
    ]
    plainly = YesNoReader(model, share_prefix=False)
    expected = [[reading.probability for reading in plainly.read(*batch)] for batch in batches]
    reader = YesNoReader(model)
    reader.read(*batches[-1])  # tries whether the model allows sharing
    passes: list[int] = []
    counting = model.model.register_forward_hook(lambda *_: passes.append(1))
    needed = []
    for batch, alone in zip(batches, expected, strict=True):
        passes.clear()
        readings = reader.read(*batch)
        needed.append(len(passes))
        assert all(reading.shared for reading in readings)
        np.testing.assert_allclose([reading.probability for reading in readings], alone, atol=1e-5, rtol=0)
    counting.remove()
    assert needed == [1, 1, 2, 1, 2, 1]  # a second pass only where the feature is another than in the last batch
