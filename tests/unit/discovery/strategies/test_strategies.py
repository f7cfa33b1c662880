from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest

from benchmarks.rehearsal import rehearse
from benchmarks.worlds import BINARY_SHAPES, binary_tree, independent_features
from tests.support.noisy_labels import Labelling
from twothirds.discovery.questions import UNKNOWN, Comparison, Kind, Labels, StrategyError
from twothirds.discovery.simulation.crowds import Matrix, make_crowd
from twothirds.discovery.strategies import STRATEGIES, make_strategy
from twothirds.discovery.strategies.nonadaptive import triple_of_rank


def some_labels(n: int, rng: np.random.Generator, missing: float = 0.0) -> Labels:
    labels = (rng.random(n) < 0.4).astype(np.int8)
    labels[rng.random(n) < missing] = UNKNOWN
    return labels


def settled(truth: Matrix, question: Comparison) -> bool:
    """Some column is known on all its examples and true of all but one of them."""
    rows = truth[list(question.examples)]
    return bool(((rows != UNKNOWN).all(axis=0) & (rows.sum(axis=0) == len(rows) - 1)).any())


@pytest.mark.parametrize("shape", BINARY_SHAPES)
@pytest.mark.parametrize("crowd", ["generalist", "specifist", "homogeneous", "heterogeneous"])
def test_a_proper_binary_tree_of_m_features_takes_exactly_m_queries_and_no_none(shape: str, crowd: str) -> None:
    """Proposition 4.1."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        features = int(rng.integers(1, 40))
        world = binary_tree(features, rng, shape)
        strategy = make_strategy("adaptive-triple", features + 2, rng)
        history = rehearse(strategy, world.crowd(crowd, seed), world.truth, 10 * features, rng)
        assert history.queries == features
        assert history.nones == 0
        assert sorted(history.columns) == list(range(features))
        assert history.unresolved == 0.0


@pytest.mark.parametrize("name", ["adaptive-triple", "adaptive-pair"])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_an_adaptive_strategy_asks_every_question_that_nothing_settles_and_no_other(name: str, missing: float) -> None:
    n, rng = 9, np.random.default_rng(4)
    strategy = make_strategy(name, n, rng)
    known: list[Labels] = []
    asked: set[Comparison] = set()
    kind, size = (Kind.TWO_OF_THREE, 3) if name == "adaptive-triple" else (Kind.PAIR, 2)
    for turn in range(1000):
        questions = strategy.next_questions(2)
        if not questions:
            break
        for question in questions:
            assert question not in asked
            assert question.kind is kind
            assert not known or not settled(np.array(known).T, question)
            asked.add(question)
        for question in questions:
            if turn in (3, 6):
                known.append(some_labels(n, rng, missing))
                strategy.learn(question, [f"feature {len(known)}"], [known[-1]])
            else:
                strategy.learn(question, [], [])
    everything = {Comparison(kind, examples) for examples in combinations(range(n), size)}
    assert {q for q in everything - asked if not settled(np.array(known).T, q)} == set()
    assert strategy.unresolved == 0.0


def test_beyond_exhaustion_it_asks_for_another_feature_where_the_fewest_settle_the_question() -> None:
    rng = np.random.default_rng(1)
    truth = independent_features(12, [0.5] * 30, rng).truth
    crowd = make_crowd("salience", truth, 1)
    paper = rehearse(make_strategy("adaptive-triple", 12, rng), crowd, truth, 60, rng)
    strategy = make_strategy("adaptive-triple", 12, rng, beyond=True)
    beyond = rehearse(strategy, crowd, truth, 60, rng)
    assert paper.unresolved == beyond.unresolved == 0.0
    assert len(beyond.columns) > len(paper.columns)
    assert not any(question.other_than_known for question in paper.questions)
    exhausted = beyond.questions.index(next(q for q in beyond.questions if q.other_than_known))
    assert all(question.other_than_known for question in beyond.questions[exhausted:])
    assert len(set(beyond.columns)) == sum(column is not None for column in beyond.answers)


def test_beyond_ends_when_every_comparison_was_asked() -> None:
    strategy = make_strategy("adaptive-triple", 4, np.random.default_rng(1), beyond=True)
    questions = strategy.next_questions(1)
    strategy.learn(questions[0], ["settles them all"], [np.array([1, 1, 0, 0], dtype=np.int8)])
    for _ in range(3):
        questions += strategy.next_questions(1)
    assert sorted(question.examples for question in questions) == list(combinations(range(4), 3))
    assert strategy.next_questions(1) == []


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_every_strategy_gives_distinct_questions_and_the_same_ones_for_the_same_seed(name: str) -> None:
    rng = np.random.default_rng(3)
    truth = independent_features(30, [0.3] * 40, rng).truth
    crowd = make_crowd("salience", truth, 3)
    noise = Labelling(flip=0.1, missing=0.1)

    def run(seed: int) -> list[Comparison]:
        strategy = make_strategy(name, 30, np.random.default_rng(seed))
        answers = np.random.default_rng(9)
        return rehearse(strategy, crowd, truth, 30, answers, batch=4, labelling=noise).questions

    questions = run(1)
    assert len(set(questions)) == len(questions) > 0
    assert questions == run(1)
    assert questions != run(2)


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_every_strategy_ends_on_three_examples_whatever_it_hears(name: str) -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        strategy = make_strategy(name, 3, rng)
        for _ in range(500):
            questions = strategy.next_questions(3)
            if not questions:
                break
            for question in questions:
                if rng.random() < 0.5:
                    strategy.learn(question, [f"feature {rng.integers(9)}"], [some_labels(3, rng, 0.2)])
                else:
                    strategy.learn(question, [], [])
        else:
            pytest.fail(f"{name} goes on for ever")


@pytest.mark.parametrize("n", range(3, 9))
def test_random_triple_asks_every_triple_once_then_stops(n: int) -> None:
    strategy = make_strategy("random-triple", n, np.random.default_rng(n))
    assert strategy.unresolved == 1.0
    questions = strategy.next_questions(10_000)
    assert sorted(q.examples for q in questions) == list(combinations(range(n), 3))
    assert strategy.next_questions(1) == []
    assert strategy.unresolved == 0.0


def test_random_triples_are_uniform() -> None:
    counts = dict.fromkeys(combinations(range(5), 3), 0)
    for seed in range(1500):
        for question in make_strategy("random-triple", 5, np.random.default_rng(seed)).next_questions(2):
            counts[question.examples] += 1  # type: ignore[index]
    expected = 300
    assert sum((count - expected) ** 2 / expected for count in counts.values()) < 27.9  # chi-square, 9 degrees


def test_ranks_and_triples_correspond_one_to_one() -> None:
    assert {triple_of_rank(rank) for rank in range(comb(20, 3))} == set(combinations(range(20), 3))
    a, b, c = triple_of_rank(comb(1_000_000, 3) - 1)
    assert (a, b, c) == (999_997, 999_998, 999_999)


def test_tagging_shows_each_example_once() -> None:
    strategy = make_strategy("tagging", 5, np.random.default_rng(0))
    questions = strategy.next_questions(3) + strategy.next_questions(9)
    assert sorted(q.examples for q in questions) == [(0,), (1,), (2,), (3,), (4,)]
    assert {q.kind for q in questions} == {Kind.TAG}


@pytest.mark.parametrize(
    ("name", "n", "options", "message"),
    [
        ("adaptive-triple", 2, {}, "two-of-three questions need at least 3 examples, and there are 2"),
        ("random-triple", 0, {}, "two-of-three questions need at least 3 examples"),
        ("adaptive-pair", 1, {}, "pair questions need at least 2 examples, and there are 1"),
        ("tagging", 0, {}, "tagging needs at least 1 example"),
        ("clever", 9, {}, "unknown strategy 'clever': choose one of"),
        ("auto", 2, {}, "auto needs at least 3 examples, and there are 2"),
        ("auto", 9, {"widest": 2}, "auto shows at least 3 examples, and 2 are allowed"),
        ("adaptive-triple", 9, {"theta": 3}, "strategy 'adaptive-triple' has no option 'theta': it takes beyond"),
        ("tagging", 9, {"theta": 3}, "strategy 'tagging' has no option 'theta': it takes none"),
        ("auto", 9, {"beyond": True}, "strategy 'auto' has no option 'beyond': it takes most, widest"),
    ],
)
def test_the_impossible_is_refused_in_one_line(name: str, n: int, options: dict[str, int], message: str) -> None:
    with pytest.raises(StrategyError, match=message) as error:
        make_strategy(name, n, np.random.default_rng(0), **options)
    assert "\n" not in str(error.value)
