"""What a discovery will cost, before anything is spent.

Of a large data set a random sample is rehearsed, and counted as the whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from discovery import UNKNOWN
from flows.discover.findings import Progress
from flows.discover.looking import MOST_PAIRS, FirstLooks, Sameness
from flows.discover.loop import Limits, Loop
from flows.discover.preparation import Prepared, build_crowd
from flows.discover.price.predicted import AskedShares, label_cells, predicted_range
from flows.discover.price.rehearsal import (
    SAMPLE,
    Measuring,
    PriceRange,
    RandomQuestions,
    RehearsedOracle,
    draw,
    is_known,
    is_paid,
    made_up_feature,
    price_range,
)
from flows.discover.price.repetition import has_ended
from flows.discover.rest import label_rest
from flows.discover.settings import WORKING_SET, DiscoverSettings
from flows.oracle_specs import OracleSpec, at_low_detail
from models import MICRO, Money, Oracle, Panel, in_usd, rows_save
from sources import Example

DOUBTED = 0.25  # requests whether a new feature means what a known one means, for each: they share about two questions


def about_usd(amount: Money) -> str:
    """To the cent; a sum below ten cents with more digits."""
    return in_usd(amount, 2 if amount >= MICRO // 10 else 4, at_most=True)


@dataclass(frozen=True)
class PricedPlan:
    """One way to the same features and labels, and what it costs."""

    name: str
    options: str  # that choose it
    changes: str  # what is different, in words
    price: PriceRange

    def __str__(self) -> str:
        money = f"likely {about_usd(self.price.likely.cost)}, at most {about_usd(self.price.most)}"
        return f"{self.name} ({self.options}): {money}; {self.changes}"


@dataclass(frozen=True)
class GivenPrice:
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
    plans: tuple[PricedPlan, ...] = ()
    spent: Money = 0  # by earlier attempts
    assumed: str = ""  # in words
    given: GivenPrice = field(default_factory=lambda: GivenPrice())
    ended: bool = False  # the same run came to its end before: all that it needs is kept

    def __add__(self, other: RunForecast) -> RunForecast:
        """Of two runs one after the other; plans are of the first."""
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
        return "\n".join([*self.lines(), *map(str, self.plans)])

    @property
    def described_examples(self) -> str:
        compared = "" if self.compared is None else f", {self.compared:,} of them compared"
        return f"{self.examples:,} examples{compared}"

    def lines(self) -> list[str]:
        """In words, without the other plans."""
        price, likely, kept = self.price, self.price.likely, f"{self.kept:,} answers are kept"
        head = f"{self.dataset} ({self.described_examples}) with {self.oracle}"
        if not price.most:
            return [f"{head}: up to {self.calls:,} calls, free of charge; {kept}"]
        low, high, most = (about_usd(amount) for amount in (price.low, price.high, price.most))
        about = f"{price.calls:,} calls"
        if likely.requests:
            tokens = f"{likely.input_tokens:,} tokens in, {likely.output_tokens:,} out"
            about += f" in {likely.requests:,} requests, {tokens}"
        if price.features:
            about += f", for {price.features} features"
        source = f"{price.measured:,} earlier answers and " if price.measured else ""
        lines = [
            f"{head}: likely {about_usd(likely.cost)} ({low} to {high}), at most {most}",
            f"that is {about}; by {source}the sizes of the pictures and texts",
        ]
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
            "plans": [
                {"name": plan.name, "options": plan.options, "changes": plan.changes}
                | {"usd_about": plan.price.likely.cost / MICRO, "usd": plan.price.most / MICRO}
                for plan in self.plans
            ],
        }


def price_of(prepared: Prepared) -> PriceRange:
    """Of a whole discovery, as if nothing were kept. Nothing is sent."""
    sampled, weight = _sampled(prepared)
    form = prepared.make_strategy().next_questions(1)[0]
    shares, in_full = _shares(prepared), prepared.settings.label_rest or prepared.settings.agree is not None

    def discover(rehearsal: RehearsedOracle) -> Progress:
        settings, examples = sampled.settings, sampled.compared
        panel = Panel(prepared.knowing(rehearsal), examples, settings.votes)
        limits = Limits(settings.queries, settings.batch or 1, voters=settings.voters)
        limits = replace(limits, per_question=prepared.features_each, exemplars=settings.exemplars)
        limits = replace(limits, label_every=settings.label_every)
        looks = (prepared.labelled, settings.look_every)
        looking = FirstLooks.with_label(settings.look, settings.seed, panel, Panel.label, *looks)
        strategy = RandomQuestions(form, len(examples))
        sameness = Sameness(panel.compare, settings.votes, rehearsed=DOUBTED) if settings.ask_same else None
        about = (strategy, examples, limits, panel.compare, panel.label, None, looking, sameness)
        return Loop(*about, given=prepared.given_features, exclude=settings.excluded).run()

    def rehearse(rehearsal: RehearsedOracle) -> int:
        progress = discover(rehearsal)
        if in_full:
            label_rest(sampled, prepared.knowing(rehearsal), progress, Panel.label)
        return len(progress.findings)

    def predict(rehearsal: RehearsedOracle, asked: AskedShares) -> None:
        features = [one.feature for one in discover(rehearsal).known if not one.dropped]
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
        for part in (sampled.compared, sampled.rest):
            Panel(rehearsal, part, 1).label(named)
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
    sampled = Prepared(settings, dataset, prepared.oracle, prepared.store)
    vars(sampled)["rows"] = list(range(len(compared)))  # the cached property: these are the ones that are compared
    return sampled, lambda example: weights[example.id]


def forecast_discovery(
    prepared: Prepared, plans: Callable[[Prepared], Iterable[PricedPlan]] = lambda _: ()
) -> RunForecast:
    """What a discovery will take, before anything is spent and without a request to any server."""
    settings, oracle = prepared.settings, prepared.oracle
    known = is_known(oracle)
    shares, rest = _shares(prepared), len(prepared.rest) if settings.label_rest or settings.agree is not None else 0
    asked_each = len(prepared.compared) + rest + (MOST_PAIRS if settings.ask_same else 0)
    given = _given_price(prepared, whole=rest > 0)
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
        plans=tuple(plans(prepared)),
        assumed=_assumed(settings, shares) if shares else "",
    )
    spent, _ = prepared.store.runs.spent(prepared.scope) if known else (0, 0)
    return replace(found, spent=spent)


def _assumed(settings: DiscoverSettings, shares: AskedShares) -> str:
    labels_first = settings.cheap if shares.saves else None
    first = f"; {labels_first.partition('?')[0]} labels everything first" if labels_first else ""
    return shares.words(settings.agree or 0.0) + first


def _given_price(prepared: Prepared, *, whole: bool) -> GivenPrice:
    """With `whole` every example of the data set is labelled, else those that are compared."""
    rows = range(len(prepared.dataset.examples)) if whole else prepared.rows
    given, votes = prepared.given, prepared.settings.votes
    if not given:
        return GivenPrice()
    unknown = sum(int((one.labels[list(rows)] == UNKNOWN).sum()) for one in given)
    price = GivenPrice(len(given), unknown, len(given) * len(rows) - unknown, unknown * votes)
    if not unknown or not is_paid(prepared.oracle, prepared.compared):
        return price
    examples = draw([prepared.dataset.examples[row] for row in rows], SAMPLE)
    rehearsal = RehearsedOracle(prepared.oracle, Measuring(prepared.dataset.examples))
    Panel(prepared.knowing(rehearsal), examples, votes).label(prepared.given_features)
    return replace(price, cost=rehearsal.total.times(len(rows) / len(examples)).cost)


def plans_of(prepared: Prepared) -> Iterator[PricedPlan]:
    """Other ways to ask, each with its price."""
    if not is_paid(prepared.oracle, prepared.compared):
        return
    settings, n = prepared.settings, len(prepared.dataset.examples)
    at_once = {"batch": 1, "label_every": None}
    if settings.elicit_on == WORKING_SET and settings.label_rest:
        changed = settings.model_copy(update={"elicit_on": n, "label_rest": False} | at_once)
        words = "all examples are compared, and labelled with each feature as it is found"
        yield _plan("feature by feature", words, f"--elicit-on {n} --batch 1", prepared, changed)
    if settings.label_every:
        words = "the features of each question are labelled before the next one is chosen"
        yield _plan("labels after each question", words, "--batch 1", prepared, settings.model_copy(update=at_once))
    if settings.elicit_on is None and n > WORKING_SET and rows_save(prepared.oracle):
        changed = settings.model_copy(update={"elicit_on": WORKING_SET, "label_rest": True})
        words = f"{WORKING_SET} examples are compared; all others are labelled at the end, every feature in one request"
        yield _plan("in rows at the end", words, f"--elicit-on {WORKING_SET} --label-rest", prepared, changed)
    yield from _predicted_plan(prepared)
    yield from _low_detail_plan(prepared)
    if OracleSpec.parse(settings.labeller or settings.oracle).kind == "openai" and not settings.provider_batch:
        changed = settings.model_copy(update={"provider_batch": True})
        yield _plan(*PROVIDER_BATCH, "--provider-batch", prepared, changed)


AGREE = 0.95  # of the plan that predicts
# Plans by what they are called, and what they change.
PROVIDER_BATCH = (
    "by provider batch",
    "labels travel in the provider's batches: half the price, and up to a day for each",
)
LOW_DETAIL = (
    "pictures at low detail",
    "the server looks at a picture as a whole, not in tiles: for less, and small things in it may be missed",
)


def _low_detail_plan(prepared: Prepared) -> Iterator[PricedPlan]:
    settings = prepared.settings
    who = "labeller" if settings.labeller else "oracle"
    other = at_low_detail(settings.labeller or settings.oracle)
    if other is not None and any(example.image for example in prepared.dataset.examples):
        changed = settings.model_copy(update={who: other})
        yield _plan(*LOW_DETAIL, f"detail=low in --{who}", prepared, changed)


def _predicted_plan(prepared: Prepared) -> Iterator[PricedPlan]:
    settings = prepared.settings.model_copy(update={"agree": AGREE})
    shares = _shares(replace(prepared, settings=settings))
    if prepared.settings.agree is None and shares is not None and shares.saves:
        options = f"--elicit-on {settings.elicit_on} --agree {AGREE}"
        yield _plan(f"predicted at {AGREE:.0%}", shares.words(AGREE), options, prepared, settings)


def _plan(name: str, changes: str, options: str, prepared: Prepared, settings: DiscoverSettings) -> PricedPlan:
    oracle = build_crowd(settings, prepared.dataset, prepared.store)
    return PricedPlan(
        name,
        options,
        changes,
        price_of(Prepared(settings, prepared.dataset, oracle, prepared.store, given=prepared.given)),
    )
