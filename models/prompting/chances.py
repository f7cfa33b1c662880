"""Probabilities of yes, from the probabilities of the tokens with which a reply begins or says its labels."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

LEAST_MASS = 0.25  # of yes and no together, for the next word to be an answer
MOST_SURE = 0.999
_PART = re.compile(r'"((?:[^"\\]|\\.)*)"\s*:\s*(?=(\{|"?[A-Za-z0-9]+))|\}')
_YES, _NO = ("true", "yes", "1"), ("false", "no", "0")


def label_chances(text: str, paths: Sequence[Sequence[str]], tokens: object) -> dict[int, float]:
    """Probabilities of yes by position, for as many labels as the tokens tell. `tokens` are as servers send them, the
    `content` of `logprobs`: anything else, or tokens of another text, tell nothing."""
    if list(paths) == [()]:
        alone = next_word(tokens)
        return {} if alone is None else {0: alone}
    places = _places(tokens, text)
    if places is None:
        return {}
    offsets = _offsets(text)
    found = {}
    for position, path in enumerate(paths):
        offset = offsets.get(tuple(path), -1)
        token = places.get(offset) if offset >= 0 else None
        chance = _chance(token) if token is not None else None
        if chance is not None:
            found[position] = chance
    return found


def _places(tokens: object, text: str) -> dict[int, Mapping[str, Any]] | None:
    """The token that covers each character."""
    if not isinstance(tokens, list) or not all(isinstance(token, dict) for token in tokens):
        return None
    words = [token.get("token") for token in tokens]
    if not all(isinstance(word, str) for word in words) or "".join(map(str, words)) != text:
        return None
    places: dict[int, Mapping[str, Any]] = {}
    for token in tokens:
        start = len(places)
        places.update((start + place, token) for place in range(len(token["token"])))
    return places


def _offsets(text: str) -> dict[tuple[str, ...], int]:
    """Where the value of each path of keys begins; a path that comes twice says nothing."""
    offsets: dict[tuple[str, ...], int] = {}
    above: list[str] = []
    for part in _PART.finditer(text):
        if part.group(1) is None:
            above = above[:-1]
        elif part.group(2) == "{":
            above.append(_read(part.group(1)))
        else:
            path = (*above, _read(part.group(1)))
            quoted = part.group(2).startswith('"')
            offsets[path] = -1 if path in offsets else part.end() + quoted
    return offsets


def _read(key: str) -> str:
    try:
        return str(json.loads(f'"{key}"'))
    except ValueError:
        return key


def next_word(tokens: object) -> float | None:
    """The probability of yes, given that the first word is yes or no; None where it hardly is either."""
    first = tokens[0] if isinstance(tokens, list) and tokens else None
    mass = _mass(first) if isinstance(first, dict) else {}
    total = sum(mass.values())
    return _clipped(mass[True] / total) if total >= LEAST_MASS else None


def _chance(token: Mapping[str, Any]) -> float | None:
    mass = _mass(token)
    total = sum(mass.values())
    return _clipped(mass[True] / total) if total > 0 else None


def _clipped(chance: float) -> float:
    return min(max(chance, 1 - MOST_SURE), MOST_SURE)


def _mass(token: Mapping[str, Any]) -> dict[bool, float]:
    """The probabilities of the words for yes and for no at the place of this token."""
    others = token.get("top_logprobs")
    candidates = [token, *(others if isinstance(others, list) else [])]
    mass = {True: 0.0, False: 0.0}
    seen: set[str] = set()
    for candidate in candidates:
        word, logprob = (
            (candidate.get("token"), candidate.get("logprob")) if isinstance(candidate, dict) else (None, None)
        )
        if not isinstance(word, str) or isinstance(logprob, bool) or not isinstance(logprob, int | float):
            continue
        value = _meaning(word)
        if value is not None and word not in seen and logprob <= 1e-6:
            mass[value] += math.exp(min(logprob, 0.0))
        seen.add(word)
    return mass


def _meaning(word: str) -> bool | None:
    """A token may be the beginning of the word, or have what stands before it."""
    bare = "".join(re.findall(r"\w+", word)[:1]).casefold()
    for value, words in ((True, _YES), (False, _NO)):
        if bare and any(word.startswith(bare) for word in words):
            return value
    return None
