"""Tokens by the rules that OpenAI has published for chat completions: words, pictures, and the cache of prompts.

The tokenizer's own table is not shipped here. Words are counted by a rule that is close to it for English: one token
for a word of up to ten letters, a digit group of three or a run of punctuation."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import math
import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from PIL import Image

TILES = {"gpt-4o-mini": (2833, 5667), "gpt-4o": (85, 170), "gpt-4.1": (85, 170), "o1": (75, 150), "o3": (75, 150)}
PATCH_SHARE = {"gpt-4.1-mini": 1.62, "gpt-4.1-nano": 2.46, "o4-mini": 1.72, "gpt-5-mini": 1.2, "gpt-5-nano": 1.5}
PATCH, MOST_PATCHES = 32, 1536
PER_MESSAGE, PER_REPLY = 3, 3
CACHED_FROM, CACHED_STEP = 1024, 128
CACHED_PROMPTS = 200_000
_PIECES = re.compile(r" ?[A-Za-z]+| ?\d{1,3}|\s+(?=\S)|\s+| ?[^\sA-Za-z\d]+")


def text_tokens(text: str) -> int:
    return sum(_piece_tokens(piece) for piece in _PIECES.findall(text))


def _piece_tokens(piece: str) -> int:
    bare = piece.strip()
    if not bare:
        return 1 if piece else 0
    if bare[0].isascii() and bare[0].isalpha():
        return 1 if len(bare) <= 10 else math.ceil(len(bare) / 7)
    return max(1, math.ceil(len(bare.encode()) / 3))


def picture_tokens(model: str, width: int, height: int, detail: str = "auto") -> int:
    share = next((share for name, share in PATCH_SHARE.items() if model.startswith(name)), None)
    if share is not None:
        return math.ceil(share * min(MOST_PATCHES, math.ceil(width / PATCH) * math.ceil(height / PATCH)))
    whole, tile = next((rule for name, rule in TILES.items() if model.startswith(name)), (85, 170))
    if detail == "low":
        return whole
    scale = min(1.0, 2048 / max(width, height))
    scale *= min(1.0, 768 / (min(width, height) * scale))
    return whole + tile * math.ceil(width * scale / 512) * math.ceil(height * scale / 512)


@lru_cache(maxsize=50_000)
def _size(url: str) -> tuple[int, int]:
    with Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))) as image:
        return image.size


class TokenCounter:
    """Usage blocks for one server. A prompt of 1,024 tokens or more that begins as an earlier one did is cached."""

    def __init__(self) -> None:
        self._seen: OrderedDict[bytes, None] = OrderedDict()

    def usage(self, body: Mapping[str, Any], content: str) -> dict[str, Any]:
        pieces = list(_pieces(body))
        given, written = sum(tokens for _, tokens in pieces) + PER_REPLY, text_tokens(content)
        return {
            "prompt_tokens": given,
            "completion_tokens": written,
            "total_tokens": given + written,
            "prompt_tokens_details": {"cached_tokens": self._cached(pieces), "cache_write_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0},
        }

    def _cached(self, pieces: Sequence[tuple[str, int]]) -> int:
        running, total, known, follows = hashlib.sha256(), 0, 0, True
        for text, tokens in pieces:
            running.update(text.encode("utf-8", "surrogatepass") + b"\0")
            total += tokens
            place = running.digest()
            follows = follows and place in self._seen
            known = total if follows else known
            self._seen[place] = None
        while len(self._seen) > CACHED_PROMPTS:
            self._seen.popitem(last=False)
        return known // CACHED_STEP * CACHED_STEP if known >= CACHED_FROM else 0


def _pieces(body: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """The prompt in order, line by line, with the tokens of each piece."""
    schema = body.get("response_format")
    if isinstance(schema, dict) and "json_schema" in schema:
        text = json.dumps(schema["json_schema"], separators=(",", ":"))
        yield text, text_tokens(text)
    for tool in body.get("tools") or ():
        text = _declared(tool["function"])
        yield text, text_tokens(text)
    for message in body["messages"]:
        yield message["role"], PER_MESSAGE
        for call in message.get("tool_calls") or ():
            yield call["function"]["arguments"], text_tokens(call["function"]["arguments"])
        content = message.get("content") or ""
        parts: list[dict[str, Any]] = [{"text": content}] if isinstance(content, str) else content
        for part in parts:
            if "text" in part:
                yield from ((line, text_tokens(line)) for line in part["text"].splitlines(keepends=True))
            else:
                url, detail = part["image_url"]["url"], part["image_url"].get("detail", "auto")
                yield url, picture_tokens(body["model"], *_size(url), detail)


def _declared(function: Mapping[str, Any]) -> str:
    """A tool as models are shown it: a type with a comment for every description."""
    lines = [f"// {function['description']}"] if function.get("description") else []
    lines.append(f"type {function['name']} = (_: {{")
    for name, schema in function.get("parameters", {}).get("properties", {}).items():
        lines += [f"// {schema['description']}"] if schema.get("description") else []
        lines.append(f"{name}: {schema.get('type', 'any')},")
    return "\n".join(["namespace functions {", *lines, "}) => any;", "}"]) + "\n"
