"""Tokens of texts and pictures, by the rules that OpenAI has published: what is usual, and what is never exceeded.

The tables of tokenizers are not shipped. What is usual is counted by the pattern with which they divide a text: a word,
up to three digits, a run of other signs. A long word takes several tokens."""

from __future__ import annotations

import math
import re
import string
from functools import lru_cache

# Tokens of the picture as a whole and of each 512-pixel tile, by how the model's name begins; longest name first.
TILED = {
    "gpt-4o-mini": (2833, 5667),
    "gpt-4o": (85, 170),
    "gpt-4.5": (85, 170),
    "o1": (75, 150),
    "o3": (75, 150),
    "computer-use": (65, 129),
}
# Tokens of each patch of 32 pixels.
PATCHED = {"gpt-4.1-mini": 1.62, "gpt-4.1-nano": 2.46, "o4-mini": 1.72, "gpt-5-mini": 1.2, "gpt-5-nano": 1.5}
LOW_SIDE = 512  # pixels to which a picture is scaled down with detail=low
PATCH, MOST_PATCHES = 32, 1536
TOKENS_PER_PATCH = max(PATCHED.values())
WHOLE, TILE = 85, 170  # of a model that is not listed

_WORDS_AND_SPACE = str.maketrans("", "", string.ascii_letters + string.whitespace)
_PIECES = re.compile(r" ?[^\W\d_]+| ?\d{1,3}|\s+| ?[^\s\w]+|_+")
LETTERS_PER_TOKEN = 7  # of a long word
LONG_WORD = 10  # letters: up to here a word is one token
BYTES_PER_TOKEN = 4  # of a word that is not ASCII
SIGNS_PER_TOKEN = 3


def most_picture_tokens(model: str, side: int, detail: str) -> int:
    """A bound for a picture of at most `side` pixels each way. An unknown model gets the dearest usual rule."""
    rule = _tiled(model)
    if detail == "low" and rule:
        return rule[0]
    tiles = _by_tiles(rule or (WHOLE, TILE), side, min(side, 768))
    return tiles if rule else max(tiles, math.ceil(math.ceil(side / PATCH) ** 2 * TOKENS_PER_PATCH))


def picture_tokens(model: str, width: int, height: int, detail: str) -> int:
    """What a picture of that size takes. An unknown model is taken for one of the usual kind."""
    name = model.rpartition("/")[2]
    per_patch = next((tokens for start, tokens in PATCHED.items() if name.startswith(start)), None)
    if per_patch is not None:
        return math.ceil(per_patch * min(MOST_PATCHES, math.ceil(width / PATCH) * math.ceil(height / PATCH)))
    rule = _tiled(model) or (WHOLE, TILE)
    if detail == "low":
        return rule[0]
    scale = min(1.0, 2048 / max(width, height))
    scale *= min(1.0, 768 / (min(width, height) * scale))
    return _by_tiles(rule, width * scale, height * scale)


def counts_tiles(model: str) -> bool:
    return _tiled(model) is not None


def _tiled(model: str) -> tuple[int, int] | None:
    name = model.rpartition("/")[2]
    return next((tokens for start, tokens in TILED.items() if name.startswith(start)), None)


def _by_tiles(rule: tuple[int, int], longer: float, shorter: float) -> int:
    base, tile = rule
    return base + tile * math.ceil(min(longer, 2048) / 512) * math.ceil(shorter / 512)


def most_text_tokens(text: str) -> int:
    """A bound: no tokenizer in use makes more than one token of a byte, nor of plain words more than one of two."""
    if not text.isascii():
        return len(text.encode("utf-8", "replace"))
    other = len(text.translate(_WORDS_AND_SPACE))
    return math.ceil(len(text) / 2) if other <= 0.2 * len(text) else len(text)


@lru_cache(maxsize=20_000)
def text_tokens(text: str) -> int:
    """About what a text takes."""
    return sum(map(_of_piece, _PIECES.findall(text)))


def _of_piece(piece: str) -> int:
    bare = piece.strip()
    if not bare:
        return 1
    if not bare.isascii():
        return math.ceil(len(bare.encode("utf-8", "replace")) / BYTES_PER_TOKEN)
    if bare.isalpha():
        return 1 if len(bare) <= LONG_WORD else math.ceil(len(bare) / LETTERS_PER_TOKEN)
    return 1 if bare.isdigit() else math.ceil(len(bare) / SIGNS_PER_TOKEN)
