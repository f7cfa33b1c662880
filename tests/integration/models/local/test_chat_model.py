"""How messages become the text that a model continues."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from tests.support.tiny_models import CHAT_TEMPLATE, save_tiny_instruct, save_tiny_llava
from twothirds.models.local.chat_model import ChatModel, device_and_dtype
from twothirds.models.local.files import find_model
from twothirds.models.prompting.prompts import ImagePart, Message
from twothirds.sources.dataset import picture_at

RULES = Message("system", ("Look closely.",))


def loaded(folder: Path) -> ChatModel:
    return ChatModel(find_model(str(folder)), device="cpu", dtype="float32", longest_side=64)


@pytest.fixture
def picture(tmp_path: Path) -> ImagePart:
    Image.new("RGB", (200, 100), "red").save(tmp_path / "red.png")
    return ImagePart(picture_at(tmp_path / "red.png"))


def test_pictures_stand_where_the_message_has_them_and_are_scaled_down(tmp_path: Path, picture: ImagePart) -> None:
    model = loaded(save_tiny_llava(tmp_path / "model"))
    prompt = model.prompt([RULES, Message("user", ("A: ", picture, "\nB: ", picture))])
    assert prompt.text == "<|system|>Look closely.</s><|user|>A: <image>\nB: <image></s><|assistant|>"
    assert [opened.size for opened in prompt.pictures] == [(64, 32), (64, 32)]


def test_a_template_without_a_system_role_gets_the_instructions_from_the_user(tmp_path: Path) -> None:
    strict = "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    model = loaded(save_tiny_instruct(tmp_path / "model", template=strict + CHAT_TEMPLATE))
    prompt = model.prompt([RULES, Message("user", ("Well?",))])
    assert prompt.text == "<|user|>Look closely.\nWell?</s><|assistant|>"


def test_a_model_that_can_think_aloud_is_asked_not_to(tmp_path: Path) -> None:
    thinks = "{% if enable_thinking is not defined or enable_thinking %}<think>{% endif %}"
    model = loaded(save_tiny_instruct(tmp_path / "model", template=CHAT_TEMPLATE + thinks))
    assert model.prompt([RULES]).text == "<|system|>Look closely.</s><|assistant|>"


def test_a_model_without_a_template_reads_plain_turns(tmp_path: Path, picture: ImagePart) -> None:
    model = loaded(save_tiny_llava(tmp_path / "model", template=None))
    messages = [RULES, Message("user", ("A: ", picture)), Message("assistant", ("Red.",)), Message("user", ("Sure?",))]
    assert model.prompt(messages).text == "Look closely.\nUSER: A: <image>\nASSISTANT: Red.\nUSER: Sure?\nASSISTANT:"


def test_the_token_that_starts_a_text_is_never_there_twice(tmp_path: Path) -> None:
    from tokenizers import processors

    start = "{{ bos_token }}"
    for place, template in enumerate((start + CHAT_TEMPLATE, CHAT_TEMPLATE, None)):
        model = loaded(save_tiny_llava(tmp_path / str(place), template=template))
        model.tokenizer.bos_token = "<|system|>"
        begin = model.tokenizer.bos_token_id
        model.tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
            single="<|system|> $0", special_tokens=[("<|system|>", begin)]
        )
        prompt = model.prompt([Message("user", ("Well?",))])
        (words,) = model.token_ids([prompt])
        assert words[0] == begin
        assert words[1] != begin
        assert model.encode([prompt], "right")["input_ids"][0].tolist() == words


def test_on_a_cpu_numbers_have_their_full_precision() -> None:
    assert device_and_dtype("cpu") == ("cpu", "float32")
    assert device_and_dtype("cpu", "bfloat16") == ("cpu", "bfloat16")
