"""What the page shows of each feature: its question, shares, votes, and pairs that differ in little else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from discovery import UNKNOWN, Kind
from reports.drawing import percent, plural, share_bar
from reports.page.truth import AgainstTruth, MatchedAttribute
from reports.run import COMPLEMENT, KNOWN, MICRO, SAME, AnsweredComparison, Findings, FoundFeature
from sources import Example

CANDIDATE_PAIRS = 200


@dataclass(frozen=True)
class MinimalPair:
    having: int  # rows of the examples
    lacking: int
    differing: list[int]  # the other features in which the two are known to differ


def minimal_pairs(
    matrix: NDArray[np.int8], feature: int, doubtful: NDArray[np.bool_], wanted: int = 3
) -> list[MinimalPair]:
    """The pairs that differ in the feature and in as few others as possible; no example is used twice.

    Of pairs that are equally close, those with undoubted labels come first. `matrix` is features × examples."""
    labels = matrix[feature]
    having, lacking = np.flatnonzero(labels == 1), np.flatnonzero(labels == 0)
    if not having.size or not lacking.size:
        return []
    others = np.delete(matrix, feature, axis=0)
    positives, negatives = (others == 1).astype(np.float32), (others == 0).astype(np.float32)
    unknown = (others == UNKNOWN).astype(np.float32).sum(axis=0)
    distance = positives[:, having].T @ negatives[:, lacking] + negatives[:, having].T @ positives[:, lacking]
    distance += (0.25 * doubtful + 0.5 * unknown)[having][:, None] + (0.25 * doubtful + 0.5 * unknown)[lacking][None, :]
    flat = distance.ravel()
    nearest = np.argpartition(flat, min(CANDIDATE_PAIRS, flat.size) - 1)[:CANDIDATE_PAIRS]
    pairs: list[MinimalPair] = []
    used: set[int] = set()
    for place in sorted(nearest.tolist(), key=lambda place: (flat[place], place)):
        a, b = int(having[place // lacking.size]), int(lacking[place % lacking.size])
        if a in used or b in used:
            continue
        used |= {a, b}
        pairs.append(MinimalPair(a, b, _differing(matrix, a, b, feature)))
        if len(pairs) == wanted:
            break
    return pairs


def _differing(matrix: NDArray[np.int8], a: int, b: int, feature: int) -> list[int]:
    known = (matrix[:, a] != UNKNOWN) & (matrix[:, b] != UNKNOWN)
    return [row for row in np.flatnonzero(known & (matrix[:, a] != matrix[:, b])).tolist() if row != feature]


EXAMPLES_PER_SIDE = 12  # examples of either side in a card
ASKED_FOR = {
    Kind.TWO_OF_THREE: "What do two of the three share that the third lacks?",
    Kind.PAIR: "What does one of the two have that the other lacks?",
    Kind.ONE_OF_THREE: "What does one of the three have that the other two lack?",
    Kind.LEFT_RIGHT: "What do all on the left have that none on the right has?",
    Kind.GROUPS: "What do clearly more of one group have than of the other?",
    Kind.TAG: "What is there to say about this one?",
}


def kinds_asked(comparisons: Sequence[AnsweredComparison]) -> list[tuple[str, int]]:
    """The kinds of question that were asked, in words, and how often; the most frequent first."""
    counts = Counter(asked.kind for asked in comparisons)
    return [(ASKED_FOR.get(kind, kind.value), count) for kind, count in counts.most_common()]


@dataclass(frozen=True)
class CardExample:
    """An example in a card: its place in the page's data, and whether the votes contradict where it stands."""

    place: int
    name: str
    text: str
    pictured: bool  # a picture that cannot be read any more counts: the page says that it is missing
    contradicted: bool = False
    predicted: float | None = None  # how probable yes was, where the label is not the oracle's


@dataclass(frozen=True)
class Pair:
    having: CardExample
    lacking: CardExample
    differing: list[str]


@dataclass(frozen=True)
class FeatureCard:
    order: int
    found: FoundFeature
    question: str
    having: list[CardExample]
    lacking: list[CardExample]
    yes: int
    no: int
    unknown: int
    bar: Markup
    positives: list[CardExample]
    negatives: list[CardExample]
    pairs: list[Pair]
    votes: int
    voted_twice: int  # examples with two votes or more
    unanimous: int  # of these
    abstained: int
    doubtful_labels: int
    predicted: int  # labels that are not the oracle's
    predicted_yes: int  # of these
    marks: list[tuple[str, str]] = field(default_factory=list)  # style and words
    truth: MatchedAttribute | None = None

    @property
    def share(self) -> float:
        return self.yes / max(self.yes + self.no, 1)

    @property
    def usd(self) -> float:
        return self.found.cost / MICRO


class CarriedExamples:
    """Places the examples that the page carries; an example that it does not carry has place -1."""

    def __init__(self, names: list[str], examples: Sequence[Example | None], rows: NDArray[np.intp]) -> None:
        self._names, self._examples = names, examples
        self._place = {int(row): place for place, row in enumerate(rows)}
        self._row_of = {name: row for row, name in enumerate(names)}

    def row(self, name: str) -> int | None:
        return self._row_of.get(name)

    def show(self, row: int, of: FoundFeature, contradicted: bool = False) -> CardExample:
        example = self._examples[row]
        text = (example.text if example else None) or ""
        return CardExample(
            place=self._place.get(row, -1),
            name=self._names[row],
            text=text,
            pictured=not text or (example is not None and example.image is not None),
            contradicted=contradicted,
            predicted=float(of.probability[row]) if of.predicted[row] else None,
        )

    def carries(self, row: int) -> bool:
        return row in self._place


@dataclass(frozen=True, eq=False)
class FeatureCards:
    """All features of a run, and the examples that the page carries."""

    findings: Findings
    gallery: CarriedExamples
    carried: NDArray[np.intp]
    truth: AgainstTruth | None

    def all(self) -> list[FeatureCard]:
        return [
            self._feature_card(number, interesting, distinct)
            for number, (interesting, distinct) in enumerate(self.findings.marks)
        ]

    @cached_property
    def _labelled(self) -> NDArray[np.bool_]:
        return self.findings.labelled

    @cached_property
    def _in_page(self) -> NDArray[np.int8]:
        return self.findings.matrix[:, self.carried]

    def _feature_card(self, number: int, interesting: bool, distinct: bool) -> FeatureCard:
        found = self.findings.found[number]
        vote_counts, labels = found.vote_counts, found.labels
        yes, no = found.positives, found.labelled - found.positives
        unknown = int((labels[self._labelled] == UNKNOWN).sum())
        voted_twice = vote_counts.yes + vote_counts.no >= 2
        having, lacking = _question(found, self.gallery)
        return FeatureCard(
            order=number + 1,
            found=found,
            question=ASKED_FOR.get(found.asked.kind, "") if found.asked else "",
            having=having,
            lacking=lacking,
            yes=yes,
            no=no,
            unknown=unknown,
            bar=share_bar(yes, no, unknown),
            positives=self._strip(number, 1),
            negatives=self._strip(number, 0),
            pairs=self._pairs(number),
            votes=int(vote_counts.votes.sum()),
            voted_twice=int(voted_twice.sum()),
            unanimous=int((voted_twice & (np.minimum(vote_counts.yes, vote_counts.no) == 0)).sum()),
            abstained=int(vote_counts.abstained.sum()),
            doubtful_labels=int(found.doubtful.sum()),
            predicted=int(found.predicted.sum()),
            predicted_yes=int((found.predicted & (labels == 1)).sum()),
            marks=_marks(found, interesting, distinct),
            truth=self.truth.matches[number] if self.truth else None,
        )

    def _pairs(self, number: int) -> list[Pair]:
        found = self.findings.found[number]
        doubtful = (found.doubtful | found.predicted)[self.carried]
        return [
            Pair(
                self.gallery.show(int(self.carried[pair.having]), found),
                self.gallery.show(int(self.carried[pair.lacking]), found),
                [self.findings.found[other].name for other in pair.differing],
            )
            for pair in minimal_pairs(self._in_page, number, doubtful)
        ]

    def _strip(self, number: int, value: int) -> list[CardExample]:
        """A few at random, the same on every writing."""
        rows = self.carried[self._in_page[number] == value]
        chosen = np.random.default_rng(len(self.carried)).permutation(len(rows))[:EXAMPLES_PER_SIDE]
        found = self.findings.found[number]
        return [self.gallery.show(int(rows[place]), found) for place in sorted(chosen)]


def _question(found: FoundFeature, gallery: CarriedExamples) -> tuple[list[CardExample], list[CardExample]]:
    """The examples asked about: those said to have the feature, and those said to lack it."""
    asked = found.asked
    if asked is None:
        return [], []
    rows = {name: row for name in (*asked.examples, *asked.without) if (row := gallery.row(name)) is not None}
    having = asked.having or [name for name, row in rows.items() if found.labels[row] == 1]
    lacking = [name for name in rows if name not in having]
    return (
        [gallery.show(rows[name], found, bool(found.labels[rows[name]] == 0)) for name in having if name in rows],
        [gallery.show(rows[name], found, bool(found.labels[rows[name]] == 1)) for name in lacking],
    )


TWIN_WORDS = {SAME: "the same as", COMPLEMENT: "the opposite of"}


def _marks(found: FoundFeature, interesting: bool, distinct: bool) -> list[tuple[str, str]]:
    source = f"added by {found.added_by}" if found.added_by else "known"
    marks = [("plain", source)] if found.question == KNOWN else []
    marks.append(("good", "interesting") if interesting else ("plain", "rare or nearly always"))
    marks.append(("good", "distinct") if distinct else ("plain", "much like an earlier one"))
    for start, words in TWIN_WORDS.items():
        if found.twin.startswith(start):
            marks.append(("plain", f"{words} “{found.twin.removeprefix(start)}”"))
    if found.is_doubtful:
        marks.append(("bad", "doubtful" if found.consistent else "doubtful: its own question contradicts it"))
    if found.look:
        marks.append(("plain", f"not labelled in full: {found.look}"))
    if predicted := int(found.predicted.sum()):
        marks.append(("plain", f"{percent(predicted / max(found.labelled, 1))} of the labels predicted"))
    if found.corrected:
        marks.append(("good", f"{plural(len(found.corrected), 'label')} checked by people"))
    if found.made:
        marks.append(("plain", found.made))
    return marks
