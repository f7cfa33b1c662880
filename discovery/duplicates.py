"""When two features are one: by their words, by the examples they select, and by what somebody says who was asked.

Words count as the same only where that is safe, because a feature with a known name is not labelled again: "glasses" is
not "glass", "star above cross" is not "cross above star". Closeness of meaning alone never decides: opposites are
close, and so are "vertical stripes" and "horizontal stripes". Base forms of words, in several languages, are no proof
either ("glasses" have the base form "glass"): alike words are a reason to look closer.

Labels err, so one feature labelled twice differs from itself. How often is estimated from what was said twice: votes on
the same label, and what a comparison said of examples that were labelled later; before there is any of it, a prior that
is stated below. Two columns of labels are then likelier as one feature with such errors or as any two features, which
is a ratio of marginal likelihoods. It is bounded: of different features some select the same examples, and no
number of labels tells these from one feature. Words and answers are odds that are stated below."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from math import comb, exp, lgamma, log, sqrt
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery.metrics import LabelMatrix
from twothirds.discovery.questions import UNKNOWN, Labels

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


def correlations(features: LabelMatrix, others: LabelMatrix) -> NDArray[np.float64]:
    """Of each feature with each of the others, over the examples labelled with both; 0 where too little is known."""
    known, positive = (features != UNKNOWN).astype(np.float64), (features == 1).astype(np.float64)
    known_others, positive_others = (others != UNKNOWN).astype(np.float64), (others == 1).astype(np.float64)
    labelled = known @ known_others.T  # examples labelled with both features
    a, b, shared = positive @ known_others.T, known @ positive_others.T, positive @ positive_others.T
    spread = np.sqrt(a * (labelled - a)) * np.sqrt(b * (labelled - b))
    rarer = np.minimum.reduce([a, labelled - a, b, labelled - b])
    enough = (labelled >= ENOUGH_ROWS) & (rarer >= ENOUGH_OF_EACH)
    return np.where(enough, (labelled * shared - a * b) / np.where(enough, spread, 1.0), 0.0)


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
    related = len(words) > 3 or any(
        word in RELATIONS or (place > 0 and word.endswith("ing")) for place, word in enumerate(words)
    )
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
    affirmed = [word for word in words if word not in NEGATIONS]
    content = [word for word in affirmed if word not in FILLERS] or affirmed
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


ARTICLES = {
    *("a", "an", "the", "der", "die", "das", "ein", "eine", "le", "la", "les", "un", "une", "el", "los", "las", "una"),
    *("il", "lo", "gli", "de", "het", "een", "os", "um", "uma"),
}


@lru_cache(maxsize=10_000)
def plain_name(name: str, definition: str = "") -> str:
    """The name in the form that columns have: lower case, no article, and English words in the singular where their
    lemma says so. Base forms of other languages would not read as names."""
    from simplemma import is_known

    text = " ".join(unicodedata.normalize("NFC", name).lower().split()).rstrip(".,;:!")
    words = _words(f"{text} {definition.lower()}")
    english = 2 * sum(is_known(word, "en") for word in words) > len(words)
    parts = text.split(" ")
    if english:
        after = [*parts[1:], ""]
        parts = [part for part, then in zip(parts, after, strict=True) if part not in ("a", "an", "the") or not then]
        return re.sub(r"[^\W\d_]+", lambda word: _singular_by_lemma(word[0]), " ".join(parts))
    return " ".join(parts[1:] if len(parts) > 1 and parts[0] in ARTICLES else parts)


def _singular_by_lemma(word: str) -> str:
    from simplemma import lemmatize

    lemma = lemmatize(word, "en")
    plurals = (f"{lemma}s", f"{lemma}es", f"{lemma[:-1]}ies")
    regular = word in plurals and word not in SPELLINGS and word not in NEVER_SINGULAR | LINKS
    return lemma if regular or SPELLINGS.get(word) == lemma else word


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


def likeness(feature: Described, other: Described, closeness: Closeness | None = None) -> Likeness:
    """`closeness` is of meaning, by a sentence model."""
    if content_words(feature.name)[0] != content_words(other.name)[0]:  # one denies what the other says
        return Likeness.APART
    names, definitions = zip(_base_forms(feature), _base_forms(other), strict=True)
    if names[0] == names[1] or (definitions[0] and definitions[0] == definitions[1]):
        return Likeness.EQUAL
    in_common = len(definitions[0] & definitions[1]) >= ALIKE_DEFINITIONS * max(1, len(definitions[0] | definitions[1]))
    within = names[0] <= names[1] or names[1] <= names[0]
    defined = names[0] <= definitions[1] or names[1] <= definitions[0]
    if within or in_common or defined:
        return Likeness.CLOSE
    near = closeness is not None and closeness(feature.name, other.name) >= CLOSE_MEANING
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


USUAL_DIFFERENCE, USUAL_CELLS = 0.1, 20.0  # one feature labelled twice differs on a tenth: worth so many labels
MOST_CELLS = 100.0  # votes of one model share errors, so they never make us surer than so many labels would
COINCIDENCE = 0.01  # of the pairs of different features select the same examples, but for errors
RELATED = 0.3  # of them have to do with each other in some way: any table of both, either and neither is as likely
ODDS = {Likeness.EQUAL: 1.0, Likeness.CLOSE: 0.1, Likeness.APART: 1 / 300}  # of being one, before labels are seen
RELIABLE = 0.95  # of the answers whether two features mean the same are right
ASK_FROM, SURE_FROM = 0.02, 0.98  # between these chances somebody is asked
ASK_AGAIN_FROM, SAME_FROM = 0.5, 0.9  # and once more between these; from the last on the two are one
MOST_LABELS = 400  # more are counted as so many: what the grids below resolve, and errors are alike anyway
_SHARES = (np.arange(40) + 0.5) / 40  # of the examples that have the feature
_ROOTS = (np.arange(40) + 0.5) / 40
_ERRORS = _ROOTS**2 / 2  # differences of one feature from itself, close to each other where they are small


@dataclass(frozen=True, slots=True)
class LabelNoise:
    """How often one feature that is labelled twice differs from itself: what was seen, and how often it differed."""

    cells: float = 0.0
    differing: float = 0.0

    @classmethod
    def of_votes(cls, cells: int, differing: int, votes: int) -> LabelNoise:
        """From labels with two votes, and those whose votes differ, for labels that are the majority of so many."""
        error = (1 - sqrt(max(0.0, 1 - 2 * (differing / cells)))) / 2 if cells else 0.0  # of each vote
        wrong = _majority_error(error, votes)
        return cls(cells, cells * 2 * wrong * (1 - wrong))

    def __add__(self, other: LabelNoise) -> LabelNoise:
        return LabelNoise(self.cells + other.cells, self.differing + other.differing)

    @property
    def beta(self) -> tuple[float, float]:
        """The two parameters of what is known."""
        weight = min(1.0, MOST_CELLS / max(self.cells, 1.0))
        differ = USUAL_DIFFERENCE * USUAL_CELLS + weight * self.differing
        return differ, USUAL_CELLS + weight * self.cells - differ


NOTHING_SEEN = LabelNoise()


def label_odds(labels: Labels, other: Labels, noise: LabelNoise = NOTHING_SEEN) -> float:
    """By how much labels raise or lower the odds that the two are one feature; at most 1 / COINCIDENCE."""
    labelled = (labels != UNKNOWN) & (other != UNKNOWN)
    a, b = labels[labelled] == 1, other[labelled] == 1
    weight = min(1.0, MOST_LABELS / max(len(a), 1))
    cells = tuple(round(weight * int(cell.sum())) for cell in (a & b, a & ~b, b & ~a, ~a & ~b))
    ratio = exp(min(_as_one((cells[0], cells[1] + cells[2], cells[3]), noise.beta) - _as_two(cells), 50.0))
    return ratio / (1 - COINCIDENCE + COINCIDENCE * ratio)


def chance_of_same(words: Likeness, by_labels: float, answers: Sequence[bool] = ()) -> float:
    """`answers` are of those who were asked."""
    odds = ODDS[words] * by_labels * (RELIABLE / (1 - RELIABLE)) ** (2 * sum(answers) - len(answers))
    return odds / (1 + odds)


def is_in_doubt(chance: float, asked: int) -> bool:
    """Whether to ask once more, after so many answers."""
    return ASK_FROM <= chance < SURE_FROM if not asked else ASK_AGAIN_FROM <= chance < SAME_FROM


@lru_cache(maxsize=8192)
def _as_one(counts: tuple[int, int, int], beta: tuple[float, float]) -> float:
    """Logarithm of the likelihood of both, differing and neither, as one feature with errors."""
    shared, differing, neither = counts
    error = (1 - np.sqrt(1 - 2 * _ERRORS)) / 2
    has, lacks = _SHARES[:, None], 1 - _SHARES[:, None]
    likelihood = (
        shared * np.log(has * (1 - error) ** 2 + lacks * error**2)
        + neither * np.log(lacks * (1 - error) ** 2 + has * error**2)
        + differing * np.log(_ERRORS / 2)
    )
    prior = (beta[0] - 1) * np.log(_ERRORS) + (beta[1] - 1) * np.log(1 - _ERRORS) + np.log(_ROOTS)
    return _log_sum(likelihood + prior) - _log_sum(prior) - log(len(_SHARES))


def _as_two(cells: tuple[int, ...]) -> float:
    """The same of both, only the one, only the other and neither, as two features."""
    n, first, second = sum(cells), cells[0] + cells[1], cells[0] + cells[2]
    related = lgamma(4) - lgamma(n + 4) + sum(lgamma(cell + 1) for cell in cells)
    unrelated = sum(lgamma(k + 1) + lgamma(n - k + 1) - lgamma(n + 2) for k in (first, second))
    return float(np.logaddexp(log(RELATED) + related, log(1 - RELATED) + unrelated))


def _log_sum(values: NDArray[np.float64]) -> float:
    top = float(values.max())
    return top + float(np.log(np.exp(values - top).sum()))


def _majority_error(error: float, votes: int) -> float:
    """Of the majority of an odd number of votes with such errors; of an even number that of one less."""
    n = votes if votes % 2 else max(votes - 1, 1)
    return sum(comb(n, wrong) * error**wrong * (1 - error) ** (n - wrong) for wrong in range(n // 2 + 1, n + 1))
