"""The untrained model: a SigLIP small enough to ship, and a tokenizer that knows only the words it is trained on."""

from __future__ import annotations

import json
import re
from importlib import import_module
from typing import TYPE_CHECKING, Any

from benchmarks.faces_model.draw import SEEN_SIZE
from models.contrastive import SHIPPED, TEMPLATES, Phrase

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast, SiglipModel, SiglipProcessor

TEXT_LENGTH = 16  # SigLIP pools the last position, so every text is padded to this
WIDTH = 128
PATCH = 16
ACTIVATION = "relu"  # no worse here than SigLIP's, and quicker on a processor
PADDING, UNKNOWN = "<pad>", "<unk>"


def held_out_paraphrases() -> dict[str, str]:
    """One way to say each phrase that the model is never trained on."""
    items = json.loads((SHIPPED / "vocabulary.json").read_text(encoding="utf-8"))
    return {item["name"]: item["held_out"] for item in items}


def words_of(text: str) -> list[str]:
    return re.sub(r"[\W_]+", " ", text.lower()).split()


def build_tokenizer(phrases: list[Phrase]) -> PreTrainedTokenizerFast:
    from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers
    from tokenizers.models import WordLevel

    transformers: Any = import_module("transformers")
    texts = [*TEMPLATES, *(text for phrase in phrases for text in (phrase.name, *phrase.paraphrases))]
    words = sorted({word for text in texts for word in words_of(text)})
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate([PADDING, UNKNOWN, *words])}, UNKNOWN))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Lowercase(), normalizers.Replace(Regex(r"[^\p{L}\p{N}]+"), " "), normalizers.Strip()]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    fast: PreTrainedTokenizerFast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PADDING,
        unk_token=UNKNOWN,
        model_max_length=TEXT_LENGTH,
        padding_side="right",
        model_input_names=["input_ids"],
    )
    return fast


def build_processor(tokenizer: PreTrainedTokenizerFast) -> SiglipProcessor:
    transformers: Any = import_module("transformers")
    pictures = transformers.SiglipImageProcessorPil(size={"height": SEEN_SIZE, "width": SEEN_SIZE})
    processor: SiglipProcessor = transformers.SiglipProcessor(pictures, tokenizer)
    return processor


def build_model(words: int) -> SiglipModel:
    from transformers import SiglipConfig, SiglipModel, SiglipTextConfig, SiglipVisionConfig

    text = SiglipTextConfig(
        vocab_size=words,
        hidden_size=96,
        intermediate_size=192,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=TEXT_LENGTH,
        projection_size=WIDTH,
        pad_token_id=0,
        hidden_act=ACTIVATION,
        bos_token_id=None,
        eos_token_id=None,
    )
    vision = SiglipVisionConfig(
        hidden_size=WIDTH,
        intermediate_size=3 * WIDTH,
        num_hidden_layers=3,
        num_attention_heads=4,
        image_size=SEEN_SIZE,
        patch_size=PATCH,
        hidden_act=ACTIVATION,
    )
    return SiglipModel(SiglipConfig(text_config=text.to_dict(), vision_config=vision.to_dict()))
