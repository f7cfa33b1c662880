"""At most how many tokens a picture takes, by the rules that OpenAI has published, and how many a text takes."""

from __future__ import annotations

import math
import string

# Tokens of the picture as a whole and of each 512-pixel tile, by how the model's name begins; longest name first.
TILED = {
    "gpt-4o-mini": (2833, 5667),
    "gpt-4o": (85, 170),
    "gpt-4.5": (85, 170),
    "o1": (75, 150),
    "o3": (75, 150),
    "computer-use": (65, 129),
}
PATCH = 32
TOKENS_PER_PATCH = 2.46  # the dearest model of those that count patches
WHOLE, TILE = 85, 170
_WORDS_AND_SPACE = str.maketrans("", "", string.ascii_letters + string.whitespace)


def image_tokens(model: str, side: int, detail: str) -> int:
    """A bound for a picture of at most `side` pixels each way. An unknown model gets the dearest usual rule."""
    name = model.rpartition("/")[2]
    rule = next((tokens for start, tokens in TILED.items() if name.startswith(start)), None)
    whole, tile = rule or (WHOLE, TILE)
    if detail == "low" and rule:
        return whole
    # The longer side is cut to 2048 pixels, the shorter one to 768.
    tiled = whole + tile * math.ceil(min(side, 2048) / 512) * math.ceil(min(side, 768) / 512)
    return tiled if rule else max(tiled, math.ceil(math.ceil(side / PATCH) ** 2 * TOKENS_PER_PATCH))


def text_tokens(text: str) -> int:
    """A bound: no tokenizer in use makes more than one token of a byte, nor of plain words more than one of two."""
    if not text.isascii():
        return len(text.encode("utf-8", "replace"))
    other = len(text.translate(_WORDS_AND_SPACE))
    return math.ceil(len(text) / 2) if other <= 0.2 * len(text) else len(text)
