"""The simulations behind the page against slower ways to the same result, and verdicts that follow the runs."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from benchmarks.paper.__main__ import TOPICS
from benchmarks.paper.claim import TRIAL, Verdict, run_trials
from benchmarks.paper.experiments import all_left_right, guaranteed, left_right_case
from benchmarks.paper.independent import (
    HALF,
    adaptive_drawn,
    adaptive_endless,
    alone,
    expected_collecting,
    expected_queries,
    homogeneous_finds_all,
    nonadaptive_endless,
    settling,
)
from benchmarks.paper.trees import (
    PrintedHybrid,
    answers_to,
    least_answered,
    lone_feature,
    most_nones,
    queries_to_all,
    steiner_triples,
)
from benchmarks.worlds import binary_tree, independent_features, leafy_tree, left_right_world
from twothirds.discovery import Comparison, Kind, valid_columns
from twothirds.discovery.simulation import Matrix, RankedCrowd


@pytest.mark.parametrize("n", [3, 9, 15, 27, 81])
def test_every_pair_is_in_exactly_one_steiner_triple(n: int) -> None:
    pairs = [frozenset(pair) for triple in steiner_triples(n).tolist() for pair in combinations(triple, 2)]
    assert len(pairs) == len(set(pairs)) == n * (n - 1) // 2


@pytest.mark.parametrize("kind", ["generalist", "specifist", "homogeneous"])
def test_a_crowd_asked_all_triples_at_once_answers_as_one_by_one(kind: str) -> None:
    rng = np.random.default_rng(3)
    world = binary_tree(9, rng)
    crowd = world.crowd(kind, 1)
    assert isinstance(crowd, RankedCrowd)
    triples = np.array(list(combinations(range(11), 3)))
    named = answers_to(triples, world.truth, crowd, rng)
    one_by_one = [crowd.answer(Comparison(Kind.TWO_OF_THREE, tuple(triple)), rng) for triple in triples.tolist()]
    assert named.tolist() == [-1 if column is None else column for column in one_by_one]


def test_a_heterogeneous_crowd_asked_at_once_names_each_fitting_feature_equally_often() -> None:
    rng = np.random.default_rng(4)
    truth = np.array([[1, 1, 1, 0], [1, 1, 1, 1], [0, 0, 0, 1]], np.int8)
    world = independent_features(3, [0.5] * 4, rng)
    crowd = type(world)(truth).crowd("heterogeneous", 0)
    assert not isinstance(crowd, RankedCrowd)
    named = answers_to(np.tile([0, 1, 2], (8000, 1)), truth, crowd, rng)  # type: ignore[arg-type]
    counts = np.bincount(named, minlength=4) / 8000
    assert np.abs(counts - 0.25).max() < 0.02


def test_all_triples_find_all_features_of_a_binary_tree_and_few_do_not() -> None:
    rng = np.random.default_rng(5)
    taken = [queries_to_all(13, "random-split", "random", "generalist", rng) for _ in range(20)]
    assert all(13 <= queries <= math.comb(15, 3) for queries in taken)


def nones(truth: Matrix) -> int:
    """How many triples no column answers."""
    questions = [Comparison(Kind.TWO_OF_THREE, triple) for triple in combinations(range(len(truth)), 3)]
    return sum(not valid_columns(truth, question).any() for question in questions)


def random_tree(leaves: list[int], degree: int, rng: np.random.Generator) -> list[list[int]]:
    """The features of a random tree with at most `degree` children per node, each as the list of its leaves."""
    cuts = sorted(rng.choice(range(1, len(leaves)), min(len(leaves), int(rng.integers(2, degree + 1))) - 1, False))
    parts = [leaves[a:b] for a, b in zip([0, *cuts], [*cuts, len(leaves)], strict=True)]
    inner = [part for part in parts if len(part) > 1]
    return inner + [feature for part in inner for feature in random_tree(part, degree, rng)]


@pytest.mark.parametrize("degree", [2, 3, 4])
def test_no_random_tree_has_more_unanswered_triples_than_the_enumerated_worst(degree: int) -> None:
    rng = np.random.default_rng(degree)
    for _ in range(40):
        n = int(rng.integers(degree + 1, 12))
        features = random_tree(list(range(n)), degree, rng)
        truth = np.array([[leaf in feature for feature in features] for leaf in range(n)], np.int8)
        assert nones(truth) <= most_nones(n, degree, star=False)


@pytest.mark.parametrize("degree", [3, 4, 5])
def test_the_worst_tree_is_a_lone_pair_beside_all_the_bare_leaves_that_are_allowed(degree: int) -> None:
    unanswered = nones(lone_feature(degree - 1).truth)
    assert most_nones(degree + 1, degree, star=False) == unanswered
    assert least_answered(degree, 12) == (1 - Fraction(unanswered, math.comb(degree + 1, 3)), degree + 1)


def test_asking_all_triples_of_a_homogeneous_crowd_is_what_the_quick_count_says() -> None:
    for seed in range(30):
        found = homogeneous_finds_all(5, 8, np.random.default_rng(seed))
        truth = independent_features(8, [0.5] * 5, np.random.default_rng(seed)).truth
        crowd = RankedCrowd(truth, np.arange(5))
        rng = np.random.default_rng(0)
        named = {crowd.answer(Comparison(Kind.TWO_OF_THREE, triple), rng) for triple in combinations(range(8), 3)}
        assert found == ({0, 1, 2, 3, 4} <= named)


def test_a_feature_settles_a_random_triple_alone_with_the_corrected_probability() -> None:
    drawn = np.random.default_rng(6).random((200_000, 3, 4)) < 0.3
    settles = drawn.sum(axis=1) == 2
    measured = (settles[:, 0] & (settles.sum(axis=1) == 1)).mean()
    assert measured == pytest.approx(alone(0.3, 4, factor=3.0), abs=0.003)
    assert abs(measured - alone(0.3, 4, factor=1.0)) > 0.02


@pytest.mark.parametrize("crowd", ["homogeneous", "heterogeneous"])
def test_adaptive_queries_have_the_exact_mean_with_and_without_the_shortcut(crowd: str) -> None:
    rng = np.random.default_rng(7)
    exact = expected_queries(settling(HALF, 5).tolist())
    shortcut = [adaptive_endless(HALF, 5, "triple", crowd, rng) for _ in range(1500)]
    drawn = [adaptive_drawn(HALF, 5, crowd, rng) for _ in range(150)]
    assert np.mean(shortcut) == pytest.approx(exact, abs=0.25)
    assert np.mean(drawn) == pytest.approx(exact, abs=0.8)


def test_collecting_with_unequal_chances_has_the_mean_of_inclusion_and_exclusion() -> None:
    q = settling("mixed", 6)
    named = [float(q[j] * np.prod(1 - q[:j])) for j in range(6)]
    signs = ((-1) ** (len(some) + 1) / sum(some) for size in range(1, 7) for some in combinations(named, size))
    assert expected_collecting(q) == pytest.approx(sum(signs), rel=1e-3)
    q = settling(HALF, 4)
    measured = [nonadaptive_endless(HALF, 4, "homogeneous", np.random.default_rng(i)) for i in range(400)]
    assert np.mean(measured) == pytest.approx(expected_collecting(q), rel=0.15)


def test_every_left_right_question_is_asked_once() -> None:
    questions = all_left_right(4)
    assert len(questions) == len(set(questions)) == 3**4
    assert guaranteed(left_right_world(2, 2).truth, [Comparison(Kind.LEFT_RIGHT, (0, 1), (2, 3))]) == [{0}]


def test_proposition_6_1_holds_with_zeros_on_the_right_and_not_with_ones() -> None:
    rng = np.random.default_rng(0)
    for left, right in product((1, 2, 3), (1, 2)):
        zeros = left_right_case(left, right, False, rng)
        assert zeros["complete"]
        assert zeros["smaller"] == 0
    assert left_right_case(3, 2, True, rng)["smaller"] > 0


def test_the_printed_hybrid_is_complete_with_specifists_and_misses_features_with_generalists() -> None:
    complete = {"specifist": 0, "generalist": 0}
    for seed in range(8):
        for crowd in complete:
            rng = np.random.default_rng(seed)
            world = leafy_tree(15, 2, rng)
            found, queries = PrintedHybrid(world.truth, world.crowd(crowd, 0), 30, rng).run()
            assert queries > 0
            complete[crowd] += len(found) == 15
    assert complete["specifist"] == 8
    assert complete["generalist"] < 8


@pytest.mark.parametrize(
    ("name", "result", "verdict"),
    [
        ("Proposition 4.1", False, Verdict.FAILS),
        ("Proposition 4.1", True, Verdict.HOLDS),
        ("Proposition 4.2", 1.0, Verdict.FAILS),
        ("Proposition 4.2", math.inf, Verdict.HOLDS),
        ("Proposition 4.3", (False, 1.0), Verdict.FAILS),
        ("Proposition 4.3", (True, 1.0), Verdict.HOLDS),
        ("Proposition 4.3", (True, 4.0), Verdict.FAILS),
        ("Lemma 4.4", False, Verdict.FAILS),
        ("Lemma 4.4", True, Verdict.HOLDS),
        ("Lemma 5.1", True, Verdict.FAILS),
        ("Lemma 5.1", False, Verdict.HOLDS),
        ("Lemma 5.2", False, Verdict.FAILS),
        ("Lemma 5.2", True, Verdict.HOLDS_AS_READ),
        ("Lemma 5.3", 1, Verdict.HOLDS),
        ("Lemma 5.3", 10**6, Verdict.FAILS),
        ("Lemma 5.4", 1, Verdict.FAILS),
        ("Lemma 5.4", 10**6, Verdict.HOLDS),
    ],
)
def test_the_verdict_follows_the_runs(name: str, result: object, verdict: Verdict) -> None:
    plan = TOPICS[name].plan(TRIAL, 0)
    tested = [(trials, [result] * 80) for trials in plan]  # so many that the interval is narrow
    assert TOPICS[name].judge(TRIAL, tested).verdict is verdict


def test_one_run_that_takes_another_number_of_queries_fails_proposition_4_1() -> None:
    topic = TOPICS["Proposition 4.1"]
    tested = [(trials, [True]) for trials in topic.plan(TRIAL, 0)]
    tested[3] = (tested[3][0], [False])
    assert topic.judge(TRIAL, tested).verdict is Verdict.FAILS


def test_a_construction_that_a_smaller_question_solves_fails_proposition_6_1() -> None:
    topic = TOPICS["Proposition 6.1"]
    (first, (case,)), *others = run_trials(topic.plan(TRIAL, 0), None)
    assert topic.judge(TRIAL, [(first, [case]), *others]).verdict is Verdict.HOLDS_AS_READ
    assert topic.judge(TRIAL, [(first, [case | {"smaller": 1}]), *others]).verdict is Verdict.FAILS
