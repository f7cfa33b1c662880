"""The default strategy: questions grow where answers are short, and are chosen by what known features leave open."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from benchmarks.rehearsal import rehearse
from benchmarks.worlds import independent_features
from twothirds.discovery.questions import Comparison, Kind, Labels
from twothirds.discovery.simulation.crowds import make_crowd
from twothirds.discovery.strategies import make_strategy
from twothirds.discovery.strategies.growing import WIDEST, Growing


def growing(n: int = 40, **options: Any) -> Growing:
    return Growing(n, np.random.default_rng(0), **options)


def asked(strategy: Growing) -> Comparison:
    [question] = strategy.next_questions(1)
    return question


def column(n: int, seed: int, share: float = 0.5) -> Labels:
    return (np.random.default_rng(seed).random(n) < share).astype(np.int8)


def test_a_short_answer_makes_the_next_question_show_one_more_up_to_the_widest() -> None:
    strategy, sizes = growing(), []
    for _ in range(9):
        question = asked(strategy)
        sizes.append(len(question.examples))
        assert question.kind is (Kind.TWO_OF_THREE if len(question.examples) == 3 else Kind.SHARED)
        assert question.other_than_known
        strategy.learn(question, [], [])
    assert sizes == [3, 4, 5, 6, 7, 8, 8, 8, 8]
    assert max(sizes) == WIDEST


def test_a_full_answer_leaves_the_size_as_it_is_and_known_names_do_not_fill_it() -> None:
    strategy = growing(most=2)
    for turn in range(3):
        question = asked(strategy)
        names = [f"feature {turn} {place}" for place in range(2)]
        strategy.learn(question, names, [column(40, 2 * turn + place) for place in range(2)])
        assert len(asked(strategy).examples) == 3
    question = asked(strategy)
    strategy.learn(question, ["feature 0 0", "new"], [column(40, 0), column(40, 9)])
    assert len(asked(strategy).examples) == 4


def test_where_three_are_all_that_may_be_shown_it_asks_for_one_or_two_of_them() -> None:
    strategy = growing(widest=3)
    first = asked(strategy)
    strategy.learn(first, ["new"], [column(40, 1)])
    second = asked(strategy)
    strategy.learn(second, [], [])
    third = asked(strategy)
    strategy.learn(third, [], [])
    assert [question.kind for question in (first, second, third, asked(strategy))] == [
        *[Kind.TWO_OF_THREE] * 2,
        *[Kind.ONE_OR_TWO] * 2,
    ]
    assert {len(question.examples) for question in (first, second, third)} == {3}


def test_an_answer_is_heard_before_its_labels_are_there_and_only_once() -> None:
    strategy = growing()
    question = asked(strategy)
    strategy.hear(question, full=False)
    assert len(asked(strategy).examples) == 4
    strategy.learn(question, [], [])
    assert len(asked(strategy).examples) == 4
    stale = growing()
    waiting = stale.next_questions(3)
    for question in waiting:
        stale.hear(question, full=False)
    assert len(asked(stale).examples) == 4, "answers of one round say the same thing once"


def test_it_asks_what_the_fewest_known_features_settle() -> None:
    n = 60
    strategy, blind = growing(n), growing(n)
    features = [column(n, seed) for seed in range(12)]
    for place, labels in enumerate(features):
        strategy.know(f"feature {place}", labels)

    def settled(asker: Growing) -> float:
        questions = asker.next_questions(60)
        return float(np.mean([sum(labels[list(q.examples)].sum() == 2 for labels in features) for q in questions]))

    assert settled(strategy) < 0.7 * settled(blind)


def test_without_labels_every_example_is_shown_about_equally_often() -> None:
    shown = np.zeros(40)
    for question in growing().next_questions(80):
        shown[list(question.examples)] += 1
    assert shown.sum() == 240
    assert shown.min() >= 4
    assert shown.max() <= 8


def test_looking_at_what_is_unresolved_changes_no_question() -> None:
    plain, watched = growing(), growing()
    for seed in range(5):
        assert 0 < watched.unresolved <= 1
        question = asked(plain)
        assert asked(watched) == question
        for strategy in (plain, watched):
            strategy.learn(question, [f"feature {seed}"], [column(40, seed)])
    assert watched.unresolved == plain.unresolved < 0.5


@pytest.mark.parametrize("widest", [3, 8])
def test_every_set_of_a_few_examples_is_asked_once_and_then_nothing(widest: int) -> None:
    strategy = growing(5, widest=widest)
    questions = strategy.next_questions(10_000)
    sizes = range(3, min(widest, 5) + 1)
    assert sorted(q.examples for q in questions) == sorted(s for size in sizes for s in combinations(range(5), size))
    assert strategy.next_questions(1) == []


def test_it_finds_a_feature_with_every_question_while_there_are_many_left() -> None:
    world = independent_features(100, [0.5] * 60, np.random.default_rng(0))
    crowd, rng = make_crowd("salience", world.truth, 0), np.random.default_rng(1)
    histories = {
        name: rehearse(make_strategy(name, 100, np.random.default_rng(0)), crowd, world.truth, 35, rng)
        for name in ("auto", "adaptive-triple")
    }
    assert histories["auto"].interesting_distinct() == 35
    assert histories["adaptive-triple"].interesting_distinct() < 30
