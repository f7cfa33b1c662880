"""Proposition 6.1 and the remarks of Section 6: questions with more on either side, and with one of three."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from discovery import Comparison, Kind
from discovery.simulation import Matrix, binary_tree, left_right_world, valid_columns
from reports.replicate.claim import ClaimResult, ClaimTable, ClaimVerdict, Job, Scale, Topic, jobs_of
from reports.replicate.estimates import percent, proportion


def all_left_right(n: int) -> list[Comparison]:
    """Every question L-R of disjoint sets of n examples, the empty sets included."""
    sides = product((0, 1, 2), repeat=n)
    return [
        Comparison(Kind.LEFT_RIGHT, tuple(np.flatnonzero(side_of == 1)), tuple(np.flatnonzero(side_of == 2)))
        for side_of in map(np.array, sides)
    ]


def guaranteed(truth: Matrix, questions: list[Comparison]) -> list[set[int]]:
    """For each question the features that it is sure to bring out: those that are its only valid answer."""
    answers = [np.flatnonzero(valid_columns(truth, question)) for question in questions]
    return [set(answer.tolist()) if answer.size == 1 else set() for answer in answers]


def left_right_case(left: int, right: int, ones: bool, rng: np.random.Generator) -> dict[str, Any]:  # noqa: ARG001
    """All questions on the construction. `ones`: g_i is 1 on R, the other way to fill what the paper leaves open."""
    truth = left_right_world(left, right).truth.copy()
    if ones:
        truth[left:, 1 : 1 + left] = 1
    questions = all_left_right(left + right)
    found = guaranteed(truth, questions)
    within = [
        columns
        for question, columns in zip(questions, found, strict=True)
        if len(question.examples) <= left and len(question.without) <= right
    ]
    smaller = [
        question
        for question, columns in zip(questions, found, strict=True)
        if 0 in columns and (len(question.examples) < left or len(question.without) < right)
    ]
    complete = set().union(*within) == set(range(truth.shape[1]))
    return {
        "left": left,
        "right": right,
        "ones": ones,
        "complete": complete,
        "smaller": len(smaller),
        "asked": len(questions),
    }


def one_of_three_run(features: int, specifist: bool, rng: np.random.Generator) -> float:
    """The share of a binary tree's features that asking all 1/3 questions brings out."""
    world = binary_tree(features, rng)
    crowd = world.crowd("specifist" if specifist else "generalist", 0)
    n = len(world.truth)
    asked = [
        crowd.answer(Comparison(Kind.ONE_OF_THREE, (a, b, c)), rng)
        for a in range(n)
        for b in range(a + 1, n)
        for c in range(b + 1, n)
    ]
    return len({column for column in asked if column is not None}) / features


def _cases(scale: Scale) -> list[dict[str, Any]]:
    largest = scale.of(2, 3, 4)
    return [
        {"left": left, "right": right, "ones": ones}
        for ones, left, right in product((False, True), range(1, largest + 1), range(1, largest + 1))
    ]


def _trees(scale: Scale) -> list[dict[str, Any]]:
    return [{"features": scale.of(5, 16, 24), "specifist": specifist} for specifist in (False, True)]


def _plan(scale: Scale, seed: int) -> list[Job]:
    jobs = jobs_of(left_right_case, _cases(scale), (seed, 61))
    return jobs + jobs_of(one_of_three_run, _trees(scale), (seed, 62), repeats=scale.of(2, 10, 50))


def _judge(scale: Scale, results: list[Any]) -> ClaimResult:
    cases = len(_cases(scale))
    constructions, shares = results[:cases], results[cases:]
    zeros = [case for case in constructions if not case["ones"]]
    ones = [case for case in constructions if case["ones"]]
    rows = [
        (
            name,
            str(len(group)),
            f"{sum(case['asked'] for case in group):,}",
            str(sum(case["complete"] for case in group)),
            str(sum(case["smaller"] == 0 for case in group)),
        )
        for name, group in (("g_i = 0 on R", zeros), ("g_i = 1 on R", ones))
    ]
    holds = all(case["complete"] and case["smaller"] == 0 for case in zeros)
    refuted = not all(case["complete"] and case["smaller"] == 0 for case in ones)
    half = len(shares) // 2
    trees = []
    for name, group in (("generalist", shares[:half]), ("specifist", shares[half:])):
        complete = proportion(sum(share == 1 for share in group), len(group))
        trees.append((name, str(len(group)), f"{100 * float(np.mean(group)):.1f} %", percent(complete)))
    return ClaimResult(
        title="Proposition 6.1: some features need questions of any given size",
        claim="For all ℓ, r ≥ 1 there is a data set of ℓ + r examples and 1 + ℓ + r features on which ℓ-r questions "
        "recover everything, while questions with fewer than ℓ on the left or fewer than r on the right need never "
        "name the first feature.",
        simulated=f"The construction of the proof for all ℓ, r up to {scale.of(2, 3, 4)}, and every question L-R on "
        "it: a feature is sure to be named where it is the only valid answer. This is exhaustive, so there is no "
        "interval.",
        runs=sum(case["asked"] for case in constructions),
        verdict=(ClaimVerdict.HOLDS_AS_READ if refuted else ClaimVerdict.HOLDS) if holds else ClaimVerdict.FAILS,
        because=f"with g_i = 0 on R it {'held' if holds else 'did not hold'} for each of the {len(zeros)} pairs ℓ, r; "
        f"with g_i = 1 on R it {'did not' if refuted else 'did'} hold for all.",
        tables=[
            ClaimTable(
                ("reading", "pairs ℓ, r", "questions", "all features recovered", "no smaller question suffices"), rows
            ),
            ClaimTable(
                ("crowd", "trees", "features found by all 1/3 questions", "trees with all found"),
                trees,
                f"Also in Section 6: 1/3 questions alone may miss features of a tree (binary trees of "
                f"{scale.of(5, 16, 24)} features).",
            ),
        ],
        remarks=(
            "The proof does not say what g_i is on R (its sentence breaks off). 0 works. With 1 the proposition "
            "fails: {x_1}-R then leaves the first feature as the only answer, whatever ℓ is.",
            "The least salient feature is what makes smaller questions fail: the proposition is about a guarantee, and "
            "a heterogeneous crowd would name the feature sooner or later.",
        ),
    )


TOPICS = (Topic("Proposition 6.1", _plan, _judge),)
