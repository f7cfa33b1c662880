"""Lemma 5.4: queries that M independent features take when the triples are fixed beforehand."""

from __future__ import annotations

import math
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discovery.simulation import independent_features
from discovery.statistics import Interval
from reports.drawing import Plot, PlotLine, PlotPanel
from reports.replicate.claim import ClaimResult, ClaimTable, ClaimVerdict, Job, Scale, Topic, jobs_of, results_of
from reports.replicate.estimates import mean, number, with_interval
from reports.replicate.lemma_5_3 import HALF, MIXED, expected_queries, settling

TRIPLES_PER_DRAW = 1 << 14  # triples drawn at a time


def expected_collecting(q: NDArray[np.float64]) -> float:
    """The mean queries of random triples with a homogeneous crowd: collecting features that come with unequal chances.

    With queries at the times of a Poisson process each feature comes independently of the others."""
    named = q * np.concatenate([[1.0], np.cumprod(1 - q)[:-1]])
    times = np.concatenate([[0.0], np.geomspace(1e-3, 40.0, 20_001)]) / named.min()
    incomplete = 1 - np.prod(-np.expm1(-named[:, None] * times), axis=0)
    return float(np.trapezoid(incomplete, times))


def nonadaptive_endless(mixture: str, features: int, crowd: str, rng: np.random.Generator) -> int:
    """Queries until random triples of endless examples have named every feature."""
    q = settling(mixture, features)
    found = np.zeros(features, np.bool_)
    queries = 0
    while True:
        fits = rng.random((TRIPLES_PER_DRAW, features)) < q
        preference = -np.arange(features) if crowd == "homogeneous" else rng.random(fits.shape)
        named = np.where(fits, preference, -np.inf).argmax(axis=1)
        answered = np.flatnonzero(fits.any(axis=1))
        new, first = np.unique(named[answered], return_index=True)
        late = first[~found[new]]
        found[new] = True
        if found.all():
            return queries + int(answered[late.max()]) + 1
        queries += TRIPLES_PER_DRAW


def nonadaptive_reusing(features: int, examples: int, rng: np.random.Generator) -> float:
    """All triples of the first 3, 4, 5, … examples: as many questions as can be made of few examples; p = 1/2."""
    triples = np.array(sorted(combinations(range(examples), 3), key=lambda triple: triple[::-1]))
    truth = independent_features(examples, [0.5] * features, rng).truth
    fits = truth[triples].sum(axis=1) == 2
    named = np.where(fits.any(axis=1), fits.argmax(axis=1), -1)
    new, first = np.unique(named, return_index=True)
    return float(first[new >= 0].max() + 1) if (new >= 0).sum() == features else math.inf


def _cases(scale: Scale) -> list[tuple[Any, dict[str, Any]]]:
    sizes = scale.of((4, 6), (5, 10, 15), (5, 10, 15, 20))
    endless = [
        (nonadaptive_endless, {"mixture": mixture, "features": features, "crowd": crowd})
        for crowd, mixture, features in (
            *product(("homogeneous", "heterogeneous"), (HALF,), sizes),
            *product(("homogeneous",), (MIXED,), sizes[1:]),
        )
    ]
    reusing = [
        (nonadaptive_reusing, {"features": m, "examples": scale.of(20, 40, 50)})
        for m in scale.of((4,), (5, 10), (5, 10))
    ]
    return endless + reusing


def _plan(scale: Scale, seed: int) -> list[Job]:
    jobs = []
    for number_, (work, case) in enumerate(_cases(scale)):
        jobs += jobs_of(work, [case], (seed, 54, number_), repeats=scale.of(4, 60, 150))
    return jobs


def _judge(scale: Scale, results: list[Any]) -> ClaimResult:
    cases = _cases(scale)
    rows = []
    cells: dict[tuple[str, str], list[tuple[int, float, Interval]]] = {}
    for (work, case), runs in zip(cases, results_of(cases, results), strict=True):
        crowd, mixture = case.get("crowd", "homogeneous"), case.get("mixture", HALF)
        q = settling(mixture, case["features"])
        bound, measured = float((1 - q.max()) / np.prod(1 - q)), mean(runs)
        order = "random" if work is nonadaptive_endless else "few examples reused"
        exact = number(expected_collecting(q)) if crowd == "homogeneous" and order == "random" else "–"
        cells.setdefault((f"{crowd}, {order}", mixture), []).append((case["features"], bound, measured))
        rows.append((order, crowd, mixture, str(case["features"]), number(bound), exact, with_interval(measured)))
    homogeneous = [cell for key, row in cells.items() if key[0].startswith("homogeneous") for cell in row]
    others = [cell for key, row in cells.items() if not key[0].startswith("homogeneous") for cell in row]
    holds = all(measured.high >= bound for _, bound, measured in homogeneous)
    below = [(bound, measured) for _, bound, measured in others if measured.high < bound]
    return ClaimResult(
        title="Lemma 5.4: without adaptivity the queries grow exponentially",
        claim="Any non-adaptive triple algorithm makes at least (1 - q_max) / Π(1 - q_j) queries on average.",
        simulated="Random triples of endless examples until every feature was named, and all triples of the first 3, "
        "4, 5, … examples; homogeneous and heterogeneous crowds.",
        runs=len(results),
        verdict=(ClaimVerdict.HOLDS_AS_READ if below else ClaimVerdict.HOLDS) if holds else ClaimVerdict.FAILS,
        because=f"with a homogeneous crowd the mean was {'never' if holds else 'not always above, but'} below the "
        f"bound; with a heterogeneous crowd it was below in {len(below)} of {len(others)} rows.",
        tables=[ClaimTable(("order", "crowd", "features", "M", "bound", "exact mean", "measured mean"), rows)],
        remarks=(
            "The lemma needs a homogeneous crowd and does not say so. If each answer is a random one of the features "
            "that fit, random triples collect M features in about M·H_M queries (H_M = 1 + 1/2 + … + 1/M).",
            "The proof writes N for the number of features, and its product runs over the wrong index. Where examples "
            "are used in several triples, the union bound it appeals to yields half of 1/P, P the chance that a triple "
            "names the last feature; that is still above the bound, because q is at most 4/9.",
        ),
        plots={"lemmas-5-3-and-5-4.svg": _plot(cells)},
    )


def _plot(cells: dict[tuple[str, str], list[tuple[int, float, Interval]]]) -> Plot:
    lines = []
    for (name, mixture), row in cells.items():
        if mixture != HALF:
            continue
        sizes, values = [features for features, _, _ in row], [measured for _, _, measured in row]
        low, high = [value.low for value in values], [value.high for value in values]
        lines.append(PlotLine(name, sizes, [value.value for value in values], low, high))
        if not lines[1:]:
            lines.append(PlotLine("bound of Lemma 5.4", sizes, [bound for _, bound, _ in row], dashed=True))
            adaptive = [expected_queries(settling(HALF, features).tolist()) for features in sizes]
            lines.append(PlotLine("Adaptive Triple, exact", sizes, adaptive))
    panel = PlotPanel("Independent features, p = 1/2", "features M", "mean queries to all", lines, log_y=True)
    return Plot([panel], "Queries of random triples grow exponentially with a homogeneous crowd only", columns=1)


TOPICS = (Topic("Lemma 5.4", _plan, _judge),)
