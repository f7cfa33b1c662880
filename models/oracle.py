"""The seam between the loop and all that can answer: questions in, answers out, each with its cost.

The content of a question is part of the key under which its answer is stored."""

from __future__ import annotations

import hashlib
import json
import threading
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import groupby, islice, zip_longest
from math import inf
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import orjson
from numpy.typing import NDArray

from twothirds.discovery import Kind, Labels
from twothirds.sources import DatasetError, Example, Vanished

MICRO = 1_000_000
Money = int  # micro-dollars: sums of money are exact


def in_usd(amount: Money, digits: int = 4, *, at_most: bool = False) -> str:
    """The sum in USD for people, an upper bound rounded up. More digits where these would say that it is nothing."""
    while digits < 6 and 0 < amount < 10 ** (6 - digits):
        digits += 2
    step: int = 10 ** (6 - digits)
    steps = -(-amount // step) if at_most else round(amount / step)
    dollars, rest = divmod(steps, 10**digits)
    return f"{dollars}.{rest:0{digits}d} USD"


@dataclass(frozen=True, slots=True)
class Exemplar:
    """An example that is known to have a feature or to lack it."""

    example: Example
    has: bool


@dataclass(frozen=True, slots=True)
class Feature:
    """`exemplars` show what is meant: people always see them, models the first `models_see`. Whether features are the
    same is a matter of their words."""

    name: str
    definition: str = ""
    exemplars: tuple[Exemplar, ...] = field(default=(), compare=False)
    models_see: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Compare:
    """`known` names features the answer must differ from, `exclude` others that are not wanted; another list is another
    question."""

    kind: Kind
    examples: tuple[Example, ...]
    without: tuple[Example, ...] = ()
    known: tuple[str, ...] = ()
    voter: int = 0
    most: int = 1  # features that the answer may hold
    exclude: tuple[str, ...] = ()

    @property
    def content(self) -> dict[str, Any]:
        options: dict[str, Any] = {"most": self.most} if self.most > 1 else {}
        if self.exclude:
            options["exclude"] = list(self.exclude)
        return {
            "kind": self.kind.value,
            "examples": [example.digest for example in self.examples],
            "without": [example.digest for example in self.without],
            "known": list(self.known),
            "voter": self.voter,
            **options,
        }


MOST_EXEMPLARS = 8  # of a feature


def exemplars_of(asked: Compare, shown: Sequence[int]) -> tuple[Exemplar, ...]:
    """The examples of a comparison as its answer says; none where it does not say which have the feature."""
    everyone = (*asked.examples, *asked.without)
    having = range(len(asked.examples)) if asked.kind is Kind.LEFT_RIGHT else shown
    has = [everyone[place] for place in having]
    return in_turn(has, [example for place, example in enumerate(everyone) if place not in having]) if has else ()


def in_turn(having: Iterable[Example], lacking: Iterable[Example]) -> tuple[Exemplar, ...]:
    """One that has the feature, one that lacks it, and so on: the first few show both."""
    has = (Exemplar(example, True) for example in having)
    pairs = zip_longest(has, (Exemplar(example, False) for example in lacking))
    return tuple(exemplar for pair in pairs for exemplar in pair if exemplar is not None)[:MOST_EXEMPLARS]


@dataclass(frozen=True, slots=True)
class Label:
    feature: Feature
    example: Example
    voter: int = 0
    kind = Kind.LABEL

    @property
    def exemplars(self) -> tuple[Exemplar, ...]:
        """Those that a model is shown with the feature: never the example itself."""
        feature = self.feature
        if not feature.models_see:
            return ()
        others = (exemplar for exemplar in feature.exemplars if exemplar.example.digest != self.example.digest)
        return tuple(islice(others, feature.models_see))

    @property
    def content(self) -> dict[str, Any]:
        content = _content_of(self)
        if self.feature.models_see and (
            shown := [[exemplar.example.digest, exemplar.has] for exemplar in self.exemplars]
        ):
            content["exemplars"] = shown
        return content


@dataclass(frozen=True, slots=True)
class Same(Label):
    """Whether two features mean the same: a label whose example is a text that states both. Whoever can label texts
    can answer it, many in one request."""

    pair: tuple[Feature, ...] = ()
    kind = Kind.SAME

    @classmethod
    def of(cls, feature: Feature, other: Feature, voter: int = 0) -> Same:
        """The same question whichever comes first."""
        features = first, second = sorted((feature, other), key=lambda found: (found.name, found.definition))
        stated = (f"{found.name} ({found.definition})" if found.definition else found.name for found in features)
        text = "\n".join(f"Feature {number}: {words}" for number, words in enumerate(stated, start=1))
        pair = Example(f"{first.name} = {second.name}", digest_of(["pair", text]), text=text)
        return cls(MEAN_THE_SAME, pair, voter, (first, second))


MEAN_THE_SAME = Feature(
    "mean the same",
    "The two features that the text defines mean the same in other words: whoever finds the one in an example would "
    "find the other in it, and would count them as one.",
)


@dataclass(frozen=True, slots=True)
class Why:
    """Whether the example has the feature, and the reason; of a text also the words that show it."""

    feature: Feature
    example: Example
    voter: int = 0
    kind = Kind.WHY

    @property
    def content(self) -> dict[str, Any]:
        return _content_of(self)


def _content_of(question: Label | Why) -> dict[str, Any]:
    return {
        "kind": str(question.kind),  # `value` takes longer than all the rest
        "feature": (question.feature.name, question.feature.definition),
        "example": question.example.digest,
        "voter": question.voter,
    }


@dataclass(frozen=True, slots=True)
class Family:
    """Which of these features are values of one attribute? The answer is its name; `shown` are the places of those that
    are, and `more` values that no feature stands for, each with its place among all values. NONE: they are not."""

    features: tuple[Feature, ...]
    examples: tuple[Example, ...] = ()  # that seem to have none of them
    scale: bool = False  # each seems to include the next: levels, rather than values that exclude one another
    voter: int = 0
    kind = Kind.FAMILY

    @property
    def content(self) -> dict[str, Any]:
        return {
            "kind": self.kind.value,
            "features": [[feature.name, feature.definition] for feature in self.features],
            "examples": [example.digest for example in self.examples],
            "scale": self.scale,
            "voter": self.voter,
        }


@dataclass(frozen=True, slots=True)
class Choose:
    """Which value does the example have? The answer is one of the values; NONE: none of them, or with the note SEVERAL
    more than one."""

    attribute: Feature
    values: tuple[Feature, ...]
    example: Example
    voter: int = 0
    kind = Kind.VALUE

    @property
    def content(self) -> dict[str, Any]:
        return {
            "kind": self.kind.value,
            "attribute": [self.attribute.name, self.attribute.definition],
            "values": [[value.name, value.definition] for value in self.values],
            "example": self.example.digest,
            "voter": self.voter,
        }


SEVERAL = "more than one of the values"
Single = Compare | Family | Choose | Why  # what has a request of its own; labels may share one
Question = Single | Label


def examples_of(question: Question) -> tuple[Example, ...]:
    """The examples that a question shows."""
    if isinstance(question, Label | Choose | Why):
        return (question.example,)
    return (*question.examples, *(question.without if isinstance(question, Compare) else ()))


NO_QUESTION = Compare(Kind.TAG, ())  # of an answer that is read without its examples, or that is about none

_encoder = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def canonical_json(value: Any) -> str:
    return _encoder.encode(value)


def digest_of(value: Any) -> str:
    return hashlib.sha256(canonical_json(value).encode("utf-8", "surrogatepass")).hexdigest()


def digest_of_content(who: str, content: Mapping[str, Any]) -> str:
    """The same as `digest_of([…, content])`, where `who` is the canonical JSON of what comes first."""
    try:  # texts and whole numbers are all that a question holds: both encoders write them alike
        text = orjson.dumps(content, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # a lone surrogate
        text = canonical_json(content).encode("utf-8", "surrogatepass")
    return hashlib.sha256(b"[%b,%b]" % (who.encode("utf-8", "surrogatepass"), text)).hexdigest()


class Verdict(StrEnum):
    FEATURE = "feature"
    NONE = "none"
    YES = "yes"
    NO = "no"
    REFUSED = "refused"
    UNREADABLE = "unreadable"


UNUSABLE = frozenset({Verdict.REFUSED.value, Verdict.UNREADABLE.value})
USABLE = frozenset(verdict.value for verdict in Verdict) - UNUSABLE


@dataclass(frozen=True, slots=True)
class Usage:
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0  # of the input tokens, those the provider had read before: cheaper
    reasoning_tokens: int = 0  # of the output tokens, those the model thought with: billed as output

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(mine + theirs for mine, theirs in zip(self.to_json(), other.to_json(), strict=True)))

    def to_json(self) -> tuple[int, ...]:
        return self.requests, self.input_tokens, self.output_tokens, self.cached_tokens, self.reasoning_tokens


@dataclass(frozen=True, slots=True)
class NamedFeature:
    """A feature that a comparison brought out, and the positions of the examples that are said to have it. Of a group
    question those of `without` follow."""

    feature: Feature
    shown: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Overcharge:
    """A reply that `by` charged more for than the bound of its request."""

    charged: Money
    bound: Money
    by: str

    @property
    def scale(self) -> float:
        """By how much later bounds are raised: what was seen, and a quarter more, because requests differ."""
        return 1.25 * self.charged / max(self.bound, 1)

    def __str__(self) -> str:
        return (
            f"{self.by} charged {in_usd(self.charged, 6)} for a request that costs at most {in_usd(self.bound, 6)}: "
            "nothing more was sent, and what was charged is booked; look at the provider's bill, then run again: "
            f"from now on {self.scale:.2g} times as much is reserved for every request"
        )


@dataclass(frozen=True, slots=True)
class Answer:
    question: Question
    verdict: Verdict
    by: str  # who answered: a model, a reviewer, a simulated worker
    feature: Feature | None = None  # with Verdict.FEATURE: the best one
    shown: tuple[int, ...] = ()  # with FEATURE: as in NamedFeature
    probability: float | None = None  # of YES, where the oracle knows one
    usage: Usage = Usage()
    cost: Money = 0
    seconds: float = 0.0
    raw: str = ""  # the reply as it came
    note: str = ""  # with REFUSED and UNREADABLE: why, in a few words
    more: tuple[NamedFeature, ...] = ()  # with FEATURE: the next best ones, where the question asks for several
    reason: str = ""  # where the question asks why
    quote: str = ""  # words of the text that show it
    ordered: bool = False  # of a family: its values have an order
    how: str = ""  # what the server did to answer, in few words: json_schema, decisions, next word, …
    cached: bool = field(default=False, compare=False)  # taken from the store: nothing was paid now
    reused: bool = field(default=False, compare=False)  # nothing was booked for it: another run has paid, or its twin

    @property
    def own_cost(self) -> Money:
        """What the run that has it booked for it, now or in an earlier attempt."""
        return 0 if self.reused else self.cost

    @property
    def features(self) -> tuple[NamedFeature, ...]:
        """All that were named, best first."""
        return () if self.feature is None else (NamedFeature(self.feature, self.shown), *self.more)

    def cost_of(self, feature: Feature) -> Money:
        """The part of the run's own cost that falls to one of its features."""
        part, rest = divmod(self.own_cost, max(len(self.features), 1))
        return part + (rest if feature == self.feature else 0)

    def with_cost(self, cost: Money) -> Answer:
        return replace(self, cost=cost)

    def to_json(self) -> dict[str, Any]:
        """Everything but the question, which the store keeps beside it."""
        rare: dict[str, Any] = {"more": [_named_json(named) for named in self.more]} if self.more else {}
        if self.reason:
            rare |= {"reason": self.reason, "quote": self.quote}
        if self.ordered:
            rare["ordered"] = True
        if self.how:
            rare["how"] = self.how
        return {
            "verdict": str(self.verdict),
            "by": self.by,
            "feature": [self.feature.name, self.feature.definition] if self.feature else None,
            "shown": self.shown,
            **rare,
            "probability": self.probability,
            "usage": self.usage.to_json(),
            "cost": self.cost,
            "seconds": self.seconds,
            "raw": self.raw,
            "note": self.note,
        }

    @classmethod
    def from_json(cls, question: Question, data: dict[str, Any], *, cached: bool) -> Answer:
        return cls(
            question=question,
            verdict=Verdict(data["verdict"]),
            by=data["by"],
            feature=Feature(*data["feature"]) if data["feature"] else None,
            shown=tuple(data["shown"]),
            more=tuple(
                NamedFeature(Feature(name, definition), tuple(shown))
                for name, definition, shown in data.get("more", ())
            ),
            ordered=data.get("ordered", False),
            probability=data["probability"],
            usage=Usage(*data["usage"]),
            cost=data["cost"],
            seconds=data["seconds"],
            raw=data["raw"],
            note=data["note"],
            reason=data.get("reason", ""),
            quote=data.get("quote", ""),
            how=data.get("how", ""),
            cached=cached,
        )


def _named_json(named: NamedFeature) -> list[Any]:
    return [named.feature.name, named.feature.definition, list(named.shown)]


class OracleError(Exception):
    """Something about the oracle that the user can act on; the message is one line that says how.

    OracleError
    ├── OracleUnavailable   the server, the model or the people cannot be reached; what was answered is kept
    │   ├── ServerAway      nothing is wrong with what was given: the server is down, overloaded or out of credit
    │   ├── Overcharged     it charges more than the bounds of its requests: nothing more is sent
    │   ├── OracleLost      that happened in mid-run: what was found so far is written
    │   └── ExampleChanged  an image is gone, or has changed since the data set was read
    ├── AnswersUnusable     most of what it answered was refused or unreadable; what was found is written
    ├── BudgetExhausted     the next question might cost more than is left
    ├── ClaimLost           another process asks these questions by now
    ├── Halted              a person has stopped it; what was on its way is kept
    └── AnswersPending      people have yet to answer; run again later"""


class OracleUnavailable(OracleError):
    may_pass = True  # asking again after a while may help


class ServerAway(OracleUnavailable):
    pass


class Overcharged(OracleUnavailable):
    may_pass = False


class OracleLost(OracleUnavailable):
    @classmethod
    def leaving(cls, written: Path, message: str) -> OracleLost:
        return cls(f"{message}; what was found so far is in {written}, and the same command goes on from there")


class ExampleChanged(OracleUnavailable):
    """Asked without the examples that have changed, the oracle answers."""


class AnswersUnusable(OracleError):
    @classmethod
    def leaving(cls, written: Path, message: str) -> AnswersUnusable:
        remedy = "choose another model or other parameters, or ask the same again with --retry-unusable"
        return cls(f"{message}; the replies and what was found are in {written}: {remedy}")


class BudgetExhausted(OracleError):
    pass


class ClaimLost(OracleError):
    """Another process has claimed questions of a request meanwhile: it must not be sent."""


class Halted(OracleError):
    pass


class AnswersPending(OracleError):
    """`items` are the questions of the review queue that it waits for. Nothing stays reserved for them: the run that
    collects the answers reserves again. What a provider's batch holds stays spent until it is collected."""

    def __init__(self, message: str, *, items: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.items = tuple(items)


@contextmanager
def changes_raised(*, unreadable: bool = False) -> Iterator[None]:
    """Around reading images: one that is gone or has changed, or cannot be read at all, raises ExampleChanged."""
    try:
        yield
    except DatasetError as problem:
        if unreadable or isinstance(problem, Vanished):
            raise ExampleChanged(str(problem)) from None
        raise


@dataclass(frozen=True, slots=True)
class OracleIdentity:
    """What distinguishes one oracle's answers from another's. `parameters` holds all that can change an answer,
    no secret, and nothing that cannot change one (addresses, prices, time-outs, concurrency)."""

    kind: str
    model: str
    parameters: tuple[tuple[str, Any], ...] = ()
    prompts: str = ""  # version of the prompts

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "model": self.model,
            "parameters": dict(self.parameters),
            "prompts": self.prompts,
        }

    def __str__(self) -> str:
        return f"{self.kind}:{self.model}" if self.model else self.kind


Profile = Literal["paid", "local", "people", "free"]


@dataclass(frozen=True, slots=True)
class Traits:
    """What an oracle is like: facts that decide how it is asked, not abilities."""

    profile: Profile
    width: int = 1  # requests in flight at once
    reads_text: bool = True
    slow: bool = False  # people, a provider's batches: everything is asked at once, and answers may come days later
    deterministic: bool = False  # labels can be computed again, by `compute`, and need not be stored
    shares_rows: bool = False  # labels of one example cost less when they are asked together
    opens_pictures: bool = False  # it opens every picture that it was not asked about before


@dataclass(frozen=True, slots=True)
class Probe:
    """What can the server do? `number` makes every probe another one."""

    server: str
    number: str
    kind = "probe"

    @property
    def content(self) -> dict[str, Any]:
        return {"kind": self.kind, "server": self.server, "asked": self.number}


@dataclass(frozen=True, eq=False)
class Request:
    """What is sent and paid for: one question, several, or a probe. Each request is an object of its own."""

    questions: tuple[Question, ...] = ()
    probe: Probe | None = None
    bound: Money = 0  # at most what sending it once costs
    limit: Money = 0  # at most what all its attempts, repairs and repetitions cost together
    usual: Money = 0  # what it is likely to cost
    seconds: float = 0.0  # that it is likely to add to the time of all, where the speed of a slow server is known
    # Set by whoever keeps the books:
    since: float = 0.0  # replies to what was sent before that time do not count: it is asked again on purpose
    scale: float = 1.0  # how many times its bounds it may be charged: the provider has charged more than the bounds
    adopted: bool = False  # a provider's batch of an earlier run may hold it

    @property
    def kind(self) -> str:
        return str((self.probe or self.questions[0]).kind)


@dataclass(frozen=True, slots=True)
class Reply:
    """What is known of a request by now. All amounts, and the answers, are totals of the request so far, not
    increments: recording a reply twice changes nothing. One that is not `done` may be recorded after the meter has
    heard of a later attempt: the higher amount holds until the last reply."""

    request: Request
    answers: Mapping[int, Answer] = field(default_factory=dict)  # by the position of the question
    cost: Money = 0
    prepaid: Money = 0  # the part of the cost that is in the books already
    in_doubt: Money = 0  # at most what attempts that failed, or are under way, have cost in addition
    usage: Usage = Usage()
    seconds: float = 0.0
    overcharge: Overcharge | None = None
    done: bool = True  # nothing more comes: questions without an answer stay open


class Meter(Protocol):
    """What the books must hear while requests travel. Safe to call from any thread."""

    def leaving(self, request: Request, most: Money) -> None:
        """Called just before every attempt with the most that the request may have cost after it, all attempts so far
        included. Raises BudgetExhausted where the budget does not cover that much, and ClaimLost: then the attempt must
        not be sent."""
        ...

    def failed(self, request: Request, fault: str) -> None:
        """An attempt failed for the moment, and is perhaps repeated."""
        ...

    def in_batch(self, request: Request, batch: str | None) -> None:
        """Which of a provider's batches holds the request, called before it is sent and now and then while it runs;
        None as soon as it is in no batch that may be charged or collected, or is asked in another way."""
        ...


class Oracle(Protocol):
    """Whoever answers. Its identity is known without a request."""

    @property
    def identity(self) -> OracleIdentity: ...

    @property
    def traits(self) -> Traits: ...

    def plan(self, questions: Sequence[Question]) -> Iterator[Request]:
        """The requests in which these would be sent, each made when it is wanted. Where it must be found out first what
        a server can do, the first is a probe, and the others are guesses: plan again once it has been sent."""
        ...

    def send(self, requests: Iterable[Request], meter: Meter) -> Iterator[Reply]:
        """Yields replies in any order, each as soon as something is known; the last one of a request is `done`.

        `requests` may be lazy: pulling one is the promise to send it. After a fault nothing more is pulled, what is in
        flight is waited for, and the fault is raised. A request that was pulled and has no reply by then was not
        charged, unless the meter heard it leave."""
        ...

    def prepare(self, examples: Sequence[Example]) -> Unlike:
        """Get ready to be asked about these, free of charge: load a model, or look whether the server answers. Raises
        OracleError where it cannot answer about them."""
        ...


Chances = NDArray[np.float64]  # probabilities


class ComputingOracle(Oracle, Protocol):
    """An oracle whose `traits.deterministic` is set."""

    def compute(
        self, features: Sequence[Feature], examples: Sequence[Example], voter: int, wanted: NDArray[np.bool_]
    ) -> ComputedVotes:
        """The labels that `send` would bring. What is not wanted need not be right."""
        ...


TOGETHER = 32  # questions in a request of an oracle that is not charged by the request


def in_requests(questions: Iterable[Question], bound: Money = 0, most: int = TOGETHER) -> Iterator[Request]:
    """Requests of at most so many questions of one kind each, where every question costs at most `bound`."""
    for _, alike in groupby(questions, key=attrgetter("kind")):
        while part := tuple(islice(alike, most)):
            price = bound * len(part)
            yield Request(part, bound=price, limit=price, usual=price)


def replied(request: Request, answers: Iterable[Answer], prepaid: Money = 0) -> Reply:
    """The last reply to a request, from answers to its very questions, in any order."""
    positions = {id(question): position for position, question in enumerate(request.questions)}
    placed = {positions[id(answer.question)]: answer for answer in answers}
    return Reply(
        request,
        placed,
        cost=sum(answer.cost for answer in placed.values()),
        prepaid=prepaid,
        usage=sum((answer.usage for answer in placed.values()), Usage()),
        seconds=sum(answer.seconds for answer in placed.values()),
    )


@dataclass(frozen=True, slots=True)
class ComputedVotes:
    """Of one voter on each feature (columns) of each example (rows)."""

    labels: Labels
    refused: NDArray[np.bool_]  # of the unknown labels those that are refused; others are unreadable
    chances: Chances | None = None  # that the feature is true, NaN where it is unknown; None: it tells no probabilities
    problems: Sequence[str] = ()  # of each feature why it cannot be labelled, empty where it can; none: no reasons


LATENCIES = (0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, inf)  # seconds: the upper bounds of what is counted


class Traffic:
    """What passes between a run and those who answer it. Safe to use from many threads."""

    def __init__(self) -> None:
        self.answered = 0  # requests
        self.failed = 0  # attempts that failed for the moment
        self.seconds = 0.0  # that the answered ones took
        self.latencies = [0] * len(LATENCIES)  # how many took up to which bound
        self.in_flight = 0
        self.fault = ""  # of the latest attempt, if it failed
        self._changing = threading.Lock()

    def sent(self) -> None:
        with self._changing:
            self.in_flight += 1

    def noted_failure(self, fault: str) -> None:
        with self._changing:
            self.failed += 1
            self.fault = fault

    def ended(self, seconds: float, *, answered: bool, has_left: bool) -> None:
        with self._changing:
            self.in_flight -= has_left
            if answered and has_left:
                self.answered += 1
                self.fault = ""
                self.seconds += seconds
                self.latencies[bisect_left(LATENCIES, seconds)] += 1

    def __str__(self) -> str:
        under_way = f"{self.in_flight} request{'' if self.in_flight == 1 else 's'} under way"
        return under_way + (f"; the latest failed: {self.fault}" if self.fault else "")


MOST_UNLIKE = 0.05  # share of pictures that may look strange by chance


@dataclass(frozen=True, slots=True)
class Unlike:
    """Of some examples, those that are not of the kind that a model was made for."""

    outside: int = 0
    of: int = 0
    known: str = ""  # the kind, in words
    oracle: str = ""

    def __add__(self, other: Unlike) -> Unlike:
        described = self if self.known else other
        return Unlike(self.outside + other.outside, self.of + other.of, described.known, described.oracle)

    @property
    def warning(self) -> str:
        """One line, or nothing where all is well."""
        if self.outside <= MOST_UNLIKE * self.of:
            return ""
        return (
            f"{self.outside} of {self.of} pictures do not look like {self.known}, which is all that {self.oracle} "
            "knows: its answers about them mean nothing, so choose another oracle (twothirds oracles)"
        )
