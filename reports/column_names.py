"""The columns of features: one normal form of their names, the same in run folders, nightly tables and exports."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable
from functools import lru_cache

from twothirds.discovery import singular

VOTES = ("yes", "no", "abstained")
BESIDE = ("source", "probability", "by", *VOTES)  # what else is known of labels: in brackets after a feature's column
ENDINGS = tuple(f" ({kind})" for kind in BESIDE)

ARTICLES = {
    *("a", "an", "the", "der", "die", "das", "ein", "eine", "le", "la", "les", "un", "une", "el", "los", "las", "una"),
    *("il", "lo", "gli", "de", "het", "een", "os", "um", "uma"),
}


def column_names(features: Iterable[tuple[str, str]], taken: Collection[str] = ()) -> list[str]:
    """Of features with names and definitions. No two are the same to a reader that ignores case, nor one that is
    taken: such a name is marked as a feature's."""
    used, columns = {name.casefold() for name in taken}, list[str]()
    for name, definition in features:
        columns.append(untaken(plain_name(name, definition), used, "feature"))
        used.add(columns[-1].casefold())
    return columns


@lru_cache(maxsize=10_000)
def plain_name(name: str, definition: str = "") -> str:
    """The name in the form that columns have: lower case, no article, and English words in the singular. Base forms of
    other languages would not read as names."""
    from simplemma import is_known

    text = " ".join(unicodedata.normalize("NFC", name).lower().split()).rstrip(".,;:!")
    words = re.findall(r"[^\W_]+", f"{text} {definition.lower()}")
    parts = text.split(" ")
    if 2 * sum(is_known(word, "en") for word in words) > len(words):
        after = [*parts[1:], ""]
        parts = [part for part, then in zip(parts, after, strict=True) if part not in ("a", "an", "the") or not then]
        return re.sub(r"[^\W\d_]+", lambda word: _singular_if_a_lemma(word[0]), " ".join(parts))
    return " ".join(parts[1:] if len(parts) > 1 and parts[0] in ARTICLES else parts)


def _singular_if_a_lemma(word: str) -> str:
    """No rule makes another word of it: the dictionary must know the singular."""
    from simplemma import lemmatize

    return lemma if (lemma := lemmatize(word, "en")) == singular(word) else word


def untaken(name: str, taken: Collection[str], mark: str) -> str:
    """The name, with the mark after it and then a number, until no other has it."""
    column, number = name, 1
    while column.casefold() in taken or column.endswith(ENDINGS):
        column = f"{name} ({mark})" if number == 1 else f"{name} ({mark} {number})"
        number += 1
    return column
