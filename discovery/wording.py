"""How alike two features are in words: names and definitions by the base forms of their words, in several languages.

Base forms are not proof ("glasses" have the base form "glass"): alike words are a reason to look closer."""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from discovery.twins import CLOSE_MEANING, FILLERS, LINKS, NEGATIONS, SPELLINGS, SUBJECTS, Closeness, content_words

LANGUAGES = ("en", "de", "fr", "es", "it", "pt", "nl")  # tried in this order; the first that knows most of the words
ALIKE_DEFINITIONS = 0.5  # of the words of either, those that are in both
# Words that say nothing of which feature it is.
GENERAL = {
    *("color", "colour", "element", "object", "thing", "item", "presence", "detail", "feature", "something", "one"),
    *("be", "have", "show", "contain", "mention", "see", "read", "notice", "look", "find", "can", "could", "might"),
    *("clearly", "this", "that", "which", "who", "or", "in", "on", "of", "at", "to", "as", "by", "for", "when", "if"),
    *("example", "picture", "image", "text", "mainly", "mostly", "often", "usually", "at", "least", "into", "from"),
}
IGNORED = FILLERS | LINKS | SUBJECTS | NEGATIONS | GENERAL


class Described(NamedTuple):
    name: str
    definition: str = ""


class Likeness(Enum):
    EQUAL = "the same words"  # but for endings, or by the same definition
    CLOSE = "words in common"
    APART = "other words"


def likeness(one: Described, other: Described, closeness: Closeness | None = None) -> Likeness:
    """`closeness` is of meaning, by a sentence model."""
    if content_words(one.name)[0] != content_words(other.name)[0]:  # one denies what the other says
        return Likeness.APART
    names, definitions = zip(_base_forms(one), _base_forms(other), strict=True)
    if names[0] == names[1] or (definitions[0] and definitions[0] == definitions[1]):
        return Likeness.EQUAL
    in_common = len(definitions[0] & definitions[1]) >= ALIKE_DEFINITIONS * max(1, len(definitions[0] | definitions[1]))
    within = names[0] <= names[1] or names[1] <= names[0]
    defined = names[0] <= definitions[1] or names[1] <= definitions[0]
    if within or in_common or defined:
        return Likeness.CLOSE
    near = closeness is not None and closeness(one.name, other.name) >= CLOSE_MEANING
    return Likeness.CLOSE if near else Likeness.APART


@lru_cache(maxsize=4096)
def _base_forms(feature: Described) -> tuple[frozenset[str], frozenset[str]]:
    """Of name and definition, in the language of both together: a rare word alone may look foreign."""
    language = _language(f"{feature.name} {feature.definition}")
    return _forms(feature.name, language), _forms(feature.definition, language)


def _forms(text: str, language: str | None) -> frozenset[str]:
    """Of the words that say which feature it is; all words where none of them does."""
    forms = {SPELLINGS.get(form, form) for form in _lemmas(_words(text), language)}
    return frozenset(forms - IGNORED) or frozenset(forms)


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text)


def _language(text: str) -> str | None:
    from simplemma import is_known  # here: it takes a fifth of a second to load

    words = _words(text)
    for language in LANGUAGES:  # the dictionaries of other languages take a second each: opened for other words only
        if 2 * sum(is_known(word, language) for word in _spelled(words, language)) > len(words):
            return language
    return None


def _lemmas(words: list[str], language: str | None) -> list[str]:
    from simplemma import lemmatize

    if language is None:
        return [content_words(word)[1][0] for word in words]
    return [lemmatize(word, language).casefold() for word in _spelled(words, language)]


def _spelled(words: list[str], language: str) -> list[str]:
    return words if language == "de" else [word.casefold() for word in words]
