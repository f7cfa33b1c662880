from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import poisson

from benchmarks.rehearsal import Rehearsal, rehearse
from benchmarks.worlds import World, binary_tree, independent_features, skewed_world
from discovery.questions import Comparison, Kind, Labels
from discovery.simulation.crowds import Matrix, make_crowd
from discovery.strategies import make_strategy
from discovery.strategies.auto import Auto
from discovery.strategies.hypothetical import FEATURE_COUNTS, HypotheticalFeatures, _p_at_least
from tests.support.noisy_labels import Labelling


def found(name: str, world: World, seed: int, queries: int, **options: Any) -> int:
    strategy = make_strategy(name, len(world.truth), np.random.default_rng([seed, 1]), **options)
    crowd = world.crowd("salience", seed)
    return rehearse(strategy, crowd, world.truth, queries, np.random.default_rng([seed, 2])).interesting_distinct()


def run(truth: Matrix, seed: int, queries: int = 40, batch: int = 1, **options: Any) -> Rehearsal:
    strategy = Auto(len(truth), np.random.default_rng(seed), **options)
    crowd = make_crowd("salience", truth, seed)
    return rehearse(strategy, crowd, truth, queries, np.random.default_rng(seed), batch=batch)


def round_of(strategy: Auto, world: World, seed: int, *, hears: bool) -> tuple[list[Comparison], set[int]]:
    """Twenty questions of a round, each chosen when those before it are answered, and the columns that were named."""
    crowd, rng = world.crowd("salience", seed), np.random.default_rng([seed, 2])
    asked, known = list[Comparison](), dict[int, None]()
    for _ in range(20):
        [question] = strategy.next_questions(1)
        columns = crowd.answers(question, rng, tuple(known), 3)
        known |= dict.fromkeys(columns)
        if hears:
            strategy.hear(question, len(columns))
        asked.append(question)
    return asked, set(known)


class HearsFirst(Auto):
    """Hears of every answer before it learns it."""

    def learn(self, question: Comparison, features: Sequence[str], labels: Sequence[Labels]) -> None:
        self.hear(question, len(features))
        super().learn(question, features, labels)


def kinds(history: Rehearsal) -> dict[Kind, int]:
    return {kind: sum(question.kind is kind for question in history.questions) for kind in Kind}


def test_every_question_asks_for_another_feature_and_none_is_found_twice() -> None:
    history = run(independent_features(40, [0.3] * 60, np.random.default_rng(0)).truth, 0)
    assert all(question.other_than_known for question in history.questions)
    assert len(history.columns) == history.queries - history.nones


def test_where_features_are_shared_it_keeps_to_two_of_three() -> None:
    truth = skewed_world("faces", np.random.default_rng(1)).truth
    assert kinds(run(truth, 1, 35))[Kind.TWO_OF_THREE] >= 25


def test_where_examples_share_little_it_turns_to_pairs_and_tags() -> None:
    truth = independent_features(60, [0.11] * 20, np.random.default_rng(2)).truth
    asked = kinds(run(truth, 2, 35))
    assert asked[Kind.PAIR] + asked[Kind.TAG] > 18


def test_answers_without_labels_are_enough_to_turn_to_pairs_and_tags() -> None:
    """The features of a round are labelled at its end: until then the strategy hears how many were named."""
    heard = deaf = 0
    for seed in range(4):
        world = independent_features(60, [0.11] * 30, np.random.default_rng([seed, 2]))
        strategies = [Auto(60, np.random.default_rng([seed, 1]), most=3) for _ in range(2)]
        asked, found_hearing = round_of(strategies[0], world, seed, hears=True)
        heard += len(found_hearing)
        assert sum(question.kind is Kind.TWO_OF_THREE for question in asked) < 12
        deaf += len(round_of(strategies[1], world, seed, hears=False)[1])
    assert heard > 1.2 * deaf


def test_an_answer_that_is_learned_at_once_may_as_well_be_heard_first() -> None:
    truth = skewed_world("signs", np.random.default_rng(3)).truth
    asked = []
    for kind in (HearsFirst, Auto):
        strategy, crowd = kind(len(truth), np.random.default_rng(1), most=3), make_crowd("salience", truth, 1)
        history = rehearse(strategy, crowd, truth, 15, np.random.default_rng(1), most=3)
        asked.append(history.questions)
    assert asked[0] == asked[1]


def test_on_sparse_data_it_finds_more_than_either_of_the_papers_strategies() -> None:
    totals = {"auto": 0, "adaptive-triple": 0, "adaptive-pair": 0}
    for seed in range(6):
        world = independent_features(60, [0.12] * 40, np.random.default_rng([seed, 3]))
        for name in totals:
            totals[name] += found(name, world, seed, 35)
    assert totals["auto"] > 1.05 * max(totals["adaptive-triple"], totals["adaptive-pair"])


@pytest.mark.slow
@pytest.mark.parametrize("like", ["signs", "faces", "products"])
def test_on_skewed_worlds_the_strategies_differ_as_in_table_1_and_auto_is_ahead_of_them(like: str) -> None:
    short: Counter[str] = Counter()
    long: Counter[str] = Counter()
    for seed in range(24):
        world = skewed_world(like, np.random.default_rng([seed, 3]))
        for name in ("auto", "adaptive-triple", "random-triple", "adaptive-pair", "tagging"):
            strategy = make_strategy(name, 100, np.random.default_rng([seed, 1]))
            history = rehearse(
                strategy, world.crowd("salience", seed), world.truth, 100, np.random.default_rng([seed, 2])
            )
            short[name] += history.interesting_distinct(35)
            long[name] += history.interesting_distinct()
    assert short["auto"] >= short["adaptive-triple"]
    assert long["auto"] >= 1.3 * long["adaptive-triple"]
    assert short["adaptive-triple"] >= 2 * short["random-triple"]
    assert short["adaptive-triple"] >= 1.5 * short["adaptive-pair"]
    assert short["adaptive-triple"] >= 3 * short["tagging"]


def test_on_binary_trees_it_is_as_good_as_adaptive_triple() -> None:
    totals = {"auto": 0, "adaptive-triple": 0}
    for seed in range(6):
        world = binary_tree(60, np.random.default_rng([seed, 3]))
        for name in totals:
            totals[name] += found(name, world, seed, 35)
    assert totals["auto"] >= 0.95 * totals["adaptive-triple"]


@pytest.mark.parametrize("batch", [1, 5])
@pytest.mark.parametrize("labelling", [Labelling(), Labelling(flip=0.2), Labelling(missing=0.3)])
def test_rounds_noise_and_missing_labels_are_borne(batch: int, labelling: Labelling) -> None:
    truth = independent_features(30, [0.3] * 40, np.random.default_rng(4)).truth
    strategy = Auto(30, np.random.default_rng(4))
    crowd = make_crowd("salience", truth, 4)
    history = rehearse(strategy, crowd, truth, 40, np.random.default_rng(4), batch=batch, labelling=labelling)
    assert history.queries == 40
    assert len(set(history.questions)) == 40
    assert history.interesting_distinct() >= 20


def test_a_feature_found_twice_in_one_round_does_not_speak_against_the_second_question() -> None:
    labels = np.array([1, 1, 1, 0, 0, 0, 0, 0], dtype=np.int8)

    def recorded(second: str | None) -> list[tuple[float, float]]:
        strategy = Auto(8, np.random.default_rng(0))
        first, other = strategy.next_questions(2)
        strategy.learn(first, ["red"], [labels])
        if second is not None:
            strategy.learn(other, [second], [labels])
        return [(record.good, record.asked) for record in strategy._records.values()]

    assert recorded("red") == recorded(None)
    assert recorded("red") != recorded("blue")


def test_every_comparison_of_three_examples_is_asked_before_it_ends() -> None:
    strategy = Auto(3, np.random.default_rng(0))
    asked: list[Comparison] = []
    while questions := strategy.next_questions(1):
        asked += questions
        strategy.learn(questions[0], [], [])
    assert sorted(len(question.examples) for question in asked) == [1, 1, 1, 2, 2, 2, 3]


def test_three_features_a_question_find_more_with_the_same_questions() -> None:
    totals = {1: 0, 3: 0}
    for seed in range(3):
        world = skewed_world("faces", np.random.default_rng([seed, 3]))
        for most in totals:
            strategy = Auto(100, np.random.default_rng([seed, 1]), most=most)
            crowd = world.crowd("salience", seed)
            history = rehearse(strategy, crowd, world.truth, 15, np.random.default_rng([seed, 2]), most=most)
            totals[most] += history.interesting_distinct()
            assert max(map(len, history.named)) == most
    assert totals[3] > 1.6 * totals[1]


def test_an_answer_shorter_than_it_might_be_says_that_nothing_else_is_there() -> None:
    """As NONE does, of a question that may be answered with several features."""
    rng = np.random.default_rng(0)

    def features_left(named: int) -> float:
        model = HypotheticalFeatures(12, np.random.default_rng(1), most=3)
        sample = model.sample(np.arange(12))
        for first in range(6):
            places = np.array([first, first + 1, first + 2])
            number = model.record_question(sample, Kind.TWO_OF_THREE, places, 0.1)
            labels = [(rng.random(12) < 0.5).astype(np.int8) for _ in range(named)]
            model.record_answer(number, named, labels, [True] * named)
        return float(FEATURE_COUNTS @ model.sample(np.arange(12)).p_count)

    left = [features_left(named) for named in range(4)]
    assert left == sorted(left)
    assert left[3] > 1.5 * left[2]


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 6), st.floats(1e-6, 60))
def test_the_chances_of_several_features_are_those_of_a_poisson_number(count: int, mean: float) -> None:
    assert _p_at_least(count, np.array([mean]))[0] == pytest.approx(poisson.sf(count - 1, mean), rel=2e-3, abs=1e-15)
