"""When two features are one: by their words, or by the examples they select.

Words count as the same only where that is safe, because a feature with a known name is not labelled again: "glasses" is
not "glass", "star above cross" is not "cross above star". Closeness of meaning alone never decides: opposites are
close, and so are "vertical stripes" and "horizontal stripes"."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from discovery.metrics import LabelMatrix
from discovery.questions import UNKNOWN, Labels

Closeness = Callable[[str, str], float]  # of two names' meanings: 1 for the same words, about 0 for unrelated ones

SAME_LABELS = 0.95  # correlation from which labels alone make a twin
ALIKE_LABELS = 0.8  # correlation from which labels make a twin of names that are close in meaning
CLOSE_MEANING = 0.6
ENOUGH_ROWS = 8  # labels known for both
ENOUGH_OF_EACH = 2  # examples on the rarer side: two features that select one and the same example prove little

NEGATIONS = {"no", "not", "without", "lacks", "lack", "lacking", "never", "cannot"}
LINKS = {
    *("has", "have", "having", "with", "wears", "wear", "wearing", "worn", "shows", "show", "showing", "shown"),
    *("contains", "contain", "containing", "features", "featuring", "displays", "displaying", "includes", "including"),
    *("is", "are", "being", "there", "visible", "present"),
}
FILLERS = {"a", "an", "the", "some", "any", "its", "their", "his", "her", "and", *LINKS}
SUBJECTS = {"person", "someone", "picture", "image", "photo", "example", "text", "it", "subject"}
RELATIONS = {
    *("above", "below", "over", "under", "on", "in", "inside", "behind", "before", "after", "beside", "left", "right"),
    *("of", "to", "from", "than", "by", "between", "into", "for", "at", "near", "or", "but"),
}
NEVER_SINGULAR = {
    *("glasses", "sunglasses", "eyeglasses", "goggles", "shorts", "pants", "trousers", "jeans", "tights", "clothes"),
    *("scissors", "news", "series", "species", "gas", "lens"),
}
SPELLINGS = {
    word: spelling
    for spelling, *words in (
        *(("man", "men"), ("woman", "women"), ("child", "children"), ("person", "people"), ("foot", "feet")),
        *(("tooth", "teeth"), ("mouse", "mice"), ("goose", "geese"), ("leaf", "leaves"), ("wolf", "wolves")),
        *(("knife", "knives"), ("scarf", "scarves"), ("color", "colour"), ("colored", "coloured"), ("gray", "grey")),
        *(("mustache", "moustache"), ("blond", "blonde"), ("glasses", "spectacles", "eyeglasses")),
        *(("one", "1"), ("two", "2"), ("three", "3"), ("four", "4"), ("five", "5"), ("six", "6")),
    )
    for word in words
}


@dataclass(frozen=True, slots=True)
class Twin:
    kind: Literal["same", "complement"]
    other: int  # its place among the known features
    by: Literal["words", "labels", "meaning"]  # meaning: close in meaning, and labels that agree
    strength: float  # 1 by words, else the size of the labels' correlation


def normalised(name: str) -> str:
    """The words that carry the meaning, singular and in one spelling, "not" first; sorted where order cannot matter."""
    negated, words = content_words(name)
    return " ".join(["not"] * negated + [*_in_order(words)])


def same_name(a: str, b: str) -> bool:
    return _kind_by_words(a, b) == "same"


def find_twin(
    name: str,
    labels: Labels | None,
    known_names: Sequence[str],
    known_labels: Sequence[Labels],
    closeness: Closeness | None = None,
) -> Twin | None:
    """The known feature that `name` repeats or inverts: the first by words, else the one with the most telling labels.

    Before a feature is labelled (`labels` is None) only words can tell."""
    for other, known in enumerate(known_names):
        kind = _kind_by_words(name, known)
        if kind is not None:
            return Twin(kind, other, "words", 1.0)
    if labels is None:
        return None
    return _twin_by_labels(name, labels, known_names, known_labels, closeness)


def correlations(some: LabelMatrix, others: LabelMatrix) -> NDArray[np.float64]:
    """Of each feature with each of the others, over the examples labelled with both; 0 where too little is known."""
    known, ones = (some != UNKNOWN).astype(np.float64), (some == 1).astype(np.float64)
    known_others, ones_others = (others != UNKNOWN).astype(np.float64), (others == 1).astype(np.float64)
    both = known @ known_others.T  # examples labelled with both features
    a, b, shared = ones @ known_others.T, known @ ones_others.T, ones @ ones_others.T
    spread = np.sqrt(a * (both - a)) * np.sqrt(b * (both - b))
    rarer = np.minimum.reduce([a, both - a, b, both - b])
    enough = (both >= ENOUGH_ROWS) & (rarer >= ENOUGH_OF_EACH)
    return np.where(enough, (both * shared - a * b) / np.where(enough, spread, 1.0), 0.0)


def _twin_by_labels(
    name: str, labels: Labels, names: Sequence[str], known: Sequence[Labels], closeness: Closeness | None
) -> Twin | None:
    if not known:
        return None
    related = correlations(labels[None], np.stack(known))[0].tolist()
    for other in sorted(range(len(known)), key=lambda place: -abs(related[place])):
        strength = min(abs(related[other]), 1.0)
        kind: Literal["same", "complement"] = "same" if related[other] > 0 else "complement"
        if strength >= SAME_LABELS:
            return Twin(kind, other, "labels", strength)
        if strength < ALIKE_LABELS or closeness is None:
            return None
        if closeness(name, names[other]) >= CLOSE_MEANING:
            return Twin(kind, other, "meaning", strength)
    return None


def _kind_by_words(a: str, b: str) -> Literal["same", "complement"] | None:
    (a_negated, a_words), (b_negated, b_words) = content_words(a), content_words(b)
    # "sun glasses", "sun-glasses" and "sunglasses" differ only in where the words are divided.
    if "".join(a_words) != "".join(b_words) and _in_order(a_words) != _in_order(b_words):
        return None
    return "same" if a_negated == b_negated else "complement"


@lru_cache(maxsize=10_000)
def _in_order(words: tuple[str, ...]) -> tuple[str, ...]:
    """Sorted where order cannot matter."""
    related = len(words) > 3 or any(_relates(word, place) for place, word in enumerate(words))
    return words if related else tuple(sorted(words))


@lru_cache(maxsize=10_000)  # each new name is compared with every known one
def content_words(name: str) -> tuple[bool, tuple[str, ...]]:
    """Whether the name denies something, and the words of what it says or denies."""
    text = unicodedata.normalize("NFKC", name).casefold().replace("’", "'")
    text = re.sub(r"\b(does|do|is|are|has|have|can)(n't| not)\b", "not", text).replace("'s ", " ")
    words = re.findall(r"[^\W_]+", text)
    if len(words) > 2 and words[0] in FILLERS:
        words = words[1:] if words[1] in SUBJECTS else words
    if len(words) > 2 and words[0] in SUBJECTS and words[1] in LINKS | NEGATIONS:
        words = words[1:]
    negated = sum(word in NEGATIONS for word in words) % 2 == 1
    said = [word for word in words if word not in NEGATIONS]
    content = [word for word in said if word not in FILLERS] or said
    return negated, tuple(_singular(word) for word in content)


def _singular(word: str) -> str:
    word = SPELLINGS.get(word, word)
    if len(word) < 4 or word in NEVER_SINGULAR:
        return word
    if word.endswith("ies"):
        word = word[:-3] + "y"
    elif re.search(r"(ch|sh|ss|x|z)es$", word):
        word = word[:-2]
    elif re.search(r"[^siu]s$", word):
        word = word[:-1]
    return SPELLINGS.get(word, word)


def _relates(word: str, place: int) -> bool:
    return word in RELATIONS or (place > 0 and word.endswith("ing"))
