"""When two features are one: by their words, by the examples they select, and by what somebody says who was asked.

Words count as the same only where that is safe, because a feature with a known name is not labelled again: "glasses" is
not "glass", "star above cross" is not "cross above star". Closeness of meaning alone never decides: opposites are
close, and so are "vertical stripes" and "horizontal stripes". Base forms of words, in several languages, are no proof
either ("glasses" have the base form "glass"): alike words are a reason to look closer.

Labels err, so one feature labelled twice differs from itself. How often is estimated from what comparisons said of
examples that were labelled later; before that, a tenth. Two columns of labels are then likelier as one feature with
such errors or as any two features, which is a ratio of marginal likelihoods. It is bounded: of different features some
select the same examples, and no number of labels tells these from one feature. Words and answers are odds."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import exp, lgamma, log
from typing import Literal, NamedTuple

import numpy as np

from twothirds.discovery.metrics import correlations
from twothirds.discovery.questions import UNKNOWN, Labels

Closeness = Callable[[str, str], float]  # of two names' meanings: 1 for the same words, about 0 for unrelated ones

SAME_LABELS = 0.95  # correlation from which labels alone make a twin
ALIKE_LABELS = 0.8  # correlation from which labels make a twin of names that are close in meaning
CLOSE_MEANING = 0.6
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


class Twin(NamedTuple):
    kind: Literal["same", "complement"]
    other: int  # its place among the known features


def normalised(name: str) -> str:
    """The words that carry the meaning, singular and in one spelling, "not" first; sorted where order cannot matter."""
    negated, words = _content_words(name)
    return " ".join(["not"] * negated + [*_in_order(words)])


def same_name(a: str, b: str) -> bool:
    return _kind_by_words(a, b) == "same"


def find_twin(
    name: str, labels: Labels, names: Sequence[str], known: Sequence[Labels], closeness: Closeness | None = None
) -> Twin | None:
    """The known feature that `name` repeats or inverts: the first by words, else that with the most telling labels."""
    for other, known_name in enumerate(names):
        if (kind := _kind_by_words(name, known_name)) is not None:
            return Twin(kind, other)
    if not known:
        return None
    related = correlations(labels[None], np.stack(known))[0]
    for other in np.argsort(-np.abs(related), kind="stable").tolist():
        kind = "same" if related[other] > 0 else "complement"
        if abs(related[other]) >= SAME_LABELS:
            return Twin(kind, other)
        if abs(related[other]) < ALIKE_LABELS or closeness is None:
            return None
        if closeness(name, names[other]) >= CLOSE_MEANING:
            return Twin(kind, other)
    return None


def _kind_by_words(a: str, b: str) -> Literal["same", "complement"] | None:
    (a_negated, a_words), (b_negated, b_words) = _content_words(a), _content_words(b)
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
def _content_words(name: str) -> tuple[bool, tuple[str, ...]]:
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
    return negated, tuple(singular(word) for word in content)


def singular(word: str) -> str:
    """By rules that are safe, not by a dictionary."""
    word = SPELLINGS.get(word, word)
    if len(word) < 4 or word in NEVER_SINGULAR | LINKS:
        return word
    if word.endswith("ies"):
        word = word[:-3] + "y"
    elif re.search(r"(ch|sh|ss|x|z)es$", word):
        word = word[:-2]
    elif re.search(r"[^siu]s$", word):
        word = word[:-1]
    return SPELLINGS.get(word, word)


LANGUAGES = ("en", "de", "fr", "es", "it", "pt", "nl")  # tried in this order; the first that knows most of the words
# Words that say nothing of which feature it is.
GENERAL = {
    *("color", "colour", "element", "object", "thing", "item", "presence", "detail", "feature", "something", "one"),
    *("be", "have", "show", "contain", "mention", "see", "read", "notice", "look", "find", "can", "could", "might"),
    *("clearly", "this", "that", "which", "who", "or", "in", "on", "of", "at", "to", "as", "by", "for", "when", "if"),
    *("example", "picture", "image", "text", "mainly", "mostly", "often", "usually", "at", "least", "into", "from"),
}
IGNORED = FILLERS | SUBJECTS | NEGATIONS | GENERAL

EQUAL, CLOSE, APART = 1.0, 0.1, 1 / 300  # odds of being one by words alone: the same, some in common, others
ALIKE_DEFINITIONS = 0.5  # of the words of either, those that are in both
USUAL_DIFFERING, USUAL_AGREEING = 2.0, 18.0  # labels of one feature labelled twice, before anything is known of a run
MOST_CELLS = 100.0  # labels of one model share errors: no more of them count as seen
COINCIDENCE = 0.01  # of the pairs of different features select the same examples, but for errors
RELATED = 0.3  # of them have to do with each other in some way: any table of both, either and neither is as likely
MOST_LABELS = 400  # more are counted as so many: their errors are alike
RELIABLE = 0.95  # of the answers whether two features mean the same are right
ASK_FROM, SURE_FROM = 0.02, 0.98  # between these chances somebody is asked
ASK_AGAIN_FROM, SAME_FROM = 0.5, 0.9  # and once more between these; from the last on the two are one
MOST_PAIRS = 4  # that one new feature is asked about, the likeliest
MOST_ANSWERS = 3  # to one pair


class Described(NamedTuple):
    name: str
    definition: str = ""


Candidate = tuple[Described, Labels]
Cells = tuple[int, int]  # labels of which something else was said before, and how many of them differ from it


def odds_by_words(feature: Described, other: Described, closeness: Closeness | None = None) -> float:
    """`closeness` is of meaning, by a sentence model."""
    if _content_words(feature.name)[0] != _content_words(other.name)[0]:  # one denies what the other says
        return APART
    (name, meaning), (other_name, other_meaning) = _base_forms(feature), _base_forms(other)
    if name == other_name or (meaning and meaning == other_meaning):
        return EQUAL
    in_common = len(meaning & other_meaning) >= ALIKE_DEFINITIONS * max(1, len(meaning | other_meaning))
    within = name <= other_name or other_name <= name or name <= other_meaning or other_name <= meaning
    near = closeness is not None and closeness(feature.name, other.name) >= CLOSE_MEANING
    return CLOSE if in_common or within or near else APART


@lru_cache(maxsize=4096)
def _base_forms(feature: Described) -> tuple[frozenset[str], frozenset[str]]:
    """Of the words of name and definition that say which feature it is; of all words where none of them does. In the
    language of both together: a rare word alone may look foreign."""
    from simplemma import is_known, lemmatize  # here: it takes a fifth of a second to load

    def knows(language: str) -> bool:  # the dictionaries after the first take a second each, for other words only
        words = [word for text in feature for word in _words(text, language)]
        return 2 * sum(is_known(word, language) for word in words) > len(words)

    def forms(text: str) -> frozenset[str]:
        words = _words(text, language)
        found = (lemmatize(word, language).casefold() if language else singular(word) for word in words)
        every = {SPELLINGS.get(form, form) for form in found}
        return frozenset(every - IGNORED) or frozenset(every)

    language = next(filter(knows, LANGUAGES), "")
    return forms(feature.name), forms(feature.definition)


def _words(text: str, language: str) -> list[str]:
    return re.findall(r"[^\W_]+", text if language == "de" else text.casefold())


def odds_by_labels(labels: Labels, other: Labels, noise: Cells = (0, 0)) -> float:
    """By how much labels raise or lower the odds that the two are one feature; at most 1 / COINCIDENCE."""
    labelled = (labels != UNKNOWN) & (other != UNKNOWN)
    a, b = labels[labelled] == 1, other[labelled] == 1
    weight = min(1.0, MOST_LABELS / max(len(a), 1))
    having, first, second, lacking = (round(weight * int(cell.sum())) for cell in (a & b, a & ~b, b & ~a, ~a & ~b))
    counted = min(1.0, MOST_CELLS / max(noise[0], 1))
    differing, agreeing = USUAL_DIFFERING + counted * noise[1], USUAL_AGREEING + counted * (noise[0] - noise[1])
    differ, agree = first + second, having + lacking
    as_one = _log_beta(differing + differ, agreeing + agree) - _log_beta(differing, agreeing) - differ * log(2)
    as_one += _log_beta(having + 1, lacking + 1)
    related = lgamma(4) - lgamma(differ + agree + 4) + sum(lgamma(n + 1) for n in (having, first, second, lacking))
    unrelated = _log_beta(having + first + 1, second + lacking + 1) + _log_beta(
        having + second + 1, first + lacking + 1
    )
    as_two = float(np.logaddexp(log(RELATED) + related, log(1 - RELATED) + unrelated))
    ratio = exp(min(as_one - as_two, 50.0))
    return ratio / (1 - COINCIDENCE + COINCIDENCE * ratio)


def _log_beta(a: float, b: float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)


@dataclass(frozen=True, eq=False)
class Pair:
    """A new feature and one before it, and what is known of whether they are one."""

    new: Described
    other: Described
    odds: float  # by words and labels
    answers: list[bool | None]  # None: it was asked, and there is no usable answer

    @property
    def chance(self) -> float:
        odds = self.odds * (RELIABLE / (1 - RELIABLE)) ** (self.answers.count(True) - self.answers.count(False))
        return odds / (1 + odds)

    @property
    def wants_answer(self) -> bool:
        if not self.answers:
            return ASK_FROM <= self.chance < SURE_FROM
        more = len(self.answers) < MOST_ANSWERS and None not in self.answers
        return more and ASK_AGAIN_FROM <= self.chance < SAME_FROM


@dataclass
class Duplicates:
    """Finds out which new features mean what one before them means. `ask` puts pairs to the oracle: True, False or None
    for each, or nothing at all where it answers no more."""

    ask: Callable[[list[Pair]], list[bool | None]]
    closeness: Closeness | None = None
    _answers: dict[frozenset[Described], list[bool | None]] = field(default_factory=dict)
    _silent: bool = False

    def among(
        self, new: Sequence[Candidate], earlier: Sequence[Candidate], noise: Cells = (0, 0)
    ) -> dict[int, Described]:
        """By place among the new ones, the feature that it repeats: an earlier one, or a new one before it. `noise` is
        that of all labels."""
        pairs = [[self._pair(one, other, noise) for other in (*earlier, *new[:n])] for n, one in enumerate(new)]
        while not self._silent and (asked := [pair for of_one in pairs for pair in _doubtful(of_one)]):
            answers = self.ask(asked)
            self._silent = not answers
            for pair, answer in zip(asked, answers, strict=False):
                pair.answers.append(answer)
        repeated: dict[int, Described] = {}
        for place, of_one in enumerate(pairs):
            best = max(of_one, key=lambda pair: pair.chance, default=None)
            if best is not None and best.chance >= SAME_FROM:
                first = next((n for n, (feature, _) in enumerate(new) if feature == best.other), None)
                repeated[place] = best.other if first is None else repeated.get(first, best.other)
        return repeated

    def denied(self, feature: Described, other: Described) -> bool:
        answers = self._answers.get(frozenset((feature, other)), [])
        return answers.count(True) < answers.count(False)

    def _pair(self, new: Candidate, other: Candidate, noise: Cells) -> Pair:
        odds = odds_by_words(new[0], other[0], self.closeness) * odds_by_labels(new[1], other[1], noise)
        return Pair(new[0], other[0], odds, self._answers.setdefault(frozenset((new[0], other[0])), []))


def _doubtful(pairs: list[Pair]) -> list[Pair]:
    return [pair for pair in sorted(pairs, key=lambda pair: -pair.chance)[:MOST_PAIRS] if pair.wants_answer]
