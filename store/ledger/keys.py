"""The keys under which answers are kept.

A key digests who was asked and what. It begins with a digest of the example, so that questions about one example are
neighbours in the indexes: a batch of labels writes one page per example and not one per label, however large the
store has become."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from store.schema import storable

KEY_LENGTH, PREFIX_LENGTH = 64, 16  # hexadecimal digits in all, and those that digest the example


def identity_digest(oracle: str, identity: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps([storable(oracle), dict(identity)], sort_keys=True).encode()).hexdigest()


def ledger_key(content: Mapping[str, Any], digest: str) -> str:
    """The key of a question with this content; `digest` is the SHA-256 of its oracle and content in hexadecimal."""
    return key_prefix(content) + digest[: KEY_LENGTH - PREFIX_LENGTH]


def key_prefix(content: Mapping[str, Any]) -> str:
    """A digest of the example that is to be labelled, or of the first one that is compared."""
    examples = content.get("example", content.get("examples"))
    return _prefix_of(str(examples[0] if isinstance(examples, list) and examples else examples))


@lru_cache(maxsize=1_024)
def _prefix_of(example: str) -> str:
    """The questions about one example come one after the other."""
    return hashlib.sha256(example.encode("utf-8", "surrogatepass")).hexdigest()[:PREFIX_LENGTH]
