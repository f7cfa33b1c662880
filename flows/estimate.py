"""What a run will cost, before anything is spent: questions about a sample of the examples, in the groups in which the
run sends them, are priced by the oracle and counted for all. Nothing is sent to any server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from math import ceil, comb, exp
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery import Comparison, Kind, votes_to_ask
from twothirds.discovery.statistics import Promise
from twothirds.flows.errors import UsageError
from twothirds.flows.events import Events
from twothirds.flows.oracle_specs import may_cost
from twothirds.models import (
    LABELS_AT_ONCE,
    MICRO,
    Compare,
    Family,
    Feature,
    Label,
    Members,
    Money,
    Oracle,
    Question,
    QuestionKeys,
    Same,
    in_turn,
    in_usd,
    reserved_at_once,
)
from twothirds.models.predicted import asked_in_full, groups_of
from twothirds.sources import Example

if TYPE_CHECKING:
    from twothirds.store import Store

SAMPLE = 120  # examples whose questions are priced, of those that are compared and of the others
MOST = 4  # times the likely price, which no run on a server that does its work has come near to
LEFT_TO_ASK = 0.2  # of what is neither learned from nor sampled: as if the middle one of the cuts passed
SYLLABLES = ("ma", "to", "ri", "lu", "ke", "so", "na", "pi")
REPEATED = 1.5  # times its bound, at most what a request costs at a server that does its work


@dataclass(frozen=True)
class Chances:
    """What is left to chance in a run."""

    found: float  # of the features asked for, while few are known, that are found and new
    there: float | None  # features of a data set, of which ever fewer are new; None: there are always more
    doubted: float  # requests whether a new feature means what a known one means, for each
    doubtful: float  # of the labels that people are asked about where a model is in doubt
    borderline: float | None  # of the labels, on which votes are cast by chance; None if every vote is cast

    def named(self, asked: float) -> float:
        """How many different features are found where so many are asked for."""
        return self.found * asked if self.there is None else self.there * (1 - exp(-self.found * asked / self.there))


# `doubted`: of 24 to 33 features that the lifelike server found in zoo and faces, 0.7 questions about each, which share
# requests, told which mean the same.
# `found` and `there`: where 96 features were asked for in faces, it found 77, where 105 were, 78; zoo has fewer, 30 of
# 192.
LIKELY = Chances(found=0.95, there=150.0, doubted=0.25, doubtful=0.1, borderline=0.06)
WORST = Chances(found=1.0, there=None, doubted=1.0, doubtful=1.0, borderline=None)


@dataclass(frozen=True)
class KnownPrice:
    """What the features that a run starts with take, which is part of its price."""

    features: int = 0
    labels_asked: int = 0
    labels_taken: int = 0  # that are known
    cost: Money = 0  # likely

    def to_json(self) -> dict[str, Any]:
        fields = asdict(self)
        return {"usd_about": fields.pop("cost") / MICRO} | fields


@dataclass(frozen=True)
class Estimate:
    """What a run takes, likely and at most. What is stored already is left out of what is left."""

    dataset: str = ""
    oracle: str = ""
    examples: int = 0
    likely: Money = 0
    at_most: Money = 0
    questions: int = 0  # likely
    most_questions: int = 0
    requests: int = 0
    seconds: int = 0  # likely, where it is known how fast the server is
    features: int = 0  # that it likely finds
    compared: int | None = None  # of the examples, where not all are
    stored: int = 0  # answers of an earlier attempt
    spent: Money = 0  # by earlier attempts
    in_flight: Money = 0  # that must be reserved to ask without waiting
    assumed: str = ""  # in words
    known: KnownPrice = field(default_factory=KnownPrice)
    budget_left: str = ""  # of a budget for a period, in words
    ended: bool = False  # the same run came to its end before: all that it needs is stored

    def __add__(self, other: Estimate) -> Estimate:
        """Of two runs, or of two parts of one."""
        return replace(
            self,
            **{name: getattr(self, name) + getattr(other, name) for name in _SUMS},
            in_flight=max(self.in_flight, other.in_flight),
            ended=self.ended and other.ended,
        )

    @property
    def budget(self) -> Money:
        """With which it costs no more than is estimated at most, or than must be reserved to ask without waiting."""
        return self.spent + max(self.most_left, self.left + self.in_flight)

    @property
    def left(self) -> Money:
        """Likely."""
        return round(self.likely * max(0.0, 1 - self.stored / max(self.questions, 1)))

    @property
    def most_left(self) -> Money:
        return -(-self.at_most * max(self.most_questions - self.stored, 0) // max(self.most_questions, 1))

    @property
    def time_left(self) -> str:
        from twothirds.studio.web import duration

        return duration(self.seconds * max(0.0, 1 - self.stored / max(self.questions, 1)))

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """In words."""
        return [*self._price_lines(), *filter(None, [self.budget_left])]

    def _price_lines(self) -> list[str]:
        compared = "" if self.compared is None else f", {self.compared:,} of them compared"
        head = f"{self.dataset} ({self.examples:,} examples{compared}) with {self.oracle}"
        stored = f"{self.stored:,} answers are stored already"
        if self.ended:
            return [head, f"{stored}: nothing is left to ask"]
        if not self.at_most:
            lines = [f"{head}: up to {self.most_questions:,} calls, free of charge; {stored}"]
            if self.seconds:
                lines.append(f"that takes about {self.time_left}, as fast as the server was last")
            return lines
        asked = f"{self.questions:,} calls"
        if self.requests:
            asked += f" in {self.requests:,} requests"
        if self.features:
            asked += f", for {self.features} features"
        lines = [
            f"{head}: likely {_about_usd(self.likely)}, at most {_about_usd(self.at_most)}",
            f"that is {asked}; by the sizes of the pictures and texts",
        ]
        if self.assumed:
            lines.append(self.assumed)
        if known := self.known.features:
            taken = f"{self.known.labels_taken:,} labels are known, {self.known.labels_asked:,} asked"
            lines.append(f"of that for {known} known features: {taken}, likely {_about_usd(self.known.cost)}")
        if self.stored:
            lines.append(f"{stored}: likely {_about_usd(self.left)}, at most {_about_usd(self.most_left)}, are left")
        return lines

    def to_json(self) -> dict[str, Any]:
        return {
            "dataset": self.dataset,
            "oracle": self.oracle,
            "examples": self.examples,
            "compared": self.compared,
            "features": self.features,
            "calls": self.most_questions,
            "kept": self.stored,
            "requests": self.requests,
            **({"seconds_about": self.seconds} if self.seconds else {}),
            "usd_about": self.likely / MICRO,
            "usd": self.at_most / MICRO,
            "usd_about_left": self.left / MICRO,
            "usd_left": self.most_left / MICRO,
            "assumed": self.assumed,
            "budget_left": self.budget_left,
            "known": self.known.to_json(),
        }


_SUMS = (
    *("likely", "at_most", "questions", "most_questions", "requests", "seconds"),
    *("features", "stored", "spent"),
)


Confirm = Callable[[Sequence[str]], bool]  # shows lines to whoever decides, and says whether to go on


def nobody(_lines: Sequence[str]) -> bool:
    return False


def agreed_budget(
    expected: Callable[[], Estimate],
    *,
    budget: Decimal | None,
    oracles: Iterable[str | None],
    agree: Callable[[str], None],
    events: Events,
) -> Decimal | None:
    """The budget of a run that is about to spend money: the one given, or the highest price estimated, once the user
    agrees to it. `agree` is given the bill, and raises UsageError where nobody does."""
    if budget is not None or not any(text and may_cost(text) for text in oracles):
        return budget
    with events.waiting("working out the price"):
        price = expected()
    if not price.most_left:
        return None
    likely, most = in_usd(price.left, 2, at_most=True), in_usd(price.most_left, 2, at_most=True)
    agree(f"{price.oracle} will likely cost {likely}, at most {most}")
    return Decimal(price.budget) / MICRO


def agreed_in_python(
    expected: Callable[[], Estimate],
    *,
    budget: Decimal | None,
    oracles: Iterable[str | None],
    yes: bool,
    events: Events,
) -> Decimal | None:
    """Of a call from Python, where nobody is asked. Raises UsageError without `budget` and `yes`."""

    def agree(bill: str) -> None:
        if not yes:
            raise UsageError(f"{bill}: give budget=USD, or yes=True to spend that; nothing was asked yet")
        events.say(bill)

    return agreed_budget(expected, budget=budget, oracles=oracles, agree=agree, events=events)


def _about_usd(amount: Money) -> str:
    """To the cent; a sum below ten cents with more digits."""
    return in_usd(amount, 2 if amount >= MICRO // 10 else 4, at_most=True)


@dataclass(frozen=True)
class Asked:
    """Questions about a sample that are asked together, and how often as many are asked in all."""

    questions: Sequence[Question]
    times: float = 1.0


Plan = Callable[[Chances], Iterable[Asked]]


@dataclass(frozen=True)
class Taken:
    """What planned requests take."""

    requests: float = 0
    cost: Money = 0  # likely
    most: Money = 0
    in_flight: Money = 0  # at most what is reserved at a time
    seconds: float = 0.0  # likely, where it is known how fast a server is

    def __add__(self, other: Taken) -> Taken:
        sums = {name: getattr(self, name) + getattr(other, name) for name in ("requests", "cost", "most", "seconds")}
        return Taken(**sums, in_flight=max(self.in_flight, other.in_flight))

    def times(self, factor: float) -> Taken:
        sums = {name: round(getattr(self, name) * factor) for name in ("requests", "cost", "most")}
        return replace(self, **sums, seconds=self.seconds * factor)


def taken_by(oracle: Oracle, questions: Sequence[Question]) -> Taken:
    """What one oracle takes for these."""
    requests = list(oracle.plan(questions)) if questions else []
    bounds = [request.bound for request in requests]
    return Taken(
        requests=len(requests),
        cost=sum(request.usual for request in requests),
        most=sum(min(request.limit, ceil(request.bound * REPEATED)) for request in requests),
        in_flight=reserved_at_once(oracle.traits.width) * max(bounds, default=0),
        seconds=sum(request.seconds for request in requests),
    )


Unanswered = Callable[[Sequence[Question]], Sequence[Question]]


@dataclass(frozen=True)
class Pricing:
    """Who is asked, and which of the questions the store has no answer to."""

    members: Members
    unanswered: Unanswered = lambda questions: questions

    def estimate(self, plan: Plan, *, in_full: Plan | None = None, likely: Chances = LIKELY) -> Estimate:
        """What the questions of a plan take. `in_full` is the plan where nothing can be predicted, which it costs at
        most."""
        cost, questions = self.total(plan(likely), likely)
        worst, most_questions = self.total((in_full or plan)(WORST), WORST)
        full = cost if in_full is None else self.total(in_full(likely), likely)[0]
        return Estimate(
            likely=cost.cost,
            at_most=min(max(worst.most, cost.cost), MOST * full.cost),
            questions=questions,
            most_questions=most_questions,
            requests=round(cost.requests),
            seconds=round(cost.seconds),
            in_flight=cost.in_flight,
        )

    def total(self, asked: Iterable[Asked], chances: Chances) -> tuple[Taken, int]:
        """And the number of questions."""
        total, count = Taken(), 0.0
        for group in asked:
            questions = self.unanswered(group.questions)
            total += self.taken(questions, chances.doubtful).times(group.times)
            count += len(questions) * group.times
        return total, round(count)

    def taken(self, questions: Sequence[Question], doubtful: float = 1.0) -> Taken:
        """What all members take for these; `doubtful` of the labels go to people too."""
        members = self.members
        named = [question for question in questions if isinstance(question, Compare | Family)]
        others = [question for question in questions if not isinstance(question, Compare | Family)]
        total = taken_by(members.comparisons, named) + taken_by(members.labels, others)
        if members.people is not None:
            labels = [question for question in others if isinstance(question, Label)]
            doubted = doubtful if members.review.doubtful is not None else 0.0
            share = min(1.0, (members.review.check or 0.0) + doubted)
            total += taken_by(members.people, labels).times(1.0 if doubtful == 1.0 else share)
        return total


def unanswered_by(members: Members, store: Store) -> Unanswered:
    """Which questions the store has no answer to. Of a crowd with people, those that its models have not answered."""
    naming, labelling = QuestionKeys(members.comparisons.identity), QuestionKeys(members.labels.identity)

    def unanswered(questions: Sequence[Question]) -> Sequence[Question]:
        by_key = {
            (naming if isinstance(question, Compare | Family) else labelling).of(question): question
            for question in questions
        }
        stored = store.requests.answers(list(by_key))
        return [question for key, question in by_key.items() if key not in stored]

    return unanswered


def bound_of_labels(members: Members, labels: Sequence[Question], store: Store) -> Money:
    """At most what labels cost that are not stored. Nothing is sent."""
    asked = [members.labels, *([members.people] if members.people is not None else [])]
    return sum(
        request.limit
        for oracle in asked
        for request in oracle.plan(unanswered_by(Members.alone(oracle), store)(labels))
    )


def draw(examples: Sequence[Example], most: int = SAMPLE) -> list[Example]:
    """All of them, or so many at random, the same every time."""
    if len(examples) <= most:
        return list(examples)
    chosen = np.random.default_rng(len(examples)).choice(len(examples), most, replace=False)
    return [examples[row] for row in sorted(chosen.tolist())]


def made_up_features(count: float) -> list[Feature]:
    """Of the usual length, each another one."""
    return [_made_up(number) for number in range(round(count))]


def _made_up(number: int) -> Feature:
    first, second, third, fourth = (SYLLABLES[number // len(SYLLABLES) ** place % len(SYLLABLES)] for place in range(4))
    name = f"{first}{second}ck {third}{fourth}nd"
    return Feature(name, f"The example shows {name} in a way that is plain to see.")


@dataclass(frozen=True)
class LabelPlan:
    """Labels by vote: first the fewest votes that can decide each, then more of those that are left in doubt."""

    votes: int
    chances: Chances
    known: frozenset[tuple[Feature, str]] = frozenset()  # by the digest of the example: not asked

    def of(self, examples: Sequence[Example], features: Sequence[Feature], times: float = 1.0) -> Iterator[Asked]:
        """All features of an example together, as they are sent."""
        cells = [
            (feature, example)
            for example in examples
            for feature in features
            if (feature, example.digest) not in self.known
        ]
        if not cells:
            return
        fewest = int(votes_to_ask(0, 0, 0, self.votes))
        yield _votes(cells, range(fewest), times)
        if self.chances.borderline is None:
            yield _votes(cells, range(fewest, self.votes), times)
        elif self.votes > fewest:
            # Votes by chance until one side has `fewest` of them, less those that are cast in any case.
            more = 2 * fewest * (1 - comb(2 * fewest, fewest) / 4**fewest) - fewest
            wanted = self.chances.borderline * more * len(cells)
            chosen = np.random.default_rng(0).choice(len(cells), min(ceil(wanted), len(cells)), replace=False)
            in_doubt = [cells[place] for place in sorted(chosen.tolist())]
            yield _votes(in_doubt, [fewest], times * wanted / len(in_doubt))

    def of_pool(
        self, examples: Sequence[Example], features: Sequence[Feature], times: float, shares: AskedShares | None
    ) -> Iterator[Asked]:
        """Where only a share of the labels is asked, those of the same features together."""
        if shares is None or not shares.saves:
            yield from self.of(examples, features, times)
            return
        for rows, columns in groups_of(shares.cells(examples, len(features)), LABELS_AT_ONCE // self.votes):
            yield from self.of([examples[row] for row in rows], [features[column] for column in columns], times)


def _votes(cells: Sequence[tuple[Feature, Example]], voters: Sequence[int], times: float) -> Asked:
    return Asked([Label(feature, example, voter) for feature, example in cells for voter in voters], times)


@dataclass(frozen=True)
class Discovery:
    """What a discovery asks, in numbers."""

    compared: Sequence[Example]
    queries: int
    form: Comparison = field(default_factory=lambda: Comparison(Kind.TWO_OF_THREE, (0, 1, 2)))
    widest: int | None = None  # examples that a question shows at most, one more than the last; None: as `form`
    labels_after: int | None = 1  # comparisons after which what they found is labelled; None: all at the end
    voters: int = 1
    per_question: int = 1
    votes: int = 1
    exemplars: int = 0
    ask_same: bool = False
    exclude: tuple[str, ...] = ()
    known_features: Sequence[Feature] = ()
    known: frozenset[tuple[Feature, str]] = frozenset()  # labels of features that are given
    remaining: Sequence[Example] = ()  # that are labelled too
    predicted: AskedShares | None = None  # of the rest

    def found(self, chances: Chances) -> list[Feature]:
        return self._made_up(chances.named(self.queries * self.per_question))

    def plan(self, chances: Chances) -> Iterator[Asked]:
        labels = LabelPlan(self.votes, chances, self.known)
        sample = draw(self.compared)
        yield from labels.of(sample, self.known_features, len(self.compared) / len(sample))
        yield from self._comparisons(chances, sample)
        for features, rounds in self._rounds(chances):
            yield from labels.of(sample, features, rounds * len(self.compared) / len(sample))
        found = self.found(chances)
        if self.ask_same and found:
            yield Asked([Same.of(found[0], _made_up(len(found)), 0)], chances.doubted * len(found))
        if self.remaining:
            sample, features = draw(self.remaining), [*self.known_features, *found]
            yield from labels.of_pool(sample, features, len(self.remaining) / len(sample), self.predicted)

    def labelled_once(self, chances: Chances) -> Iterator[Asked]:
        """What a cheaper oracle is asked that labels everything first."""
        for examples in (self.compared, self.remaining):
            sample = draw(examples)
            yield from LabelPlan(1, chances).of(sample, self.found(chances), len(examples) / len(sample))

    def _comparisons(self, chances: Chances, sample: Sequence[Example]) -> Iterator[Asked]:
        """About random examples, with the features that are known by then."""
        rng, names = np.random.default_rng(0), [feature.name for feature in self.found(chances)]
        starts = range(0, self.queries, self.voters)
        chosen = starts[:: ceil(len(starts) / SAMPLE)]
        for start in chosen:
            known = [feature.name for feature in self.known_features]
            known += names[: round(chances.named(self.per_question * start))]
            form = self._form(start // self.voters)
            here, there = len(form.examples), len(form.without)
            voters = range(min(self.voters, self.queries - start))
            rows = rng.choice(len(sample), here + there, replace=here + there > len(sample)).tolist()
            questions = [
                Compare(
                    kind=form.kind,
                    examples=tuple(sample[row] for row in rows[:here]),
                    without=tuple(sample[row] for row in rows[here:]),
                    known=tuple(known) if form.other_than_known else (),
                    voter=voter,
                    most=self.per_question,
                    exclude=self.exclude,
                )
                for voter in voters
            ]
            yield Asked(questions, len(starts) / len(chosen))

    def _form(self, number: int) -> Comparison:
        """As if every answer were short, and the next question showed one example more."""
        size = min(len(self.form.examples) + number, self.widest or 0, len(self.compared))
        if self.form.without or size <= len(self.form.examples):
            return self.form
        return replace(self.form, kind=Kind.SHARED, examples=tuple(range(size)))

    def _rounds(self, chances: Chances) -> Iterator[tuple[list[Feature], float]]:
        """The features that are labelled together, and in how many rounds as many are."""
        answers = self.queries if self.labels_after is None else self.labels_after * self.voters
        rounds = [(answers, self.queries // answers), (self.queries % answers, 1)]
        for asked, times in rounds:
            full, part = divmod(chances.named(self.queries * self.per_question) * asked / self.queries, 1)
            for count, share in ((int(full), 1 - part), (int(full) + 1, part)):
                if count and share * times:
                    yield self._made_up(count), share * times

    def _made_up(self, count: float) -> list[Feature]:
        """With the examples that models are shown."""
        having = max(1, 2 * len(self.form.examples) // 3)
        lacking = self.compared[having : len(self.form.examples) + len(self.form.without)]
        exemplars = in_turn(self.compared[:having], lacking)
        features = made_up_features(count)
        return [replace(feature, exemplars=exemplars, models_see=self.exemplars) for feature in features]


@dataclass(frozen=True)
class AskedShares:
    """How much of a pool is asked where labels are predicted."""

    examples: int  # that are asked in full: to learn from, and to certify
    of: int
    left: tuple[float, ...]  # of each feature, which share of its labels of the other examples is asked
    is_measured: bool = False  # by an earlier run

    @classmethod
    def expected(cls, pool: int, features: int, promise: Promise, *, known: int = 0) -> AskedShares:
        """`known` are examples of the pool that are labelled already."""
        return cls(asked_in_full(pool, promise, known=known), pool - known, (LEFT_TO_ASK,) * features)

    @classmethod
    def as_before(cls, pool: int, promise: Promise, left: tuple[float, ...], *, stored: bool) -> AskedShares:
        """By what an earlier run asked; `stored` says that its classifiers are there."""
        return cls(asked_in_full(pool, promise, stored=stored), pool, left, is_measured=True)

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
        """Those that are asked of a sample of the pool, of the same examples for every feature that is predicted."""
        n, whole_rows = len(examples), examples[0].image is not None
        full = round(n * self.examples / self.of)
        cells = np.zeros((n, features), np.bool_)
        cells[:full] = True
        for feature in range(features):
            left = max(self.left) if whole_rows else self.left[feature]
            cells[full : full + round((n - full) * left), feature] = True
        return cells
