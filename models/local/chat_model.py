"""A transformers chat model for images and texts, or for texts only: prompts in, tensors and replies out."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from twothirds.models.local.files import ModelFiles, pretrained
from twothirds.models.oracle import OracleError, OracleUnavailable
from twothirds.models.prompting import ImagePart, Message
from twothirds.sources import Example, open_image

if TYPE_CHECKING:
    from PIL.Image import Image
    from torch import Tensor


class EachTextOnce:
    """A tokenizer that encodes a text once, however often a batch repeats it; all else is the wrapped tokenizer's."""

    def __init__(self, tokenizer: Any) -> None:
        self._wrapped = tokenizer

    def __getattr__(self, name: str) -> Any:
        if name == "_wrapped" or name.startswith("__"):  # asked for by copying, before there is a tokenizer
            raise AttributeError(name)
        return getattr(self._wrapped, name)

    def __call__(self, text: Any = None, *others: Any, **options: Any) -> Any:
        texts = text if isinstance(text, list) and all(isinstance(item, str) for item in text) else []
        rows = {content: row for row, content in enumerate(dict.fromkeys(texts))}
        if others or options.get("text_pair") is not None or len(rows) == len(texts):
            return self._wrapped(text, *others, **options)
        encoded = self._wrapped([*rows], **options)
        places = [rows[content] for content in texts]
        for name, values in encoded.items():
            encoded[name] = [values[place] for place in places] if isinstance(values, list) else values[places]
        return encoded


PICTURES_KEPT = PROMPTS_KEPT = 64  # for the next question about the same
Turns = tuple[tuple[str, tuple[str | None, ...]], ...]  # role and parts; None is an image


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the model is to continue, with a placeholder where each picture stands."""

    text: str
    pictures: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True)
class Generated:
    """A reply, and the tokens that were read and written for it."""

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
            config = pretrained(transformers.AutoConfig, files)
            self.sees = _sees(transformers.models.auto.modeling_auto, config, files.name)
            loader = transformers.AutoModelForImageTextToText if self.sees else transformers.AutoModelForCausalLM
            preparer = transformers.AutoProcessor if self.sees else transformers.AutoTokenizer
            self._processor: Any = pretrained(preparer, files)
            model: Any = pretrained(loader, files, dtype=getattr(torch, dtype))
            self.model: Any = model.to(device).eval()
        self.tokenizer: Any = getattr(self._processor, "tokenizer", self._processor)
        if self.tokenizer is not self._processor:
            self._processor.tokenizer = EachTextOnce(self.tokenizer)
        if self.tokenizer.pad_token_id is None:
            self.tokenizer.pad_token = self.tokenizer.eos_token
        self.context: int | None = getattr(config.get_text_config(), "max_position_embeddings", None)
        self._special = _special_tokens(self.tokenizer)
        self._template = getattr(self._processor, "chat_template", None) or self.tokenizer.chat_template
        self._slices_logits = "logits_to_keep" in inspect.signature(self.model.forward).parameters
        # A feature meets many pictures in the same words, and a picture many features.
        self._render: Callable[[Turns], str] = lru_cache(PROMPTS_KEPT)(self._rendered)
        self._words: Callable[[str], list[int]] = lru_cache(PROMPTS_KEPT)(self._tokenized)
        self._picture: Callable[[Example], Image] = lru_cache(PICTURES_KEPT)(
            partial(open_image, longest_side=longest_side)
        )

    def prompt(self, messages: Sequence[Message]) -> Prompt:
        """By the model's chat template, or as plain turns where it has none. Raises DatasetError for a bad picture."""
        examples = [part.example for message in messages for part in message.parts if isinstance(part, ImagePart)]
        if examples and not self.sees:
            raise OracleUnavailable(
                f"model {self.name!r} only reads text and example {examples[0].id!r} is an image: "
                "choose an image-text-to-text model"
            )
        turns = tuple(
            (
                message.role,
                tuple(self._harmless(part) if isinstance(part, str) else None for part in message.parts),
            )
            for message in messages
        )
        return Prompt(self._render(turns), tuple(self._picture(example) for example in examples))

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

    def token_ids(self, prompts: Sequence[Prompt]) -> list[list[int]]:
        """Of the words alone, in which each picture is still one placeholder."""
        return [self._words(prompt.text) for prompt in prompts]

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

    def generate(self, prompts: Sequence[Prompt], max_new_tokens: int) -> list[Generated]:
        """The likeliest continuation of each prompt."""
        import torch

        inputs = self.encode(prompts, "left")
        read = inputs["attention_mask"].sum(dim=1).tolist()
        self.check_room(read, max_new_tokens)
        padding = self.tokenizer.pad_token_id
        with torch.inference_mode():
            sequences = self.model.generate(
                **inputs, max_new_tokens=max_new_tokens, do_sample=False, num_beams=1, pad_token_id=padding
            )
        new = sequences[:, inputs["input_ids"].shape[1] :]
        texts = self.tokenizer.batch_decode(new, skip_special_tokens=True)
        written = (new != padding).sum(dim=1).tolist()
        replies = zip(texts, read, written, strict=True)
        return [Generated(text, tokens_read, tokens_written) for text, tokens_read, tokens_written in replies]

    def _tokenized(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer(text, add_special_tokens=self._adds_start(text))["input_ids"]
        return ids

    def _adds_start(self, text: str) -> bool:
        """Whether the tokenizer should add its special tokens: most templates write them already."""
        start = self.tokenizer.bos_token
        if not self._template:
            return True
        return self.sees and not (start is not None and text.startswith(start))

    def _harmless(self, part: str) -> str:
        """No words of a message are a special token: its first character is written as a JSON escape."""
        return self._special.sub(lambda found: f"\\u{ord(found.group()[0]):04x}{found.group()[1:]}", part)

    def _rendered(self, turns: Turns) -> str:
        if not self._template:
            return self._plain(turns)
        try:
            return self._by_template(turns)
        except Exception:  # a template without a system role raises an error of its own making
            return self._by_template(_without_system(turns))

    def _by_template(self, turns: Turns) -> str:
        messages = [{"role": role, "content": self._content(content)} for role, content in turns]
        # Models that can think aloud are asked not to: the answer has to be the next word.
        options = {"enable_thinking": False} if "enable_thinking" in str(self._template) else {}
        text: str = self._processor.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, **options)
        return text

    def _content(self, content: tuple[str | None, ...]) -> str | list[dict[str, str]]:
        if not self.sees:
            return "".join(part for part in content if part is not None)
        return [{"type": "image"} if part is None else {"type": "text", "text": part} for part in content]

    def _plain(self, turns: Turns) -> str:
        picture = getattr(self._processor, "image_token", "<image>")
        spoken = [(role, "".join(picture if part is None else part for part in content)) for role, content in turns]
        lines = [text if role == "system" else f"{role.upper()}: {text}" for role, text in spoken]
        return "\n".join([*lines, "ASSISTANT:"])


@contextmanager
def explained(problem: str) -> Iterator[None]:
    """Whatever a model library raises becomes one line; running out of memory stays what it is."""
    import torch

    try:
        yield
    except (OracleError, ContextOverflow, torch.OutOfMemoryError):
        raise
    except Exception as error:
        reason = next((line.strip()[:200] for line in str(error).splitlines() if line.strip()), type(error).__name__)
        remedy = "install what it asks for" if isinstance(error, ImportError) else "check its files, device and dtype"
        raise OracleUnavailable(f"{problem} ({reason}): {remedy}, or choose another model") from error


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


def _special_tokens(tokenizer: Any) -> re.Pattern[str]:
    """What the tokenizer reads as one special token wherever it stands, longest first."""
    added = (token.content for token in tokenizer.added_tokens_decoder.values() if token.special)
    contents = {str(content).strip() for content in (*tokenizer.all_special_tokens, *added)}
    words = sorted(filter(None, contents), key=lambda content: (-len(content), content))
    return re.compile("|".join(map(re.escape, words)) or r"(?!)")


def _without_system(turns: Turns) -> Turns:
    """The instructions at the head of the first turn of the user."""
    instructions = [part for role, content in turns if role == "system" for part in (*content, "\n")]
    (role, content), *others = (turn for turn in turns if turn[0] != "system")
    return ((role, (*instructions, *content)), *others)
