"""Section 5, independent features: how many examples they take (Lemmas 5.1 and 5.2) and how many queries (5.3, 5.4)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.paper.claim import ClaimTable, Finding, Scale, Tested, Topic, Trials, grid, trials_of, verdict_of
from benchmarks.paper.estimates import mean, number, percent, proportion, with_interval
from benchmarks.paper.plots import Plot, PlotLine, PlotPanel
from benchmarks.rehearsal import rehearse
from benchmarks.worlds import independent_features
from twothirds.discovery import Comparison, Kind
from twothirds.discovery.simulation import make_crowd
from twothirds.discovery.statistics import Interval
from twothirds.discovery.strategies import make_strategy
from twothirds.discovery.unresolved import UnresolvedSets


def homogeneous_finds_all(features: int, examples: int, rng: np.random.Generator) -> bool:
    """Whether a homogeneous crowd names every feature when all triples are asked; p = 1/2.

    It names feature j exactly where j settles a triple that no feature before j does."""
    truth = independent_features(examples, [0.5] * features, rng).truth
    triples = UnresolvedSets(examples, 3, rng)
    left = triples.count()
    for column in truth.T:
        triples.add(column)
        before, left = left, triples.count()
        if left == before:
            return False
    return True


def _examples_below(features: int) -> int:
    """The largest whole number below 1.1^M."""
    return math.ceil(1.1**features) - 1


def _halfway(features: int) -> float:
    """About the number of examples with an even chance that some triple names the last feature alone."""
    return math.cbrt(6 * math.log(2) / (0.375 * 0.625 ** (features - 1)))


def _plan_homogeneous(scale: Scale, seed: int) -> list[Trials]:
    sizes = scale.of((14, 20), (15, 20, 25, 30), (15, 20, 25, 30, 35, 40))
    cases = [{"features": features, "examples": _examples_below(features)} for features in sizes]
    cases += [
        {"features": features, "examples": round(share * _halfway(features))}
        for features in scale.of((8,), (10, 15, 20), (10, 15, 20, 25))
        for share in (0.5, 0.75, 1.0, 1.25, 1.5, 2.0)
    ]
    return trials_of(homogeneous_finds_all, cases, (seed, 51), scale.of(3, 40, 100))


def _judge_homogeneous(_: Scale, tested: Tested) -> Finding:
    rows, bounded, halfway = [], list[Interval](), dict[int, list[tuple[float, Interval]]]()
    for trials, runs in tested:
        features, examples = trials.case["features"], trials.case["examples"]
        share, even = proportion(sum(runs), len(runs)), _halfway(features)
        if examples == _examples_below(features):
            bounded.append(share)
            rows.append((features, examples, "50 %", percent(share), number(even)))
        else:
            halfway.setdefault(features, []).append((examples / even, share))
    worst = max(bounded, key=lambda share: share.high)
    lines = [
        PlotLine.of_estimates(f"M = {features}", [place for place, _ in points], [share for _, share in points])
        for features, points in sorted(halfway.items())
    ]
    panel = PlotPanel("Lemma 5.1", "examples / (1.9 · 1.17^M)", "share with all features found", lines, level=0.5)
    alt = "The chance to find all features passes one half near 1.9 · 1.17^M examples"
    return Finding(
        simulated="All triples of fewer than 1.1^M examples, asked of a homogeneous crowd; then the same with more "
        "examples, to see where an even chance really lies.",
        verdict=verdict_of(worst.high < 0.5, refuted=any(share.low > 0.5 for share in bounded)),
        because=f"below 1.1^M examples all features were found in at most {percent(worst)} of the data sets.",
        tables=[
            ClaimTable("M | examples (below 1.1^M) | bound | all found | examples for an even chance, by formula", rows)
        ],
        plots={"lemma-5-1.svg": Plot([panel], alt, columns=1)},
    )


def alone(frequency: float, features: int, *, factor: float) -> float:
    """The chance that one feature alone settles a random triple, as printed (factor 1) or as it is (factor 3)."""
    settles = frequency**2 * (1 - frequency)
    return float(3 * settles * (1 - factor * settles) ** (features - 1))


def examples_needed(tau: float) -> int:
    """3 ln(1/τ)/τ: with the constant 3 a third of the examples' disjoint triples fails a feature with chance τ."""
    return math.ceil(3 * math.log(1 / tau) / tau)


def identifiable_by_disjoint(features: int, frequency: float, factor: float, rng: np.random.Generator) -> bool:
    """The proof's argument: does each feature alone settle one of N/3 disjoint triples?"""
    count = examples_needed(alone(frequency, features, factor=factor)) // 3
    seen = np.zeros(features, np.bool_)
    for start in range(0, count, 4096):
        drawn = rng.random((min(4096, count - start), 3, features)) < frequency
        settles = drawn.sum(axis=1) == 2
        seen |= settles[settles.sum(axis=1) == 1].any(axis=0)
    return bool(seen.all())


def identifying_triples(features: int) -> float:
    """How many of all triples of the printed number of examples a given feature alone settles on average; p = 1/2."""
    printed = alone(0.5, features, factor=1.0)
    n = 3 * math.log(1 / printed) / printed
    return n * (n - 1) * (n - 2) / 6 * alone(0.5, features, factor=3.0)


def _plan_identifiable(scale: Scale, seed: int) -> list[Trials]:
    sizes = scale.of((3, 5), (4, 8, 12), (4, 8, 12, 16))
    cases = grid(frequency=(0.5, 0.3), features=sizes, factor=(3.0, 1.0))
    return trials_of(identifiable_by_disjoint, cases, (seed, 52), scale.of(4, 40, 200))


def _judge_identifiable(_: Scale, tested: Tested) -> Finding:
    rows, holds = [], True
    for trials, runs in tested:
        case = trials.case
        tau = alone(case["frequency"], case["features"], factor=case["factor"])
        share, demanded = proportion(sum(runs), len(runs)), 1 - case["features"] * tau
        as_printed = case["factor"] == 1.0
        holds &= as_printed or share.high >= demanded
        reading = "printed" if as_printed else "with the factor 3"
        needed = f"{examples_needed(tau):,}", f"{100 * max(demanded, 0):.1f} %"
        rows.append((number(case["frequency"]), case["features"], reading, number(tau), *needed, percent(share)))
    expected = {features: identifying_triples(features) for features in (25, 50, 100, 200, 400)}
    return Finding(
        simulated="N = 3 ln(1/τ)/τ examples cut into N/3 disjoint triples, as in the proof; a feature counts if it "
        "alone settles one of them. Once with τ as printed, once with the factor 3 inside the product.",
        verdict=verdict_of(holds, as_printed=min(expected.values()) >= 0.01),
        because=f"with the factor 3 {'all' if holds else 'not all'} shares agree with the 1 - Mτ that the argument "
        "gives; with τ as printed the disjoint triples fail, and for large M all triples together do.",
        tables=[
            ClaimTable("p | M | τ | value | examples N | demanded 1 - Mτ | all identifiable", rows),
            ClaimTable(
                "M | expected triples that identify a given feature",
                [(features, number(count)) for features, count in expected.items()],
                "By arithmetic, p = 1/2: what is to be had from *all* triples of the N that the printed τ asks for. "
                "A number far below 1 bounds the chance to identify the feature.",
            ),
        ],
    )


HALF = "p = 1/2"
MIXED = "a third each of p = 0.5, 0.2, 0.05"
Case = tuple[Callable[..., float], dict[str, Any], int]  # what simulates it, its arguments, how often
TRIPLES_PER_DRAW = {"adaptive": 512, "random": 1 << 14}


def frequencies(mixture: str, features: int) -> list[float]:
    return [0.5] * features if mixture == HALF else [(0.5, 0.2, 0.05)[j % 3] for j in range(features)]


def settling(mixture: str, features: int, kind: str = "triple") -> NDArray[np.float64]:
    """q_j: the chance that feature j answers a random question."""
    p = np.array(frequencies(mixture, features))
    return np.asarray(2 * p * (1 - p) if kind == "pair" else 3 * p**2 * (1 - p), np.float64)


def adaptive_endless(mixture: str, features: int, kind: str, crowd: str, rng: np.random.Generator) -> int:
    """Queries of the adaptive algorithm. On a fresh unresolved question each missing feature fits independently."""
    missing = settling(mixture, features, kind)
    queries = 0
    while missing.size:
        queries += 1
        fits = np.flatnonzero(rng.random(missing.size) < missing)
        if fits.size:
            named = fits[0] if crowd == "homogeneous" else rng.choice(fits)
            missing = np.delete(missing, named)
    return queries


def adaptive_drawn(mixture: str, features: int, crowd: str, rng: np.random.Generator) -> int:
    """The same without that shortcut: examples are drawn, and triples that known features settle are thrown away."""
    chance, found, queries = np.array(frequencies(mixture, features)), np.zeros(features, np.bool_), 0
    seed = int(rng.integers(1 << 31))
    while not found.all():
        triples = (rng.random((TRIPLES_PER_DRAW["adaptive"], 3, features)) < chance).astype(np.int8)
        for triple in triples:
            if (triple[:, found].sum(axis=0) == 2).any():
                continue
            queries += 1
            named = make_crowd(crowd, triple, seed).answer(Comparison(Kind.TWO_OF_THREE, (0, 1, 2)), rng)
            if named is not None:
                found[named] = True
                break  # what is unresolved has changed: the rest of the chunk would be as good, and is not needed
    return queries


def adaptive_finite(mixture: str, features: int, examples: int, crowd: str, rng: np.random.Generator) -> float:
    """Adaptive Triple itself on a finite data set; infinite if the triples run out before the features."""
    world = independent_features(examples, frequencies(mixture, features), rng)
    strategy = make_strategy("adaptive-triple", examples, rng)
    history = rehearse(strategy, world.crowd(crowd, 0), world.truth, 10**6, rng, until=features)
    return history.queries if len(history.columns) == features else math.inf


def _plan_queries(scale: Scale, seed: int) -> list[Trials]:
    endless = grid(
        kind=("triple", "pair"),
        mixture=(HALF, MIXED),
        crowd=("homogeneous", "heterogeneous"),
        features=scale.of((6,), (10, 20, 40), (10, 20, 40, 60)),
    )
    heterogeneous = {"mixture": HALF, "crowd": "heterogeneous"}
    drawn = [heterogeneous | {"features": features} for features in scale.of((4,), (6, 10), (6, 10))]
    finite = heterogeneous | {"features": scale.of(4, 10, 10), "examples": scale.of(40, 100, 200)}
    cases: list[Case] = [(adaptive_endless, case, scale.of(4, 60, 200)) for case in endless]
    cases += [(adaptive_drawn, case, scale.of(2, 20, 60)) for case in drawn]
    cases += [(adaptive_finite, finite, scale.of(2, 20, 60))]
    return _each(cases, (seed, 53))


def _each(cases: Sequence[Case], seed: tuple[int, int]) -> list[Trials]:
    """Trials of cases that are simulated by different functions."""
    return [
        trials
        for place, (work, case, repeats) in enumerate(cases)
        for trials in trials_of(work, [case], (*seed, place), repeats)
    ]


def expected_queries(q: Sequence[float]) -> float:
    """The mean when all q are equal, for any crowd: the j-th last feature takes 1/(1 - (1-q)^j)."""
    return sum(1 / (1 - (1 - q[0]) ** j) for j in range(1, len(q) + 1))


def _judge_queries(_: Scale, tested: Tested) -> Finding:
    rows, holds = [], True
    for trials, queries in tested:
        case, kind = trials.case, trials.case.get("kind", "triple")
        q = settling(case["mixture"], case["features"], kind)
        bound, measured = float((1 / q).sum()), mean(queries)
        holds &= measured.low <= bound
        endless = {adaptive_endless: "endless", adaptive_drawn: "endless, drawn"}
        examples = endless.get(trials.work) or case["examples"]
        exact = number(expected_queries(q.tolist())) if case["mixture"] == HALF else "–"
        figures = number(bound), exact, with_interval(measured)
        rows.append((kind, case["mixture"], case["crowd"], examples, case["features"], *figures))
    return Finding(
        simulated="Endless examples, of which only the features still missing need be drawn (given that no known "
        "feature settles a triple, the others are as before); the same with every example drawn; and Adaptive Triple "
        "itself on a finite set.",
        verdict=verdict_of(holds),
        because="the mean stayed below the bound in every row." if holds else "a mean exceeded the bound.",
        tables=[ClaimTable("question | features | crowd | examples | M | bound | exact mean | measured mean", rows)],
    )


def expected_collecting(q: NDArray[np.float64]) -> float:
    """The mean queries of random triples with a homogeneous crowd: collecting features that come with unequal chances.

    With queries at the times of a Poisson process each feature comes independently of the others."""
    named = q * np.concatenate([[1.0], np.cumprod(1 - q)[:-1]])
    times = np.concatenate([[0.0], np.geomspace(1e-3, 40.0, 20_001)]) / named.min()
    incomplete = 1 - np.prod(-np.expm1(-named[:, None] * times), axis=0)
    return float(np.trapezoid(incomplete, times))


def nonadaptive_endless(mixture: str, features: int, crowd: str, rng: np.random.Generator) -> int:
    """Queries until random triples of endless examples have named every feature."""
    q, drawn = settling(mixture, features), TRIPLES_PER_DRAW["random"]
    found = np.zeros(features, np.bool_)
    queries = 0
    while True:
        fits = rng.random((drawn, features)) < q
        preference = -np.arange(features) if crowd == "homogeneous" else rng.random(fits.shape)
        named = np.where(fits, preference, -np.inf).argmax(axis=1)
        answered = np.flatnonzero(fits.any(axis=1))
        new, first = np.unique(named[answered], return_index=True)
        late = first[~found[new]]
        found[new] = True
        if found.all():
            return queries + int(answered[late.max()]) + 1
        queries += drawn


def nonadaptive_reusing(features: int, examples: int, rng: np.random.Generator) -> float:
    """All triples of the first 3, 4, 5, … examples: as many questions as can be made of few examples; p = 1/2."""
    triples = np.array(sorted(combinations(range(examples), 3), key=lambda triple: triple[::-1]))
    truth = independent_features(examples, [0.5] * features, rng).truth
    fits = truth[triples].sum(axis=1) == 2
    named = np.where(fits.any(axis=1), fits.argmax(axis=1), -1)
    new, first = np.unique(named, return_index=True)
    return float(first[new >= 0].max() + 1) if (new >= 0).sum() == features else math.inf


def _plan_nonadaptive(scale: Scale, seed: int) -> list[Trials]:
    sizes, repeats = scale.of((4, 6), (5, 10, 15), (5, 10, 15, 20)), scale.of(4, 60, 150)
    endless = grid(crowd=("homogeneous", "heterogeneous"), mixture=(HALF,), features=sizes)
    endless += grid(crowd=("homogeneous",), mixture=(MIXED,), features=sizes[1:])
    reusing = grid(features=scale.of((4,), (5, 10), (5, 10)), examples=(scale.of(20, 40, 50),))
    cases: list[Case] = [(nonadaptive_endless, case, repeats) for case in endless]
    cases += [(nonadaptive_reusing, case, repeats) for case in reusing]
    return _each(cases, (seed, 54))


def _judge_nonadaptive(_: Scale, tested: Tested) -> Finding:
    rows, holds, others = [], True, list[bool]()
    lines: dict[str, list[tuple[int, float, Interval]]] = {}
    for trials, queries in tested:
        features, crowd = trials.case["features"], trials.case.get("crowd", "homogeneous")
        mixture = trials.case.get("mixture", HALF)
        q = settling(mixture, features)
        bound, measured = float((1 - q.max()) / np.prod(1 - q)), mean(queries)
        below = measured.high < bound
        if crowd == "homogeneous":
            holds &= not below
        else:
            others.append(below)
        order = "random" if trials.work is nonadaptive_endless else "few examples reused"
        exact = number(expected_collecting(q)) if crowd == "homogeneous" and order == "random" else "–"
        rows.append((order, crowd, mixture, features, number(bound), exact, with_interval(measured)))
        if mixture == HALF:
            lines.setdefault(f"{crowd}, {order}", []).append((features, bound, measured))
    return Finding(
        simulated="Random triples of endless examples until every feature was named, and all triples of the first 3, "
        "4, 5, … examples; homogeneous and heterogeneous crowds.",
        verdict=verdict_of(holds, as_printed=not any(others)),
        because=f"with a homogeneous crowd the mean was {'never' if holds else 'not always above, but'} below the "
        f"bound; with a heterogeneous crowd it was below in {sum(others)} of {len(others)} rows.",
        tables=[ClaimTable("order | crowd | features | M | bound | exact mean | measured mean", rows)],
        plots={"lemmas-5-3-and-5-4.svg": _plot(lines)},
    )


def _plot(measured: dict[str, list[tuple[int, float, Interval]]]) -> Plot:
    first = next(iter(measured.values()))
    sizes = [features for features, _, _ in first]
    adaptive = [expected_queries(settling(HALF, features).tolist()) for features in sizes]
    lines = [
        PlotLine.of_estimates(name, [features for features, _, _ in row], [estimate for _, _, estimate in row])
        for name, row in measured.items()
    ]
    lines[1:1] = [
        PlotLine("bound of Lemma 5.4", sizes, [bound for _, bound, _ in first], dashed=True),
        PlotLine("Adaptive Triple, exact", sizes, adaptive),
    ]
    panel = PlotPanel("Independent features, p = 1/2", "features M", "mean queries to all", lines, log_y=True)
    return Plot([panel], "Queries of random triples grow exponentially with a homogeneous crowd only", columns=1)


TOPICS = (
    Topic("Lemma 5.1", _plan_homogeneous, _judge_homogeneous),
    Topic("Lemma 5.2", _plan_identifiable, _judge_identifiable),
    Topic("Lemma 5.3", _plan_queries, _judge_queries),
    Topic("Lemma 5.4", _plan_nonadaptive, _judge_nonadaptive),
)
