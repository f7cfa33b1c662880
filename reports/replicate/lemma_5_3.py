"""Lemma 5.3: queries that M independent features take when triples are chosen adaptively."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discovery import Comparison, Kind
from discovery.simulation import independent_features, make_crowd, rehearse
from discovery.strategies import make_strategy
from reports.replicate.claim import ClaimResult, ClaimTable, ClaimVerdict, Job, Scale, Topic, jobs_of
from reports.replicate.estimates import mean, number, with_interval

HALF = "p = 1/2"
MIXED = "a third each of p = 0.5, 0.2, 0.05"
TRIPLES_PER_DRAW = 512  # triples drawn at a time


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
        triples = (rng.random((TRIPLES_PER_DRAW, 3, features)) < chance).astype(np.int8)
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


def _cases(scale: Scale) -> list[tuple[Any, dict[str, Any]]]:
    sizes = scale.of((6,), (10, 20, 40), (10, 20, 40, 60))
    endless = [
        (adaptive_endless, {"mixture": mixture, "features": features, "kind": kind, "crowd": crowd})
        for kind, mixture, crowd, features in product(
            ("triple", "pair"), (HALF, MIXED), ("homogeneous", "heterogeneous"), sizes
        )
    ]
    drawn = [
        (adaptive_drawn, {"mixture": HALF, "features": features, "crowd": "heterogeneous"})
        for features in scale.of((4,), (6, 10), (6, 10))
    ]
    finite = {"mixture": HALF, "features": scale.of(4, 10, 10), "examples": scale.of(40, 100, 200)}
    return endless + drawn + [(adaptive_finite, finite | {"crowd": "heterogeneous"})]


def _plan(scale: Scale, seed: int) -> list[Job]:
    jobs = []
    for number_, (work, case) in enumerate(_cases(scale)):
        repeats = scale.of(4, 60, 200) if work is adaptive_endless else scale.of(2, 20, 60)
        jobs += jobs_of(work, [case], (seed, 53, number_), repeats=repeats)
    return jobs


def _grouped(scale: Scale, results: list[Any]) -> list[tuple[Any, dict[str, Any], list[float]]]:
    groups, start = [], 0
    for work, case in _cases(scale):
        count = scale.of(4, 60, 200) if work is adaptive_endless else scale.of(2, 20, 60)
        groups.append((work, case, results[start : start + count]))
        start += count
    return groups


def expected_queries(q: Sequence[float]) -> float:
    """The mean when all q are equal, for any crowd: the j-th last feature takes 1/(1 - (1-q)^j)."""
    return sum(1 / (1 - (1 - q[0]) ** j) for j in range(1, len(q) + 1))


def _judge(scale: Scale, results: list[Any]) -> ClaimResult:
    rows, within = [], []
    for work, case, taken in _grouped(scale, results):
        kind = case.get("kind", "triple")
        q = settling(case["mixture"], case["features"], kind)
        bound, measured = float((1 / q).sum()), mean(taken)
        within.append((bound, measured))
        how = {adaptive_endless: "endless", adaptive_drawn: "endless, drawn"}.get(work, f"{case.get('examples')}")
        exact = number(expected_queries(q.tolist())) if case["mixture"] == HALF else "–"
        rows.append(
            (
                kind,
                case["mixture"],
                case["crowd"],
                how,
                str(case["features"]),
                number(bound),
                exact,
                with_interval(measured),
            )
        )
    holds = all(measured.low <= bound for bound, measured in within)
    return ClaimResult(
        title="Lemma 5.3: Adaptive Triple finds M independent features in at most Σ 1/q queries",
        claim="With endless examples and independent features the mean number of queries is at most Σ 1/q_j, where "
        "q = 3p²(1-p) for triples and 2p(1-p) for pairs.",
        simulated="Endless examples, of which only the features still missing need be drawn (given that no known "
        "feature settles a triple, the others are as before); the same with every example drawn; and Adaptive Triple "
        "itself on a finite set.",
        runs=len(results),
        verdict=ClaimVerdict.HOLDS if holds else ClaimVerdict.FAILS,
        because="the mean stayed below the bound in every row." if holds else "a mean exceeded the bound.",
        tables=[
            ClaimTable(("question", "features", "crowd", "examples", "M", "bound", "exact mean", "measured mean"), rows)
        ],
        remarks=(
            "For equal q the mean is exactly Σ_j 1/(1 - (1-q)^j), close to M and not to M/q: with p = 1/2, M + 3.1. "
            "The bound counts every feature as if it were the last one missing.",
            "The introduction calls Lemmas 5.3 and 5.4 by the numbers 5.2 and 5.3.",
        ),
    )


TOPICS = (Topic("Lemma 5.3", _plan, _judge),)
