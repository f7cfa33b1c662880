"""Secrets cut out of what others say: a server may echo the key that it was sent, an error the address."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from urllib.parse import quote, unquote, urlsplit

from sources.secrecy import CUT, SHORTEST, secret_words


def words_of(key: str, url: str | None) -> tuple[str, ...]:
    """Every form in which a key, and what is secret in an address, may come back."""
    words = [key, quote(key, safe=""), *secret_words(url or "")]
    try:
        parts = urlsplit(url or "")
        password = parts.password
    except ValueError:
        return _longest_first(words)
    if parts.username and parts.scheme in ("http", "https"):
        words += [parts.username, unquote(parts.username)]
    if password:
        plain, user = unquote(password), unquote(parts.username or "")
        words += [password, plain, quote(plain, safe=""), base64.b64encode(f"{user}:{plain}".encode()).decode()]
    return _longest_first(words)


def redacted(text: str, words: Iterable[str]) -> str:
    for word in words:
        text = text.replace(word, CUT)
    return text


def _longest_first(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({word for word in words if len(word) >= SHORTEST}, key=lambda word: (-len(word), word)))
