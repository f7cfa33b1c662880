"""The names under which answers are kept: who was asked and what, and nothing else.

A key is a digest, but it begins with its example: questions about one example are neighbours in the indexes, so that a
batch of labels writes a page for each example and not one for each label, however large the store has become."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

LENGTH, PLACE = 64, 16  # hexadecimal digits in all, and those that tell the example


def placed(content: Mapping[str, Any], digest: str) -> str:
    """The key of a question with this content, of whose oracle and content this is the SHA-256 in hexadecimal."""
    return place_of(content) + digest[: LENGTH - PLACE]


def place_of(content: Mapping[str, Any]) -> str:
    """Where the questions about an example lie: the one to be labelled, or the first of those compared."""
    shown = content.get("example", content.get("examples"))
    first = shown[0] if isinstance(shown, list) and shown else shown
    return hashlib.sha256(str(first).encode("utf-8", "surrogatepass")).hexdigest()[:PLACE]
