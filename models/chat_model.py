"""A transformers chat model that sees and reads, or only reads: prompts in, tensors and replies out."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from models.model_files import ModelFiles
from models.oracle import OracleError, OracleUnavailable
from models.prompts import Message, Picture
from sources.example import Example
from sources.images import open_image

if TYPE_CHECKING:
    from PIL.Image import Image
    from torch import Tensor

PICTURES_KEPT = 64  # decoded pictures that are kept for the next question about them


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the model is to continue, with a placeholder where each picture stands."""

    text: str
    pictures: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True)
class Reply:
    text: str
    input_tokens: int
    output_tokens: int


class ContextOverflow(Exception):
    """Some prompts of a batch are longer than the model can read: their places in the batch, with their lengths."""

    def __init__(self, lengths: dict[int, int]) -> None:
        super().__init__(f"prompts of {sorted(lengths.values())} tokens")
        self.lengths = lengths


class ChatModel:
    """One loaded model. Not safe for several threads at a time: some models keep state between calls."""

    def __init__(self, files: ModelFiles, *, device: str, dtype: str, longest_side: int) -> None:
        import torch

        transformers: Any = import_module("transformers")
        transformers.utils.logging.set_verbosity_error()
        transformers.utils.logging.disable_progress_bar()
        self.name = files.name
        self._device = device
        with explained(f"model {files.name!r} cannot be loaded"):
            source = {"revision": files.revision} if files.revision else {}
            config = transformers.AutoConfig.from_pretrained(files.location, **source)
            self.sees = _sees(transformers.models.auto.modeling_auto, config, files.name)
            loader = transformers.AutoModelForImageTextToText if self.sees else transformers.AutoModelForCausalLM
            preparer = transformers.AutoProcessor if self.sees else transformers.AutoTokenizer
            self._processor: Any = preparer.from_pretrained(files.location, **source)
            model: Any = loader.from_pretrained(files.location, dtype=getattr(torch, dtype), **source)
            self.model: Any = model.to(device).eval()
        self.tokenizer: Any = getattr(self._processor, "tokenizer", self._processor)
        if self.tokenizer.pad_token_id is None:
            self.tokenizer.pad_token = self.tokenizer.eos_token
        self.context: int | None = getattr(config.get_text_config(), "max_position_embeddings", None)
        self._template = getattr(self._processor, "chat_template", None) or self.tokenizer.chat_template
        self._slices_logits = "logits_to_keep" in inspect.signature(self.model.forward).parameters
        self._picture = lru_cache(PICTURES_KEPT)(lambda example: open_image(example, longest_side=longest_side))

    def prompt(self, messages: Sequence[Message]) -> Prompt:
        """By the model's chat template, or as plain turns where it has none. Raises DatasetError for a bad picture."""
        examples = [part.example for message in messages for part in message.parts if isinstance(part, Picture)]
        if examples and not self.sees:
            raise OracleUnavailable(
                f"model {self.name!r} only reads text and example {examples[0].id!r} is an image: "
                "choose an image-text-to-text model"
            )
        return Prompt(self._text(messages), tuple(self._opened(example) for example in examples))

    def encode(self, prompts: Sequence[Prompt], side: Literal["left", "right"]) -> dict[str, Any]:
        """One padded batch on the model's device, in which all prompts have pictures or none has."""
        options: dict[str, Any] = {"padding": True, "padding_side": side, "return_tensors": "pt"}
        options["add_special_tokens"] = self._adds_start(prompts[0].text)
        texts = [prompt.text for prompt in prompts]
        if self.sees and prompts[0].pictures:
            encoded = self._processor(text=texts, images=[list(prompt.pictures) for prompt in prompts], **options)
        else:
            encoded = self.tokenizer(texts, **options)
        return dict(encoded.to(self._device))

    def token_ids(self, prompt: Prompt) -> list[int]:
        """Of the words alone, in which each picture is still one placeholder."""
        ids: list[int] = self.tokenizer(prompt.text, add_special_tokens=self._adds_start(prompt.text))["input_ids"]
        return ids

    def check_room(self, lengths: Sequence[int], room: int = 1) -> None:
        """Raises ContextOverflow where fewer than `room` tokens would be left to answer."""
        limit = None if self.context is None else self.context - room
        long = {place: length for place, length in enumerate(lengths) if limit is not None and length > limit}
        if long:
            raise ContextOverflow(long)

    def forward(self, inputs: Mapping[str, Any], positions: Tensor) -> Any:
        """One pass without gradients; `logits` has one row for each of the `positions`, and no others."""
        import torch

        with torch.inference_mode():
            if self._slices_logits:
                return self.model(**inputs, logits_to_keep=positions, return_dict=True)
            output = self.model(**inputs, return_dict=True)
            output.logits = output.logits[:, positions]
            return output

    def generate(self, prompts: Sequence[Prompt], max_new_tokens: int) -> list[Reply]:
        """The likeliest continuation of each prompt."""
        import torch

        inputs = self.encode(prompts, "left")
        read = inputs["attention_mask"].sum(dim=1).tolist()
        self.check_room(read, max_new_tokens)
        padding = self.tokenizer.pad_token_id
        with torch.inference_mode():
            whole = self.model.generate(
                **inputs, max_new_tokens=max_new_tokens, do_sample=False, num_beams=1, pad_token_id=padding
            )
        new = whole[:, inputs["input_ids"].shape[1] :]
        texts = self.tokenizer.batch_decode(new, skip_special_tokens=True)
        written = (new != padding).sum(dim=1).tolist()
        return [Reply(*reply) for reply in zip(texts, read, written, strict=True)]

    def _opened(self, example: Example) -> Image:
        return self._picture(example)

    def _adds_start(self, text: str) -> bool:
        """Whether the tokenizer should add its special tokens: most templates write them already."""
        start = self.tokenizer.bos_token
        if not self._template:
            return True
        return self.sees and not (start is not None and text.startswith(start))

    def _text(self, messages: Sequence[Message]) -> str:
        if not self._template:
            return self._plain_turns(messages)
        try:
            return self._by_template(messages)
        except Exception:  # a template without a system role raises an error of its own making
            return self._by_template(_without_system(messages))

    def _by_template(self, messages: Sequence[Message]) -> str:
        turns = [{"role": message.role, "content": self._content(message)} for message in messages]
        # Models that can think aloud are asked not to: the answer has to be the next word.
        options = {"enable_thinking": False} if "enable_thinking" in str(self._template) else {}
        text: str = self._processor.apply_chat_template(turns, tokenize=False, add_generation_prompt=True, **options)
        return text

    def _content(self, message: Message) -> str | list[dict[str, str]]:
        if not self.sees:
            return message.text
        picture = {"type": "image"}
        return [picture if isinstance(part, Picture) else {"type": "text", "text": part} for part in message.parts]

    def _plain_turns(self, messages: Sequence[Message]) -> str:
        picture = getattr(self._processor, "image_token", "<image>")
        turns = []
        for message in messages:
            said = "".join(picture if isinstance(part, Picture) else part for part in message.parts)
            turns.append(said if message.role == "system" else f"{message.role.upper()}: {said}")
        return "\n".join([*turns, "ASSISTANT:"])


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Whatever a model library raises becomes one line; running out of memory stays what it is."""
    import torch

    try:
        yield
    except (OracleError, ContextOverflow, torch.OutOfMemoryError):
        raise
    except Exception as error:
        reason = next((line.strip()[:200] for line in str(error).splitlines() if line.strip()), type(error).__name__)
        remedy = "install what it asks for" if isinstance(error, ImportError) else "check its files"
        raise OracleUnavailable(f"{what} ({reason}): {remedy}, or choose another model") from error


def device_and_dtype(device: str = "auto", dtype: str = "auto") -> tuple[str, str]:
    """The fastest there is; half precision only where it is faster."""
    import torch

    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    if dtype == "auto":
        if device.startswith("cuda"):
            dtype = "bfloat16" if torch.cuda.is_bf16_supported() else "float16"
        else:
            dtype = "float16" if device.startswith("mps") else "float32"
    return device, dtype


def _sees(kinds: Any, config: Any, name: str) -> bool:
    kind = config.model_type
    if kind in kinds.MODEL_FOR_ZERO_SHOT_IMAGE_CLASSIFICATION_MAPPING_NAMES:
        raise OracleUnavailable(f"model {name!r} is a {kind} and cannot speak: use it as contrastive:{name}")
    sees = kind in kinds.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES
    if not (sees or kind in kinds.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES) or config.is_encoder_decoder:
        raise OracleUnavailable(
            f"model {name!r} is a {kind}, which cannot be chatted with: choose an image-text-to-text model or, "
            "for texts, an instruct language model"
        )
    return sees


def _without_system(messages: Sequence[Message]) -> list[Message]:
    """The instructions at the head of the first user turn."""
    instructions = "\n".join(message.text for message in messages if message.role == "system")
    turns = [message for message in messages if message.role != "system"]
    return [Message(turns[0].role, (f"{instructions}\n", *turns[0].parts)), *turns[1:]]
