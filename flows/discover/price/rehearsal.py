"""Rehearse a run with made-up answers, by the code that asks, to learn what it costs. Nothing is sent to any server.

Of a run that predicts labels a part is asked in full, and of the rest what cannot be predicted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from discovery import Comparison, Kind, Labels
from discovery.statistics import Promise
from models import (
    NOTHING_MEASURED,
    Answer,
    Compare,
    Family,
    Feature,
    Forecast,
    Label,
    Measured,
    Money,
    NamedFeature,
    Oracle,
    OracleIdentity,
    Panel,
    ProbesServer,
    Question,
    QuestionKeys,
    Same,
    Verdict,
    Why,
    connect,
    reserved_at_once,
)
from models.people import MixedCrowd
from models.predicted import asked_in_full, groups_of
from sources import Example

if TYPE_CHECKING:
    from store import Store

LEFT_TO_ASK = 0.2  # of what is neither learned from nor sampled: as if the middle one of the cuts passed
AT_ONCE = 8_192  # labels
REHEARSALS = 3  # of a discovery
SAMPLE = 120  # examples that are rehearsed, of those that are compared and of the others
FOUND, FEWEST_FOUND = 0.85, 0.6  # of the features asked for that are found and new: likely, and at least
BORDERLINE = 0.06  # of the labels, on which votes are cast by chance
DOUBTFUL = 0.1  # of the labels that people are asked about where a model is in doubt
UNSURE, UNSURE_MEASURED = 0.15, 0.05  # of the tokens: by rules alone, and where earlier answers tell
MOST = 4  # times the likely price, which no run on a server that does its work has come near to
NOTHING = Forecast()
SYLLABLES = ("ma", "to", "ri", "lu", "ke", "so", "na", "pi")


@dataclass(frozen=True)
class PriceRange:
    """Money of a run or of a part of it."""

    likely: Forecast = NOTHING
    low: Money = 0
    high: Money = 0
    most: Money = 0
    features: int = 0  # that it likely finds
    calls: int = 0  # questions that it likely asks
    measured: int = 0  # earlier answers that tell what is usual

    def __add__(self, other: PriceRange) -> PriceRange:
        return PriceRange(
            self.likely + other.likely,
            self.low + other.low,
            self.high + other.high,
            self.most + other.most,
            self.features + other.features,
            self.calls + other.calls,
            max(self.measured, other.measured),
        )


def forecast_of(oracle: Oracle, questions: Sequence[Question], measured: Measuring, *, doubtful: float) -> Forecast:
    """What any oracle takes for these; of a crowd with people, `doubtful` of the labels go to them too."""
    if isinstance(oracle, MixedCrowd):
        named = [question for question in questions if isinstance(question, Compare | Family)]
        labels = [question for question in questions if isinstance(question, Label)]
        others = [question for question in questions if question not in named]
        total = forecast_of(oracle.elicits, named, measured, doubtful=doubtful)
        total += forecast_of(oracle.labels, others, measured, doubtful=doubtful)
        if oracle.people is not None:
            checked = oracle.mixture.spot_check or 0.0
            share = min(1.0, checked + (doubtful if oracle.mixture.escalate is not None else 0.0))
            by_people = forecast_of(oracle.people, labels, measured, doubtful=doubtful)
            total += by_people.times(1.0 if doubtful == 1.0 else share)
        return total
    if not questions:
        return NOTHING
    if isinstance(oracle, ProbesServer):
        return oracle.forecast(questions, measured.of(oracle))
    prices = oracle.estimate(questions)
    return Forecast(0, 0, 0, sum(prices), sum(prices), reserved_at_once(oracle.width) * max(prices))


class Measuring:
    """What earlier answers say about each oracle: looked up once, for the examples of one data set."""

    def __init__(self, examples: Iterable[Example]) -> None:
        self._examples = examples
        self._known: dict[int, Measured] = {}

    def of(self, oracle: Oracle) -> Measured:
        if not isinstance(oracle, ProbesServer):
            return NOTHING_MEASURED
        if id(oracle) not in self._known:
            self._known[id(oracle)] = oracle.measured(self._examples)
        return self._known[id(oracle)]

    @property
    def answers(self) -> int:
        return max((measured.answers for measured in self._known.values()), default=0)


@dataclass
class RehearsedOracle:
    """Stands in for an oracle: counts what it would take, and answers as a model may. With `worst` every comparison
    finds a feature and every label takes all its votes."""

    oracle: Oracle
    measured: Measuring
    worst: bool = False
    weight: Callable[[Example], float] = lambda _: 1.0  # of a label, for as many examples as this one stands for
    unanswered: Callable[[list[Question]], list[Question]] = lambda questions: questions  # those that are not kept
    total: Forecast = NOTHING
    calls: float = 0.0
    _rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    _names: int = 0
    _asked_for: int = 0  # features
    _shares: dict[str, float] = field(default_factory=dict)

    identity = OracleIdentity("rehearsal", "")
    width = 1

    def estimate(self, questions: Sequence[Question]) -> list[Money]:
        return [0] * len(questions)

    def ask(self, questions: Iterable[Question]) -> Iterator[Answer]:
        asked = list(questions)
        unknown = self.unanswered(asked)
        for kind in dict.fromkeys(map(type, unknown)):
            part = [question for question in unknown if type(question) is kind]
            weight = self.weight(part[0].example) if type(part[0]) is Label else 1.0
            doubtful = 1.0 if self.worst else DOUBTFUL
            taken = forecast_of(self.oracle, part, self.measured, doubtful=doubtful)
            self.total += taken.times(weight)
            self.calls += weight * len(part)
        for question in asked:
            if isinstance(question, Compare):
                yield self._compared(question)
            elif isinstance(question, Label | Why):
                yield self._labelled(question)

    def _compared(self, question: Compare) -> Answer:
        share, named = 1.0 if self.worst else FOUND, list[NamedFeature]()
        having = tuple(range(max(1, 2 * len(question.examples) // 3)))
        for _ in range(question.most):
            self._asked_for += 1
            if round(share * self._asked_for) > self._names:
                named.append(NamedFeature(made_up_feature(self._names), having))
                self._names += 1
        if not named:
            return Answer(question, Verdict.NONE, "rehearsal")
        return Answer(question, Verdict.FEATURE, "rehearsal", feature=named[0].feature, more=tuple(named[1:]))

    def _labelled(self, question: Label | Why) -> Answer:
        if not isinstance(question, Label) or isinstance(question, Same):
            return Answer(question, Verdict.NO, "rehearsal", reason="rehearsed")
        name = question.feature.name
        if name not in self._shares:
            self._shares[name] = 0.5 if self.worst else float(self._rng.beta(1.5, 3.0))
        cell = crc32(f"{name} {question.example.digest}".encode("utf-8", "replace")) / 2**32
        yes = cell < self._shares[name]
        if self.worst:
            yes ^= bool(question.voter % 2)
        elif cell * 1_000 % 1 < BORDERLINE:
            yes = self._rng.random() < 0.5
        return Answer(question, Verdict.YES if yes else Verdict.NO, "rehearsal")


def made_up_feature(number: int) -> Feature:
    """Of the usual length, and another one for every number."""
    digits = [number // len(SYLLABLES) ** place % len(SYLLABLES) for place in range(4)]
    first, second, third, fourth = (SYLLABLES[digit] for digit in digits)
    name = f"{first}{second}ck {third}{fourth}nd"
    return Feature(name, f"The example shows {name} in a way that is plain to see.")


class RandomQuestions:
    """In place of a strategy: questions of the form of its first one, about examples drawn at random."""

    unresolved = 1.0

    def __init__(self, form: Comparison, n: int) -> None:
        self._form, self._n = form, n
        self._rng = np.random.default_rng(0)

    def next_questions(self, k: int) -> list[Comparison]:
        return [self._next() for _ in range(k)]

    def _next(self) -> Comparison:
        here, there = len(self._form.examples), len(self._form.without)
        rows = self._rng.choice(self._n, here + there, replace=here + there > self._n).tolist()
        return replace(self._form, examples=tuple(rows[:here]), without=tuple(rows[here:]))

    def know(self, feature: str, labels: Labels) -> None:
        pass

    def learn(self, question: Comparison, features: Sequence[str], labels: Sequence[Labels]) -> None:
        pass


def price_range(
    rehearse: Callable[[RehearsedOracle], int], oracle: Oracle, measured: Measuring, **terms: Any
) -> PriceRange:
    """`rehearse` does all that a run does with the oracle that it is given; it returns how many features were found.
    What is found is left to chance, so that of a discovery several rehearsals are averaged."""

    def rehearsed(seed: int, *, worst: bool = False) -> tuple[RehearsedOracle, int]:
        rehearsal = RehearsedOracle(oracle, measured, worst, **terms, _rng=np.random.default_rng(seed))
        return rehearsal, rehearse(rehearsal)

    drawn, (worst, most_features) = [rehearsed(0)], rehearsed(0, worst=True)
    if most_features:
        drawn += [rehearsed(seed) for seed in range(1, REHEARSALS)]
    likely = sum((rehearsal.total for rehearsal, _ in drawn), NOTHING).times(1 / len(drawn))
    calls, features = (
        round(sum(column) / len(drawn))
        for column in zip(*((rehearsal.calls, n) for rehearsal, n in drawn), strict=True)
    )
    unsure = UNSURE_MEASURED if measured.answers else UNSURE
    fewest, all_found = (FEWEST_FOUND / FOUND, 1 / FOUND) if features or most_features else (1.0, 1.0)
    high = round(likely.cost * all_found * (1 + unsure))
    most = min(max(worst.total.most, high), MOST * likely.cost)
    low = round(likely.cost * fewest * (1 - unsure))
    return PriceRange(likely, low, min(high, most), most, features, calls, measured.answers)


def draw(examples: Sequence[Example], most: int) -> list[Example]:
    """All of them, or so many at random, the same every time."""
    if len(examples) <= most:
        return list(examples)
    chosen = np.random.default_rng(len(examples)).choice(len(examples), most, replace=False)
    return [examples[row] for row in sorted(chosen.tolist())]


def is_paid(oracle: Oracle, examples: Sequence[Example]) -> bool:
    """Whether asking about these may cost anything."""
    first = list(examples[:1])
    questions: list[Question] = [Compare(Kind.TAG, tuple(first))]
    questions += [Label(Feature("name"), example) for example in first]
    return forecast_of(oracle, questions, Measuring(()), doubtful=1.0).most > 0


def is_known(oracle: Oracle) -> bool:
    """Whether the identity is known without a request to a server; if so, it is connected."""
    members = oracle.members if isinstance(oracle, MixedCrowd) else [oracle]
    known = all(member.is_probed() for member in members if isinstance(member, ProbesServer))
    if known:
        connect(oracle)
    return known


def unanswered_by(oracle: Oracle, store: Store) -> Callable[[list[Question]], list[Question]]:
    """Which questions the store has no answer to; all of them, where the oracle's server was never probed."""
    if isinstance(oracle, MixedCrowd) or not is_known(oracle):
        return list
    keys = QuestionKeys(oracle.identity)

    def unanswered(questions: list[Question]) -> list[Question]:
        by_key = {keys.of(question): question for question in questions}
        kept = store.answers.lookup(list(by_key))
        return [question for key, question in by_key.items() if key not in kept]

    return unanswered


@dataclass(frozen=True)
class AskedShares:
    """How much of a pool is asked."""

    examples: int  # that are asked in full: to learn from, and to certify
    of: int
    left: tuple[float, ...]  # of each feature, which share of its labels of the other examples is asked
    is_measured: bool = False  # by an earlier run

    @classmethod
    def expected(cls, pool: int, features: int, promise: Promise, *, known: int = 0) -> AskedShares:
        """`known` are examples of the pool that are labelled already."""
        return cls(asked_in_full(pool, promise, known=known), pool - known, (LEFT_TO_ASK,) * features)

    @classmethod
    def as_before(cls, pool: int, promise: Promise, left: tuple[float, ...], *, kept: bool) -> AskedShares:
        """By what an earlier run asked; `kept` says that its classifiers are there."""
        return cls(asked_in_full(pool, promise, kept=kept), pool, left, is_measured=True)

    @property
    def saves(self) -> bool:
        return self.examples < self.of

    def words(self, agree: float) -> str:
        if not self.saves:
            return f"{self.of:,} examples are too few to predict any: all are asked"
        share = sum(self.left) / max(len(self.left), 1)
        source = "as in the run before" if self.is_measured else "assumed"
        return (
            f"{self.examples:,} of {self.of:,} examples are asked, and {share:.0%} of what is left ({source}); the "
            f"other labels are predicted, certified to agree on {agree:.0%}; at most if nothing can be certified"
        )

    def cells(self, examples: Sequence[Example], features: int) -> NDArray[np.bool_]:
        """Those that are asked of a sample of the pool: of pictures whole rows, of texts any."""
        n, rng = len(examples), np.random.default_rng(0)
        full, whole_rows = round(n * self.examples / self.of), examples[0].image is not None
        cells = np.zeros((n, features), np.bool_)
        cells[:full] = True
        for feature in range(features):
            left = max(self.left) if whole_rows else self.left[feature]
            cells[full : full + round((n - full) * left), feature] = True
            if not whole_rows:
                cells[full:, feature] = rng.permutation(cells[full:, feature])
        return cells


def label_cells(
    rehearsal: Oracle,
    examples: Sequence[Example],
    features: Sequence[Feature],
    votes: int,
    cells: NDArray[np.bool_],
) -> None:
    for rows, columns in groups_of(cells, AT_ONCE // votes, examples):
        panel = Panel(rehearsal, [examples[row] for row in rows], votes)
        panel.label([features[column] for column in columns])


def predicted_range(
    full: PriceRange,
    rehearse: Callable[[RehearsedOracle, AskedShares], None],
    shares: AskedShares,
    oracle: Oracle,
    measured: Measuring,
    **terms: Any,
) -> PriceRange:
    """`full` is the price of asking everything, which it costs at most. Where the share is assumed, the range goes from
    nothing that is left to ask to all of it."""
    if not shares.saves:
        return full

    def rehearsed(asked: AskedShares) -> RehearsedOracle:
        rehearsal = RehearsedOracle(oracle, measured, **terms)
        rehearse(rehearsal, asked)
        return rehearsal

    likely = rehearsed(shares)
    least = likely if shares.is_measured else rehearsed(replace(shares, left=(0.0,) * len(shares.left)))
    of_all = 1 / max(full.likely.cost, 1)
    low = round(full.low * least.total.cost * of_all)
    high = round(full.high * likely.total.cost * of_all) if shares.is_measured else full.high
    return replace(full, likely=likely.total, low=low, high=high, calls=round(likely.calls))
