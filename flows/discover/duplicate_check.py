"""Which new features mean what an earlier one means: where words and labels leave that in doubt, the oracle is asked
(`discovery/duplicates.py` has the odds)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from twothirds.discovery import (
    NOTHING_SEEN,
    SAME_FROM,
    Closeness,
    Described,
    LabelNoise,
    Labels,
    Likeness,
    chance_of_same,
    is_in_doubt,
    label_odds,
    likeness,
)
from twothirds.models import Answer, Ballot, Elicited, Feature, Label, OracleError, OracleUnavailable, Same, Verdict

MOST_PAIRS = 4  # that one new feature is asked about, the likeliest
MOST_ANSWERS = 3  # to one pair
Pair = frozenset[Feature]


@dataclass(frozen=True, eq=False)
class LabelledFeature:
    """A feature with its labels, as far as they are known, and what its votes say of their noise."""

    feature: Feature
    labels: Labels
    noise: LabelNoise = NOTHING_SEEN

    @classmethod
    def of(cls, ballot: Ballot, votes: int) -> LabelledFeature:
        return cls(ballot.feature, ballot.labels, vote_noise(ballot.answers, votes) if votes > 1 else NOTHING_SEEN)


def vote_noise(answers: Iterable[Answer], votes: int) -> LabelNoise:
    """By the first two votes on each label."""
    verdicts_on: dict[str, dict[int, Verdict]] = {}
    for answer in answers:
        question = answer.question
        if isinstance(question, Label) and question.voter < 2 and answer.verdict in (Verdict.YES, Verdict.NO):
            verdicts_on.setdefault(question.example.digest, {})[question.voter] = answer.verdict
    pairs = [list(verdicts.values()) for verdicts in verdicts_on.values() if len(verdicts) == 2]
    return LabelNoise.of_votes(len(pairs), sum(first is not second for first, second in pairs), votes)


@dataclass
class DuplicateCheck:
    """Asks up to MOST_ANSWERS times about each of up to MOST_PAIRS pairs for a new feature."""

    ask: Callable[[list[Same]], Elicited]
    votes: int = 1  # of a label
    closeness: Closeness | None = None
    answers: dict[Feature, list[Answer]] = field(default_factory=dict)  # by the new feature they were given for
    _answered: dict[Pair, list[bool]] = field(default_factory=dict)
    _open: set[Pair] = field(default_factory=set)  # asked, and no usable answer
    _lost: bool = False  # it does not answer such questions

    def among(
        self, new: Sequence[LabelledFeature], earlier: Sequence[LabelledFeature], noise: LabelNoise
    ) -> tuple[dict[int, Feature], OracleError | None]:
        """By place among the new ones, the feature that it repeats: an earlier one, or a new one before it. `noise` is
        what is known of all labels. And the error that ended it, if one did."""
        found = [
            [self._match(labelled, other, noise) for other in (*earlier, *new[:place])]
            for place, labelled in enumerate(new)
        ]
        stopped = None
        while stopped is None and (asked := [pair for matches in found for pair in self._doubtful(matches)]):
            stopped = self._put(asked)
        repeated: dict[int, Feature] = {}
        for place, matches in enumerate(found):
            best = max(matches, key=self._chance, default=None)
            if best is not None and self._chance(best) >= SAME_FROM:
                first = next((at for at, labelled in enumerate(new) if labelled.feature == best.other), None)
                repeated[place] = best.other if first is None else repeated.get(first, best.other)
        return repeated, stopped

    def denied(self, feature: Feature, other: Feature) -> bool:
        answers = self._answered.get(frozenset((feature, other)), [])
        return 2 * sum(answers) < len(answers)

    def _match(self, labelled: LabelledFeature, other: LabelledFeature, noise: LabelNoise) -> _Match:
        first, second = (Described(side.feature.name, side.feature.definition) for side in (labelled, other))
        odds = label_odds(labelled.labels, other.labels, noise + labelled.noise + other.noise)
        return _Match(labelled.feature, other.feature, likeness(first, second, self.closeness), odds)

    def _chance(self, match: _Match) -> float:
        return chance_of_same(match.words, match.by_labels, self._answered.get(match.pair, ()))

    def _doubtful(self, matches: list[_Match]) -> list[tuple[_Match, int]]:
        """Pairs to ask about, each with the number of answers to it so far."""
        if self._lost:
            return []
        likeliest = sorted(matches, key=lambda match: -self._chance(match))[:MOST_PAIRS]
        counted = [(pair, len(self._answered.get(pair.pair, ()))) for pair in likeliest if pair.pair not in self._open]
        return [(match, n) for match, n in counted if n < MOST_ANSWERS and is_in_doubt(self._chance(match), n)]

    def _put(self, asked: list[tuple[_Match, int]]) -> OracleError | None:
        elicited = self.ask([Same.of(match.new, match.other, voter) for match, voter in asked])
        for (match, _), answer in zip(asked, elicited.answers, strict=True):
            if answer is not None:
                self.answers.setdefault(match.new, []).append(answer)
            if answer is not None and answer.verdict in (Verdict.YES, Verdict.NO):
                self._answered.setdefault(match.pair, []).append(answer.verdict is Verdict.YES)
            else:
                self._open.add(match.pair)
        if isinstance(elicited.stopped, OracleUnavailable):
            self._lost = True  # where the oracle is gone for good, the next question tells
            return None
        return elicited.stopped


@dataclass(frozen=True, eq=False)
class _Match:
    new: Feature
    other: Feature
    words: Likeness
    by_labels: float

    @property
    def pair(self) -> Pair:
        return frozenset((self.new, self.other))
