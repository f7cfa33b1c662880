"""What names of features have in common: "black hair" and "red hair" are hair in a colour."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from discovery.duplicates import FILLERS, RELATIONS, SPELLINGS

COLOURS = {
    *("black", "white", "gray", "red", "orange", "yellow", "green", "blue", "purple", "violet", "pink", "brown"),
    *("blond", "golden", "silver", "beige", "turquoise", "teal", "cyan", "magenta", "dark", "light", "bright", "pale"),
}
NUMBERS = {"no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "many", "several"}
KINDS = (("{} colour", COLOURS), ("number of {}", NUMBERS), ("{}", None))
IGNORED = FILLERS | RELATIONS


@dataclass(frozen=True, slots=True)
class WordGroup:
    name: str
    members: tuple[int, ...]
    specific: bool  # all differ by a colour or a number, and by nothing else


def groups_by_words(names: Sequence[str]) -> list[WordGroup]:
    """Names that differ by a colour or a number and share a word beside, then names that end with the same word, the
    largest first. A name may be in several groups."""
    ordered = [_content_words(name) for name in names]
    words = [frozenset(some) for some in ordered]
    shared = sorted({word for some in words for word in some if sum(word in other for other in words) > 1})
    found: list[WordGroup] = []
    for word in shared:
        if word in COLOURS or word in NUMBERS:
            continue
        sharing = [place for place, some in enumerate(words) if word in some]
        for form, kind in KINDS:
            members = [
                place
                for place in sharing
                if (ordered[place][-1] == word if kind is None else _differs_by(kind, words[place], word))
            ]
            if len(members) > 1:
                found.append(WordGroup(form.format(word), tuple(members), kind is not None))
    bare = [place for place, some in enumerate(words) if some and some <= COLOURS]
    if len(bare) > 1:
        found.append(WordGroup("colour", tuple(bare), True))
    return sorted(found, key=lambda group: (not group.specific, -len(group.members)))


def content_words(name: str) -> frozenset[str]:
    """The words of a name that matter, in one spelling."""
    return frozenset(_content_words(name))


def _content_words(name: str) -> list[str]:
    words = re.findall(r"[^\W_]+", name.casefold())
    return [SPELLINGS.get(word, word) for word in words if word not in IGNORED] or [""]


def _differs_by(kind: set[str], words: frozenset[str], word: str) -> bool:
    return len(words) > 1 and words - {word} <= kind
