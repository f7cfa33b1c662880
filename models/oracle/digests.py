"""Digests of what is asked, the same on every machine and in every version."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import orjson

_encoder = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def canonical_json(value: Any) -> str:
    return _encoder.encode(value)


def digest_of(value: Any) -> str:
    return hashlib.sha256(canonical_json(value).encode("utf-8", "surrogatepass")).hexdigest()


def digest_of_content(who: str, content: Mapping[str, Any]) -> str:
    """The same as `digest_of([…, content])`, where `who` is the canonical JSON of what comes first."""
    try:  # texts and whole numbers are all that a question holds: both encoders write them alike
        text = orjson.dumps(content, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # a lone surrogate
        text = canonical_json(content).encode("utf-8", "surrogatepass")
    return hashlib.sha256(b"[%b,%b]" % (who.encode("utf-8", "surrogatepass"), text)).hexdigest()
