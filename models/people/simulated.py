"""A simulated crowd: answers from the data set's truth as people would, mistakes and delays included."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from queue import SimpleQueue
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery import UNKNOWN, Comparison, Kind, Labels, same_name
from twothirds.discovery.simulation import TrueAttribute, attribute_among, make_crowd, true_attributes, true_scale
from twothirds.models.oracle import (
    TOGETHER,
    Answer,
    BudgetExhausted,
    Choose,
    ClaimLost,
    Compare,
    ComputedVotes,
    Family,
    Feature,
    Label,
    Meter,
    Money,
    NamedFeature,
    OracleError,
    OracleIdentity,
    Question,
    Reply,
    Request,
    Same,
    Traits,
    Unlike,
    Usage,
    Verdict,
    Why,
    digest_of,
    digest_of_content,
    in_requests,
    replied,
)
from twothirds.models.prompting import chosen_answer, family_answer
from twothirds.sources import Example

AT_ONCE = 16  # requests of a crowd without latency
ONE_REQUEST = Usage(requests=1)
SEEN, QUOTED = "The crowd knows the truth of this example.", 60  # what it gives as a reason, and characters it quotes


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How the crowd errs, and what it costs. Shares are probabilities per answer."""

    flip: Annotated[float, "probability that a label is the opposite of the truth"] = 0.0
    wrong: Annotated[float, "probability that a comparison is answered with a random feature"] = 0.0
    none: Annotated[float, "probability that a comparison is answered NONE although there is an answer"] = 0.0
    refuse: Annotated[float, "probability that a question is refused"] = 0.0
    latency: Annotated[float, "seconds per answer"] = 0.0
    price: Money = 0  # micro-dollars per answer
    width: Annotated[int, "answers at a time, where there is a latency"] = 16

    def __post_init__(self) -> None:
        for name in SHARES:
            if not 0 <= getattr(self, name) <= 1:
                raise OracleError(f"simulated: {name}={getattr(self, name)} is not a share: give a value from 0 to 1")
        if self.latency < 0 or self.price < 0 or self.width < 1:
            raise OracleError("simulated: latency and price must not be negative and width must be at least 1")

    @property
    def is_free(self) -> bool:
        """Whether an answer costs neither money nor time."""
        return not (self.price or self.latency)


SHARES = ("flip", "wrong", "none", "refuse")
CODES = {Verdict.YES: 1, Verdict.NO: 0}


class SimulatedOracle:
    """Deterministic per seed, question and voter, whatever the order in which it is asked."""

    def __init__(
        self,
        examples: Sequence[Example],
        truth: Labels,
        columns: Sequence[str],
        *,
        crowd: str = "salience",
        seed: int = 0,
        behaviour: Behaviour | None = None,
        growing: bool = False,
    ) -> None:
        """With `growing`, examples are known by their ids and more of them do not make it another crowd."""
        self.behaviour = behaviour or Behaviour()
        self._reliable = not (self.behaviour.flip or self.behaviour.refuse)  # its labels leave nothing to chance
        self._truth = truth
        self._columns = list(columns)
        self._column_of = {name: column for column, name in enumerate(columns)}
        self._growing = growing
        self._row_of = {self._name(example): row for row, example in enumerate(examples)}
        self._crowd = make_crowd(crowd, truth, seed)
        self._seed = seed
        content = [] if growing else [[e.digest for e in examples], truth.tolist()]
        self.identity = OracleIdentity(
            kind="simulated",
            model=crowd,
            parameters=(
                ("seed", seed),
                ("truth", digest_of([list(columns), *content])),
                *((name, getattr(self.behaviour, name)) for name in SHARES),
            ),
        )

    @property
    def traits(self) -> Traits:
        is_free = self.behaviour.is_free
        width = self.behaviour.width if self.behaviour.latency else AT_ONCE
        return Traits(profile="free", width=width, deterministic=is_free)

    def plan(self, questions: Sequence[Question]) -> Iterator[Request]:
        return in_requests(questions, self.behaviour.price, TOGETHER if self.behaviour.is_free else 1)

    def prepare(self, examples: Sequence[Example]) -> Unlike:  # noqa: ARG002 (asking tells which are unknown)
        return Unlike()

    def send(self, requests: Iterable[Request], meter: Meter) -> Iterator[Reply]:
        if not self.behaviour.latency:
            for request in requests:
                meter.leaving(request, request.bound)
                yield replied(request, [self._answer(question) for question in request.questions])
            return
        waiting = iter(requests)
        done: SimpleQueue[Future[Reply]] = SimpleQueue()
        in_flight = 0
        with ThreadPoolExecutor(self.behaviour.width) as pool:
            try:
                while True:
                    # Twice the width is in flight, so that a thread never waits for the next request to be pulled.
                    for request in islice(waiting, 2 * self.behaviour.width - in_flight):
                        pool.submit(self._late_reply, request, meter).add_done_callback(done.put)
                        in_flight += 1
                    if not in_flight:
                        return
                    answered = done.get()
                    in_flight -= 1
                    with suppress(BudgetExhausted, ClaimLost):
                        yield answered.result()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def _late_reply(self, request: Request, meter: Meter) -> Reply:
        meter.leaving(request, request.bound)
        time.sleep(self.behaviour.latency)
        return replied(request, [self._answer(question) for question in request.questions])

    def _answer(self, question: Question) -> Answer:
        if isinstance(question, Label | Why):
            return self._label(question)
        rng, refuses, errs = self._draw(question)
        if refuses:
            return self._says(question, Verdict.REFUSED)
        if isinstance(question, Family):
            return self._family(question)
        if isinstance(question, Choose):
            return self._choose(question, rng, flip=errs < self.behaviour.flip)
        return self._compare(question, rng, errs)

    def _says(self, question: Question, verdict: Verdict, *named: NamedFeature) -> Answer:
        return Answer(
            question,
            verdict,
            f"worker {question.voter}",
            named[0].feature if named else None,
            named[0].shown if named else (),
            more=named[1:],
            usage=ONE_REQUEST,
            cost=self.behaviour.price,
            seconds=self.behaviour.latency,
        )

    def _draw(self, question: Question) -> tuple[np.random.Generator, bool, float]:
        """What is left to chance with a question: whether it is refused, and a number that says whether it errs."""
        rng = np.random.default_rng(int(digest_of_content(str(self._seed), question.content)[:32], 16))
        refuses, errs = rng.random(2)
        return rng, refuses < self.behaviour.refuse, errs

    def _label(self, question: Label | Why) -> Answer:
        answer = self._says(question, self._verdict(question))
        if isinstance(question, Label) or answer.verdict not in (Verdict.YES, Verdict.NO):
            return answer
        return replace(answer, reason=SEEN, quote=(question.example.text or "")[:QUOTED])

    def _verdict(self, question: Label | Why) -> Verdict:
        errs = 1.0
        if not self._reliable:
            _, refuses, errs = self._draw(question)
            if refuses:
                return Verdict.REFUSED
        value = self._value(question)
        if value < 0:  # not in the truth: the crowd cannot tell
            return Verdict.UNREADABLE
        return Verdict.YES if bool(value) != (errs < self.behaviour.flip) else Verdict.NO

    def _value(self, question: Label | Why) -> int:
        if isinstance(question, Same):
            columns = [self._column_of.get(feature.name, -1) for feature in question.pair]
            return -1 if -1 in columns else int(len(set(columns)) == 1)
        column = self._column_of.get(question.feature.name)
        return -1 if column is None else int(self._truth[self._row(question.example), column])

    def _compare(self, question: Compare, rng: np.random.Generator, errs: float) -> Answer:
        comparison = Comparison(
            question.kind,
            tuple(map(self._row, question.examples)),
            tuple(map(self._row, question.without)),
            other_than_known=bool(question.known or question.exclude),
        )
        known = {self._column_of[name] for name in question.known if name in self._column_of}
        known |= {
            at for name, at in self._column_of.items() if any(same_name(name, avoided) for avoided in question.exclude)
        }
        columns = self._crowd.answers(comparison, rng, known, question.most)
        if not columns or errs < self.behaviour.none:
            return self._says(question, Verdict.NONE)
        if errs > 1 - self.behaviour.wrong:
            columns = (int(rng.integers(len(self._columns))), *columns[1:])
        everyone = comparison.examples + (comparison.without if question.kind is Kind.GROUPS else ())
        return self._says(question, Verdict.FEATURE, *(self._named(column, everyone) for column in columns))

    def _family(self, question: Family) -> Answer:
        """By the columns of the truth that exclude one another."""
        columns = [self._column_of.get(feature.name) for feature in question.features]
        charged = self._says(question, Verdict.NONE)
        if question.scale:
            scale = true_scale(self._truth, columns, self._columns)
            everything = range(len(columns))
            named = family_answer(question, charged.by, Feature(scale), everything, ordered=True) if scale else charged
            return replace(named, usage=charged.usage, cost=charged.cost, seconds=charged.seconds)
        found = attribute_among(columns, self._attributes)
        if found is None:
            return charged
        attribute, members = found
        new = [Feature(self._columns[column]) for column in attribute.columns if column not in columns]
        named = family_answer(question, charged.by, Feature(attribute.name), members, new)
        return replace(named, usage=charged.usage, cost=charged.cost, seconds=charged.seconds)

    @cached_property
    def _attributes(self) -> list[TrueAttribute]:
        return true_attributes(self._truth, self._columns)

    def _choose(self, question: Choose, rng: np.random.Generator, *, flip: bool) -> Answer:
        row = self._row(question.example)
        columns = [self._column_of.get(value.name) for value in question.values]
        places = [place for place, column in enumerate(columns) if column is not None and self._truth[row, column] == 1]
        if flip:
            others = [[place] for place in range(len(columns)) if [place] != places] + ([[]] if places else [])
            places = others[int(rng.integers(len(others)))]
        charged = self._says(question, Verdict.NONE)
        charges = {"usage": charged.usage, "cost": charged.cost, "seconds": charged.seconds}
        return chosen_answer(question, places, charged.by, **charges)

    def _named(self, column: int, rows: tuple[int, ...]) -> NamedFeature:
        shown = tuple(place for place, row in enumerate(rows) if self._truth[row, column] == 1)
        return NamedFeature(Feature(self._columns[column]), shown)

    def _row(self, example: Example) -> int:
        row = self._row_of.get(self._name(example))
        if row is None:
            raise OracleError(f"simulated: example {example.id!r} is not in the truth this crowd answers from")
        return row

    def _name(self, example: Example) -> str:
        return example.id if self._growing else example.digest

    def compute(
        self, features: Sequence[Feature], examples: Sequence[Example], voter: int, wanted: NDArray[np.bool_]
    ) -> ComputedVotes:
        """Of examples with the same content the first one is looked up in the truth: a content is asked about once."""
        first: dict[str, Example] = {}
        looked_up = [first.setdefault(example.digest, example) for example in examples]
        if self._reliable:
            return ComputedVotes(self._true_labels(features, looked_up), np.zeros(wanted.shape, np.bool_))
        labels, refused = np.full(wanted.shape, UNKNOWN, np.int8), np.zeros(wanted.shape, np.bool_)
        for row, column in np.argwhere(wanted).tolist():
            verdict = self._verdict(Label(features[column], looked_up[row], voter))
            labels[row, column] = CODES.get(verdict, UNKNOWN)
            refused[row, column] = verdict is Verdict.REFUSED
        return ComputedVotes(labels, refused)

    def _true_labels(self, features: Sequence[Feature], examples: Sequence[Example]) -> Labels:
        labels = np.full((len(examples), len(features)), UNKNOWN, np.int8)
        known = [place for place, feature in enumerate(features) if feature.name in self._column_of]
        if known:
            rows = [self._row(example) for example in examples]
            labels[:, known] = self._truth[np.ix_(rows, [self._column_of[features[place].name] for place in known])]
        return labels
