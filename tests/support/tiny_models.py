"""Models of about 100,000 random parameters, saved as transformers saves any model, so that tests take the real path.

Random weights say nothing readable, so two places of the residual stream are reserved. The first is the same
everywhere, which makes the first column of the output layer a bias: it raises the tokens that the model is wanted to
say. The second marks a sentence as said: there the end token answers.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

CHAT_TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|>{% if m.content is string %}{{ m.content }}{% else %}"
    "{% for part in m.content %}{{ '<image>' if part.type == 'image' else part.text }}{% endfor %}{% endif %}"
    "{{ eos_token }}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
CONSTANT = 4.0
YES_AND_NO = ("yes", "no", "Yes", "No")
WORDS = (
    "What do two of the three pictures share that the third one lacks? Name one thing that can be seen or read in the "
    "example, in one to five words, with a definition that a stranger could label by. Does it show the feature? "
    "Answer yes or no. Reply with JSON only. The examples are numbered A, B and C. wearing a hat, has glasses, red."
)


def save_tiny_llava(
    folder: Path,
    *,
    says: str | None = None,
    hidden: int = 48,
    layers: int = 2,
    context: int = 4096,
    template: str | None = CHAT_TEMPLATE,
) -> Path:
    """A LLaVA that prefers yes and no, or that says `says` to everything and stops."""
    import torch

    transformers = quiet_transformers()
    torch.manual_seed(0)
    tokenizer = _tokenizer(says)
    vision = transformers.CLIPVisionConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, image_size=32, patch_size=8
    )
    text = _text_config(tokenizer, hidden, layers, context)
    image_token = tokenizer.convert_tokens_to_ids("<image>")
    model: Any = transformers.LlavaForConditionalGeneration(
        transformers.LlavaConfig(
            vision_config=vision, text_config=text, image_token_index=image_token, image_seq_length=16
        )
    ).eval()
    projector = model.model.multi_modal_projector
    with torch.no_grad():
        # Large weights behind the vision tower, so that two pictures look different.
        projector.linear_1.weight.normal_(std=0.5)
        projector.linear_2.weight.normal_(std=0.5)
        projector.linear_2.weight[:2] = 0.0
        projector.linear_2.bias[:2] = torch.tensor([CONSTANT, 0.0])
    _raise_wanted_tokens(model.model.language_model, model.lm_head.weight, tokenizer, says)
    images = transformers.LlavaImageProcessorPil(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32})
    processor = transformers.LlavaProcessor(
        images,
        tokenizer,
        patch_size=8,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=template,
    )
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def save_tiny_instruct(
    folder: Path, *, says: str | None = None, context: int = 4096, template: str | None = CHAT_TEMPLATE
) -> Path:
    """An instruct language model, the LLaVA's text half."""
    import torch

    transformers = quiet_transformers()
    torch.manual_seed(0)
    tokenizer = _tokenizer(says)
    tokenizer.chat_template = template
    model: Any = transformers.LlamaForCausalLM(_text_config(tokenizer, 48, 2, context)).eval()
    _raise_wanted_tokens(model.model, model.lm_head.weight, tokenizer, says)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_tiny_mamba(folder: Path) -> Path:
    """A language model that keeps a state instead of keys and values."""
    transformers = quiet_transformers()
    tokenizer = _tokenizer(None)
    tokenizer.chat_template = CHAT_TEMPLATE
    config = transformers.MambaConfig(
        vocab_size=len(tokenizer), hidden_size=48, num_hidden_layers=2, pad_token_id=0, bos_token_id=1, eos_token_id=1
    )
    transformers.MambaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_tiny_bert(folder: Path) -> Path:
    """A model of sentences, with random weights."""
    transformers = quiet_transformers()
    tokenizer = _tokenizer(None)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2
    )
    transformers.BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _tokenizer(says: str | None) -> Any:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    special = ["<pad>", "</s>", "<image>", "<|system|>", "<|user|>", "<|assistant|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=500, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    raw.train_from_iterator([WORDS] + 50 * list(YES_AND_NO), trainer)
    if says is not None:
        raw.add_tokens([AddedToken(says, normalized=False)])
    return quiet_transformers().PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="<pad>", eos_token="</s>")


def _text_config(tokenizer: Any, hidden: int, layers: int, context: int) -> Any:
    return quiet_transformers().LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=context,
        initializer_range=0.2,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )


def _raise_wanted_tokens(decoder: Any, output: Any, tokenizer: Any, says: str | None) -> None:
    import torch

    wanted = [tokenizer.convert_tokens_to_ids(word) for word in (YES_AND_NO if says is None else [says])]
    with torch.no_grad():
        for layer in decoder.layers:
            layer.self_attn.o_proj.weight[:2] = 0.0
            layer.mlp.down_proj.weight[:2] = 0.0
        output[:, :2] = 0.0
        output[wanted, 0] = 8.0
        decoder.embed_tokens.weight.normal_()  # words that differ, so that different questions get different answers
        decoder.embed_tokens.weight[:, :2] = torch.tensor([CONSTANT, 0.0])
        if says is not None:
            decoder.embed_tokens.weight[wanted[0], 1] = 2 * CONSTANT
            output[tokenizer.eos_token_id, 1] = 20.0


def quiet_transformers() -> Any:
    transformers: Any = import_module("transformers")
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    return transformers
