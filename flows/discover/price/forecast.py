"""What a discovery will cost, before anything is spent.

Of a large data set a random sample is rehearsed, and counted as the whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from discovery import UNKNOWN
from flows.discover.findings import Progress, StopReason
from flows.discover.loop import Limits, Loop
from flows.discover.preparation import Prepared
from flows.discover.price.rehearsal import (
    SAMPLE,
    AskedShares,
    Measuring,
    PriceRange,
    RandomQuestions,
    RehearsedOracle,
    draw,
    is_known,
    is_paid,
    label_cells,
    made_up_feature,
    predicted_range,
    price_range,
)
from flows.discover.remaining import label_rest
from flows.discover.screening import MOST_PAIRS, DuplicateCheck, Screening
from flows.discover.settings import DiscoverSettings
from models import MICRO, Money, Oracle, Panel, in_usd
from reports.run import STEER
from sources import Example

DOUBTED = 0.25  # requests whether a new feature means what a known one means, for each: they share about two questions


def about_usd(amount: Money) -> str:
    """To the cent; a sum below ten cents with more digits."""
    return in_usd(amount, 2 if amount >= MICRO // 10 else 4, at_most=True)


@dataclass(frozen=True)
class KnownPrice:
    """What the features that a run starts with take, which is part of its price."""

    features: int = 0
    labels: int = 0  # that are asked
    taken: int = 0  # that are known
    calls: int = 0  # at most
    cost: Money = 0  # likely

    def to_json(self) -> dict[str, Any]:
        asked = {"labels_asked": self.labels, "labels_taken": self.taken}
        return {"features": self.features, **asked, "usd_about": self.cost / MICRO}


@dataclass(frozen=True)
class RunForecast:
    """What a run takes: likely, with a range, and at most. What is kept already is left out of what is left."""

    dataset: str
    oracle: str
    examples: int
    price: PriceRange
    calls: int  # at most
    compared: int | None = None  # of the examples, where not all are
    kept: int = 0  # answers of an earlier attempt
    spent: Money = 0  # by earlier attempts
    assumed: str = ""  # in words
    given: KnownPrice = field(default_factory=lambda: KnownPrice())
    ended: bool = False  # the same run came to its end before: all that it needs is kept

    def __add__(self, other: RunForecast) -> RunForecast:
        """Of two runs one after the other."""
        return replace(
            self,
            price=self.price + other.price,
            calls=self.calls + other.calls,
            kept=self.kept + other.kept,
            spent=self.spent + other.spent,
            ended=self.ended and other.ended,
        )

    @property
    def budget(self) -> Money:
        """With which it costs no more than is forecast at most, or than must be reserved to ask without waiting."""
        return self.spent + max(self.most_left, self.left + self.price.likely.in_flight)

    @property
    def left(self) -> Money:
        """Likely."""
        if self.ended:
            return 0
        return round(self.price.likely.cost * max(0.0, 1 - self.kept / max(self.price.calls, 1)))

    @property
    def most_left(self) -> Money:
        if self.ended:
            return 0
        return -(-self.price.most * max(self.calls - self.kept, 0) // max(self.calls, 1))

    def __str__(self) -> str:
        return "\n".join(self.lines())

    @property
    def described_examples(self) -> str:
        compared = "" if self.compared is None else f", {self.compared:,} of them compared"
        return f"{self.examples:,} examples{compared}"

    def lines(self) -> list[str]:
        """In words."""
        price, likely, kept = self.price, self.price.likely, f"{self.kept:,} answers are kept"
        head = f"{self.dataset} ({self.described_examples}) with {self.oracle}"
        if not price.most:
            return [f"{head}: up to {self.calls:,} calls, free of charge; {kept}"]
        low, high, most = (about_usd(amount) for amount in (price.low, price.high, price.most))
        asked = f"{price.calls:,} calls"
        if likely.requests:
            tokens = f"{likely.input_tokens:,} tokens in, {likely.output_tokens:,} out"
            asked += f" in {likely.requests:,} requests, {tokens}"
        if price.features:
            asked += f", for {price.features} features"
        source = f"{price.measured:,} earlier answers and " if price.measured else ""
        lines = [
            f"{head}: likely {about_usd(likely.cost)} ({low} to {high}), at most {most}",
            f"that is {asked}; by {source}the sizes of the pictures and texts",
        ]
        if self.assumed:
            lines.append(self.assumed)
        if given := self.given.features:
            taken = f"{self.given.taken:,} labels are known, {self.given.labels:,} asked"
            lines.append(f"of that for {given} known features: {taken}, likely {about_usd(self.given.cost)}")
        if self.ended:
            lines.append(f"{kept}: nothing is left to ask")
        elif self.kept:
            left = f"likely {about_usd(self.left)}, at most {about_usd(self.most_left)}, are left"
            lines.append(f"{kept}: {left}")
        return lines

    def to_json(self) -> dict[str, Any]:
        price, likely = self.price, self.price.likely
        return {
            "dataset": self.dataset,
            "oracle": self.oracle,
            "examples": self.examples,
            "compared": self.compared,
            "features": price.features,
            "calls": self.calls,
            "kept": self.kept,
            "requests": likely.requests,
            "input_tokens": likely.input_tokens,
            "output_tokens": likely.output_tokens,
            "usd_about": likely.cost / MICRO,
            "usd_low": price.low / MICRO,
            "usd_high": price.high / MICRO,
            "usd": price.most / MICRO,
            "usd_about_left": self.left / MICRO,
            "usd_left": self.most_left / MICRO,
            "measured_answers": price.measured,
            "assumed": self.assumed,
            "known": self.given.to_json(),
        }


def price_of(prepared: Prepared) -> PriceRange:
    """Of a whole discovery, as if nothing were kept. Nothing is sent."""
    sampled, weight = _sampled(prepared)
    form = prepared.make_strategy().next_questions(1)[0]
    shares, in_full = _shares(prepared), prepared.settings.label_rest or prepared.settings.agree is not None

    def discover(rehearsal: RehearsedOracle) -> Progress:
        settings, examples = sampled.settings, sampled.compared
        panel = Panel(prepared.knowing(rehearsal), examples, settings.votes)
        limits = Limits(
            queries=settings.queries,
            batch=settings.batch or 1,
            voters=settings.voters,
            per_question=prepared.features_each,
            exemplars=settings.exemplars,
            label_every=settings.label_every,
        )
        screening = Screening.with_label(
            settings.look, settings.seed, panel, Panel.label, prepared.labelled, settings.look_every
        )
        loop = Loop(
            strategy=RandomQuestions(form, len(examples)),
            examples=examples,
            limits=limits,
            compare=panel.compare,
            label=panel.label,
            screening=screening,
            duplicates=DuplicateCheck(panel.compare, settings.votes, rehearsed=DOUBTED) if settings.ask_same else None,
            given=prepared.known_features,
            exclude=settings.excluded,
        )
        return loop.run()

    def rehearse(rehearsal: RehearsedOracle) -> int:
        progress = discover(rehearsal)
        if in_full:
            label_rest(sampled, prepared.knowing(rehearsal), progress, Panel.label)
        return len(progress.findings)

    def predict(rehearsal: RehearsedOracle, asked: AskedShares) -> None:
        features = [known.feature for known in discover(rehearsal).known if not known.dropped]
        cells = asked.cells(sampled.rest, len(features))
        label_cells(prepared.knowing(rehearsal), sampled.rest, features, sampled.settings.votes, cells)

    measured = Measuring(prepared.dataset.examples)
    full = price_range(rehearse, prepared.oracle, measured, weight=weight)
    if shares is None:
        return full
    total = predicted_range(full, predict, shares, prepared.oracle, measured, weight=weight)
    if prepared.cheap is not None and shares.saves:
        total += _price_of_first(sampled, prepared.cheap, full.features, weight)
    return total


def _price_of_first(sampled: Prepared, cheap: Oracle, features: int, weight: Callable[[Example], float]) -> PriceRange:
    """Of a cheaper oracle that labels all examples once; in a range as wide as the number of features is unsure."""
    measured = Measuring(sampled.dataset.examples)
    most = sampled.settings.queries * sampled.features_each

    def rehearse(rehearsal: RehearsedOracle) -> int:
        named = [made_up_feature(number) for number in range(most if rehearsal.worst else features)]
        for examples in (sampled.compared, sampled.rest):
            Panel(rehearsal, examples, 1).label(named)
        return features

    return replace(price_range(rehearse, cheap, measured, weight=weight), features=0)


def _shares(prepared: Prepared) -> AskedShares | None:
    """Of the examples that are not compared; None where no label is predicted."""
    if prepared.settings.agree is None or not prepared.rest:
        return None
    n = len(prepared.dataset.examples)
    most = prepared.settings.queries * prepared.features_each + len(prepared.given)
    promise = prepared.settings.promise_at(prepared.settings.agree)
    return AskedShares.expected(n, most, promise, known=len(prepared.compared))


def _sampled(prepared: Prepared) -> tuple[Prepared, Callable[[Example], float]]:
    """The same discovery on a sample, and how many examples of the data set each of the sample stands for."""
    compared, rest = draw(prepared.compared, SAMPLE), draw(prepared.rest, SAMPLE)
    weights = {example.id: len(prepared.compared) / len(compared) for example in compared}
    weights |= {example.id: len(prepared.rest) / len(rest) for example in rest}
    dataset = replace(prepared.dataset, examples=(*compared, *rest))
    settings = prepared.settings.model_copy(update={"elicit_on": len(compared)})
    sampled = Prepared(settings, dataset, prepared.oracle, prepared.store, chosen_rows=range(len(compared)))
    return sampled, lambda example: weights[example.id]


def forecast_discovery(prepared: Prepared) -> RunForecast:
    """What a discovery will take, before anything is spent and without a request to any server."""
    settings, oracle = prepared.settings, prepared.oracle
    known = is_known(oracle)
    shares, rest = _shares(prepared), len(prepared.rest) if settings.label_rest or settings.agree is not None else 0
    asked_each = len(prepared.compared) + rest + (MOST_PAIRS if settings.ask_same else 0)
    given = _known_price(prepared, all_examples=rest > 0)
    found = RunForecast(
        dataset=prepared.dataset.name,
        oracle=str(oracle.identity) if known else settings.oracle.partition("?")[0],
        examples=len(prepared.compared) + rest,
        compared=len(prepared.compared) if rest else None,
        price=price_of(prepared) if is_paid(oracle, prepared.compared) else PriceRange(),
        calls=settings.queries * (1 + prepared.features_each * asked_each * settings.votes) + given.calls,
        given=given,
        kept=prepared.store.answers.count(prepared.scope) if known else 0,
        ended=known and has_ended(prepared),
        assumed=_assumed(settings, shares) if shares else "",
    )
    spent, _ = prepared.store.runs.spent(prepared.scope) if known else (0, 0)
    return replace(found, spent=spent)


_AT_ITS_END = (StopReason.QUERIES, StopReason.TARGET_G, StopReason.NONES, StopReason.EXHAUSTED)
_ENDED = {f"stopped: {reason}" for reason in _AT_ITS_END}
_DECIDE_NOTHING = {"budget", "store", "out", "wait"}


def has_ended(prepared: Prepared) -> bool:
    """Whether a run with these settings came to its end, and no command for it (`steer`) may ask more."""
    if prepared.settings.retry_unusable or (prepared.folder / STEER).exists():
        return False
    mine = _what_decides(prepared.settings.model_dump(mode="json"))
    earlier = prepared.store.runs.latest([prepared.scope])
    return any(run.status in _ENDED and _what_decides(run.settings) == mine for run in earlier)


def _what_decides(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name not in _DECIDE_NOTHING}


def _assumed(settings: DiscoverSettings, shares: AskedShares) -> str:
    labels_first = settings.cheap if shares.saves else None
    first = f"; {labels_first.partition('?')[0]} labels everything first" if labels_first else ""
    return shares.words(settings.agree or 0.0) + first


def _known_price(prepared: Prepared, *, all_examples: bool) -> KnownPrice:
    """Of all examples of the data set, or of those that are compared."""
    rows = range(len(prepared.dataset.examples)) if all_examples else prepared.rows
    given, votes = prepared.given, prepared.settings.votes
    if not given:
        return KnownPrice()
    unknown = sum(int((known.labels[list(rows)] == UNKNOWN).sum()) for known in given)
    price = KnownPrice(len(given), unknown, len(given) * len(rows) - unknown, unknown * votes)
    if not unknown or not is_paid(prepared.oracle, prepared.compared):
        return price
    examples = draw([prepared.dataset.examples[row] for row in rows], SAMPLE)
    rehearsal = RehearsedOracle(prepared.oracle, Measuring(prepared.dataset.examples))
    Panel(prepared.knowing(rehearsal), examples, votes).label(prepared.known_features)
    return replace(price, cost=rehearsal.total.times(len(rows) / len(examples)).cost)
