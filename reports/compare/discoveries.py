"""What oracles name by themselves: asked about the same examples, and in a discovery of their own."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from itertools import combinations
from typing import Any

from discovery import SAME_LABELS, correlations, interesting_and_distinct, same_name
from discovery.statistics import Estimate, best_matches, distinct_selections, order_agreement, share
from reports.compare.study import Discovered, Rater, Study

NAMED, NONE = "feature", "none"


@dataclass(frozen=True, slots=True)
class SameQuestions:
    """Two oracles to whom the same questions were put."""

    a: str
    b: str
    triples: int
    both_named: int
    same_split: Estimate  # of these, both mean the same examples
    same_words: Estimate  # of these, both use the same words

    def to_json(self) -> dict[str, Any]:
        return {
            "a": self.a,
            "b": self.b,
            "triples": self.triples,
            "both_named": self.both_named,
            "same_split": self.same_split.to_json(),
            "same_words": self.same_words.to_json(),
        }


@dataclass(frozen=True, slots=True)
class Shared:
    """A feature that two oracles found, by its names and places in their orders of discovery."""

    a: str
    b: str
    order_a: int
    order_b: int
    correlation: float
    same_words: bool


@dataclass(frozen=True, eq=False)
class Matched:
    a: str
    b: str
    shared: list[Shared]
    only_a: list[str]
    only_b: list[str]
    by_name: int  # features of a whose words b uses too, for the same examples or not
    order: Estimate

    def to_json(self) -> dict[str, Any]:
        pairs = [list(astuple(feature)) for feature in self.shared]
        return {
            "a": self.a,
            "b": self.b,
            "found_by_both": pairs,
            "found_by_a_alone": self.only_a,
            "found_by_b_alone": self.only_b,
            "same_name": self.by_name,
            "salience_order": self.order.to_json(),
        }


@dataclass(frozen=True, eq=False)
class Yield:
    """What one oracle's own discovery brought, and at what price."""

    name: str
    features: int
    counting: int  # interesting and distinct
    names_per_selection: Estimate
    g: float
    g_curve: tuple[float, ...]
    per_query: Estimate  # of those that count
    per_dollar: Estimate
    per_hour: Estimate
    stopped: str

    def to_json(self) -> dict[str, Any]:
        estimates = ("names_per_selection", "per_query", "per_dollar", "per_hour")
        plain = {name: getattr(self, name) for name in ("features", "counting", "g", "stopped")}
        figures = {name: getattr(self, name).to_json() for name in estimates}
        return {"oracle": self.name, **plain, "g_curve": list(self.g_curve), **figures}


def same_questions(study: Study) -> list[SameQuestions]:
    if not study.asked:
        return []
    return [_same_questions(study, a, b) for a, b in combinations(study.raters, 2)]


def _same_questions(study: Study, a: Rater, b: Rater) -> SameQuestions:
    pairs = list(zip(study.asked, a.compared, b.compared, strict=True))
    named = [(asked, x, y) for asked, x, y in pairs if x.verdict == NAMED == y.verdict]
    chosen = [(x, y) for asked, x, y in named if not asked.without]  # else the question says which are meant
    split = sum(set(x.shown) == set(y.shown) for x, y in chosen)
    words = sum(same_name(x.name, y.name) for _, x, y in named)
    reason = "there is no question for which both named something"
    no_choice = reason if chosen or not named else "the questions say which examples are meant"
    return SameQuestions(
        a.name,
        b.name,
        triples=len(pairs),
        both_named=len(named),
        same_split=share(split, len(chosen), no_choice),
        same_words=share(words, len(named), reason),
    )


def yields(study: Study) -> list[Yield]:
    return [_yield(oracle.name, oracle.discovered) for oracle in study.raters if oracle.discovered is not None]


def _yield(name: str, found: Discovered) -> Yield:
    counting = sum(interesting_and_distinct(found.labels)) if len(found.names) else 0
    groups = distinct_selections(correlations(found.labels, found.labels), SAME_LABELS) if len(found.names) else 0

    def per(amount: float, reason: str) -> Estimate:
        if not found.names:
            return Estimate.undefined("it named no feature")
        return Estimate(counting / amount) if amount else Estimate.undefined(reason)

    return Yield(
        name=name,
        features=len(found.names),
        counting=counting,
        names_per_selection=(
            Estimate(len(found.names) / groups) if groups else Estimate.undefined("it named no feature")
        ),
        g=found.g,
        g_curve=found.g_curve,
        per_query=per(found.queries, "nothing was asked"),
        per_dollar=per(found.usd, "its answers cost nothing"),
        per_hour=per(found.seconds / 3600, "its answers took no time that was recorded"),
        stopped=found.stopped,
    )


def matched(study: Study) -> list[Matched]:
    """Every two oracles that discovered by themselves."""
    found = [(oracle.name, oracle.discovered) for oracle in study.raters if oracle.discovered is not None]
    return [_matched(name_a, a, name_b, b) for (name_a, a), (name_b, b) in combinations(found, 2)]


def _matched(name_a: str, a: Discovered, name_b: str, b: Discovered) -> Matched:
    matches = best_matches(correlations(a.labels, b.labels)) if a.names and b.names else []
    shared = [
        Shared(
            a=a.names[match.a],
            b=b.names[match.b],
            order_a=match.a + 1,
            order_b=match.b + 1,
            correlation=match.correlation,
            same_words=same_name(a.names[match.a], b.names[match.b]),
        )
        for match in matches
    ]
    with_a, with_b = {match.a for match in matches}, {match.b for match in matches}
    return Matched(
        a=name_a,
        b=name_b,
        shared=shared,
        only_a=[name for place, name in enumerate(a.names) if place not in with_a],
        only_b=[name for place, name in enumerate(b.names) if place not in with_b],
        by_name=sum(any(same_name(name, other) for other in b.names) for name in a.names),
        order=order_agreement(matches),
    )
