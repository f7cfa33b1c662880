"""Propositions 4.1 and 4.2: proper binary feature trees, asked adaptively and in a fixed order."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discovery.simulation import BINARY_SHAPES, Matrix, RankedCrowd, WeightedCrowd, binary_tree, rehearse
from discovery.statistics import Interval
from discovery.strategies import make_strategy
from discovery.unresolved import all_triples
from reports.drawing import Plot, PlotLine, PlotPanel
from reports.replicate.claim import ClaimResult, ClaimTable, ClaimVerdict, Job, Scale, Topic, jobs_of, results_of
from reports.replicate.estimates import median, number, percent, proportion, with_interval

Triples = NDArray[np.int64]  # one row per triple


def adaptive_run(features: int, shape: str, crowd: str, rng: np.random.Generator) -> dict[str, Any]:
    """One run of Adaptive Triple to its own end: how it went against what the proposition says."""
    world = binary_tree(features, rng, shape)
    strategy = make_strategy("adaptive-triple", len(world.truth), rng)
    history = rehearse(strategy, world.crowd(crowd, int(rng.integers(1 << 31))), world.truth, 3 * features + 10, rng)
    as_claimed = history.queries == features == len(history.columns) and history.nones == 0
    return {"crowd": crowd, "features": features, "as_claimed": as_claimed}


def _plan_adaptive(scale: Scale, seed: int) -> list[Job]:
    sizes = scale.of((3, 6), (1, 2, 5, 12, 30, 60), (1, 2, 3, 5, 12, 30, 60, 120, 200))
    crowds = ("generalist", "specifist", "heterogeneous", "homogeneous")
    cases = [
        {"features": features, "shape": shape, "crowd": crowd}
        for features, shape, crowd in product(sizes, BINARY_SHAPES, crowds)
    ]
    return jobs_of(adaptive_run, cases, (seed, 41), repeats=scale.of(1, 2, 6))


def _judge_adaptive(scale: Scale, results: list[Any]) -> ClaimResult:  # noqa: ARG001
    crowds = list(dict.fromkeys(result["crowd"] for result in results))
    rows = []
    for crowd in crowds:
        outcomes = [result["as_claimed"] for result in results if result["crowd"] == crowd]
        rows.append((crowd, str(len(outcomes)), "M", percent(proportion(sum(outcomes), len(outcomes)))))
    kept = sum(result["as_claimed"] for result in results)
    share = proportion(kept, len(results))
    sizes = sorted({result["features"] for result in results})
    return ClaimResult(
        title="Proposition 4.1: Adaptive Triple finds a proper binary tree of M features in M queries",
        claim="On a proper binary feature tree every query of Adaptive Triple finds a new feature: all M in exactly M "
        "queries, never NONE, whoever answers.",
        simulated=f"Trees of M = {', '.join(map(str, sizes))} features in four shapes ({', '.join(BINARY_SHAPES)}), "
        "four crowds; the strategy runs until it has nothing left to ask.",
        runs=len(results),
        verdict=ClaimVerdict.HOLDS if kept == len(results) else ClaimVerdict.FAILS,
        because=f"{len(results) - kept} of {len(results)} runs took another number of queries, met a NONE or missed a "
        f"feature; with 95 % confidence at most {100 * (1 - share.low):.1f} % of such runs would.",
        tables=[
            ClaimTable(("crowd", "runs", "bound on queries", "runs with exactly M queries, no NONE, all found"), rows)
        ],
    )


def answers_to(
    triples: Triples, truth: Matrix, crowd: RankedCrowd | WeightedCrowd, rng: np.random.Generator
) -> Triples:
    """The column named for each triple, -1 for NONE: the crowd's answer to every question at once."""
    valid = truth[triples].sum(axis=1, dtype=np.int8) == 2
    if isinstance(crowd, RankedCrowd):
        preference = np.where(valid, crowd.rank.astype(np.float32), np.inf)
    else:  # the first of exponential waiting times is in proportion to the weights
        waits = rng.standard_exponential(valid.shape, dtype=np.float32) / crowd.weight.astype(np.float32)
        preference = np.where(valid, waits, np.inf)
    return np.where(valid.any(axis=1), preference.argmin(axis=1), -1)


def steiner_triples(n: int) -> Triples:
    """Triples of n examples (n = 3, 9, 15, …) in which every pair occurs exactly once, by Bose's construction."""
    third = n // 3
    half = (third + 1) // 2  # 1/2 modulo the odd number `third`
    triples = [(i, third + i, 2 * third + i) for i in range(third)]
    for i in range(third):
        for j in range(i + 1, third):
            middle = (i + j) * half % third
            triples += [(k * third + i, k * third + j, (k + 1) % 3 * third + middle) for k in range(3)]
    return np.array(triples, np.int64)


def queries_to_all(features: int, shape: str, design: str, crowd: str, rng: np.random.Generator) -> float:
    """After how many queries of an order fixed beforehand all features are found; infinite if they never are."""
    world = binary_tree(features, rng, shape)
    n = len(world.truth)
    triples = steiner_triples(n) if design == "Steiner" else np.array(all_triples(n), np.int64).T
    triples = triples[rng.permutation(len(triples))]
    member = world.crowd(crowd, int(rng.integers(1 << 31)))
    if not isinstance(member, RankedCrowd | WeightedCrowd):
        raise TypeError(f"a crowd of {type(member).__name__} cannot be asked all triples at once")
    named = answers_to(triples, world.truth, member, rng)
    found, first = np.unique(named, return_index=True)
    return float(first[found >= 0].max() + 1) if (found >= 0).sum() == features else math.inf


CELLS = (("random", "generalist"), ("random", "specifist"), ("random", "heterogeneous"), ("Steiner", "specifist"))


def _cases_fixed(scale: Scale) -> list[dict[str, Any]]:
    sizes = scale.of((7, 13), (13, 25, 43), (13, 25, 43, 79))
    return [
        {"features": features, "shape": shape, "design": design, "crowd": crowd}
        for (design, crowd), features, shape in product(CELLS, sizes, BINARY_SHAPES)
    ]


def _plan_fixed(scale: Scale, seed: int) -> list[Job]:
    return jobs_of(queries_to_all, _cases_fixed(scale), (seed, 42), repeats=scale.of(2, 15, 50))


def _bound(features: int, crowd: str) -> float:
    return features**3 / 24 if crowd == "generalist" else features**2 / 12


def _judge_fixed(scale: Scale, results: list[Any]) -> ClaimResult:
    cases = _cases_fixed(scale)
    of_cell: dict[tuple[str, str, int], list[float]] = {}
    for case, runs in zip(cases, results_of(cases, results), strict=True):
        key = (case["design"], case["crowd"], case["features"])
        of_cell.setdefault(key, []).extend(runs)
    rows, shares, medians = [], [], {}
    for (design, crowd, features), taken in of_cell.items():
        bound = _bound(features, crowd)
        shares.append(proportion(sum(queries <= bound for queries in taken), len(taken)))
        medians[design, crowd, features] = median(taken)
        figures = number(math.floor(bound)), percent(shares[-1]), with_interval(median(taken))
        rows.append((f"{design} triples", crowd, str(features), *figures))
    return ClaimResult(
        title="Proposition 4.2: any order of triples fixed beforehand needs Ω(M²) queries, Ω(M³) with generalists",
        claim="With at most M²/12 queries (M³/24 if generalists answer) chosen beforehand on anonymous examples, all M "
        "features of a proper binary tree are found with probability at most 1/2.",
        simulated="All triples in random order, and a Steiner triple system in random order (every pair of examples in "
        "exactly one triple: no order covers pairs faster), on trees of four shapes; counted is the query that "
        "completes the features.",
        runs=len(results),
        verdict=_verdict(shares),
        because=f"the share of runs that were complete within the bound was at most "
        f"{100 * max(share.value for share in shares):.1f} %, against the 50 % allowed.",
        tables=[
            ClaimTable(("order", "crowd", "M", "bound", "complete within the bound", "median queries to all"), rows)
        ],
        remarks=(
            "The sentence before the proposition says that Ω(M²) *examples* are required; queries are meant, for a "
            "tree of M features has M + 2 examples.",
            "The generalist median lies close to the number of all triples, because a deepest feature has only one or "
            "two triples that name it: the bound of M³/24 is right and about four times too small.",
        ),
        plots={"proposition-4-2.svg": _plot(medians)},
    )


def _verdict(shares: list[Interval]) -> ClaimVerdict:
    if any(share.low > 0.5 for share in shares):
        return ClaimVerdict.FAILS
    return ClaimVerdict.HOLDS if all(share.high < 0.5 for share in shares) else ClaimVerdict.UNDECIDED


def _plot(medians: dict[tuple[str, str, int], Interval]) -> Plot:
    lines = []
    for design, crowd in CELLS:
        sizes = [key[2] for key in medians if key[:2] == (design, crowd)]
        values = [medians[design, crowd, features] for features in sizes]
        finite = [(size, value) for size, value in zip(sizes, values, strict=True) if math.isfinite(value.high)]
        x = [size for size, _ in finite]
        estimates = [value for _, value in finite]
        if x:
            low, high = [value.low for value in estimates], [value.high for value in estimates]
            lines.append(PlotLine(f"{design}, {crowd}", x, [value.value for value in estimates], low, high))
    sizes = sorted({key[2] for key in medians})
    lines.append(PlotLine("bound M³/24", sizes, [_bound(size, "generalist") for size in sizes], dashed=True))
    lines.append(PlotLine("bound M²/12", sizes, [_bound(size, "specifist") for size in sizes], dashed=True))
    panel = PlotPanel("Proposition 4.2", "features M", "median queries to all", lines, log_x=True, log_y=True)
    return Plot([panel], "Median queries to find all features in a fixed order, above both bounds", columns=1)


TOPICS = (
    Topic("Proposition 4.1", _plan_adaptive, _judge_adaptive),
    Topic("Proposition 4.2", _plan_fixed, _judge_fixed),
)
