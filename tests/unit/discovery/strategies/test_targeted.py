from __future__ import annotations

import numpy as np
import pytest

from benchmarks.rehearsal import rehearse
from twothirds.discovery import valid_columns
from twothirds.discovery.questions import UNKNOWN, Comparison, Kind, StrategyError, differs_clearly
from twothirds.discovery.simulation.crowds import WeightedCrowd, make_crowd
from twothirds.discovery.strategies import make_strategy
from twothirds.discovery.strategies.targeted import Targeted, target_outputs


def some_truth(seed: int, n: int = 60, columns: int = 20) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.random((n, columns)) < rng.uniform(0.2, 0.8, columns)).astype(np.int8)


def targeted(values: np.ndarray, seed: int = 0, classes: int = 2) -> Targeted:
    rng = np.random.default_rng(seed)
    return Targeted(make_strategy("auto", len(values), rng), target_outputs(values, classes), rng)


def test_held_out_examples_are_in_no_group_whatever_is_learned() -> None:
    truth = some_truth(2)
    values = truth[:, 3].astype(np.intp)
    values[:20] = -1
    strategy = targeted(values)
    history = rehearse(strategy, make_crowd("salience", truth, 0), truth, 30, np.random.default_rng(3))
    groups = [question for question in history.questions if question.kind is Kind.GROUPS]
    assert len(groups) >= 10
    for question in groups:
        assert min(*question.examples, *question.without) >= 20
        assert (values[list(question.examples)] == 1).all()
        assert (values[list(question.without)] == 0).all()
        assert len(question.examples) == len(question.without) <= 8


def test_the_attribute_behind_the_target_is_found_sooner_than_by_the_unguided_strategy() -> None:
    guided: list[int] = []
    unguided: list[int] = []
    for seed in range(8):
        truth = some_truth(seed, 80, 60)
        crowd = make_crowd("salience", truth, seed)
        assert isinstance(crowd, WeightedCrowd)
        column = int(np.argmin(crowd.weight))  # the one that comes to mind last
        values = truth[:, column].astype(np.intp)
        for strategy, counts in (
            (targeted(values, seed), guided),
            (make_strategy("auto", 80, np.random.default_rng(seed)), unguided),
        ):
            history = rehearse(strategy, crowd, truth, 60, np.random.default_rng(seed))
            counts.append(history.answers.index(column) if column in history.answers else 60)
    assert np.mean(guided) < 0.6 * np.mean(unguided)


def test_what_is_predicted_well_is_hardly_asked_about() -> None:
    truth = some_truth(4, 100, 6)
    values = (truth[:, 0] | truth[:, 1]).astype(np.intp)
    strategy = targeted(values)
    strategy.know("first", truth[:, 0])
    asked = [strategy.next_questions(1)[0] for _ in range(40)]
    left = np.concatenate([question.examples for question in asked if question.kind is Kind.GROUPS])
    explained = truth[values == 1, 0].mean()  # of the positives, by the known feature
    assert truth[left, 0].mean() < 0.4 * explained


def test_wrong_values_do_not_fill_the_groups() -> None:
    truth = some_truth(6, 120, 2)
    wrong = np.zeros(120, np.bool_)
    wrong[np.random.default_rng(6).choice(120, 30, replace=False)] = True
    strategy = targeted((truth[:, 0] ^ wrong).astype(np.intp))
    strategy.know("first", truth[:, 0])  # only the wrong values are predicted badly
    question = strategy.next_questions(1)[0]
    shown = [*question.examples, *question.without]
    assert wrong.mean() < wrong[shown].mean() < 0.8


def test_every_class_and_numbers_are_targets() -> None:
    rng = np.random.default_rng(5)
    classes = rng.integers(0, 4, 90)
    asked = [targeted(classes, seed, classes=4).next_questions(1)[0] for seed in range(20)]
    assert {frozenset(classes[list(question.examples)]) for question in asked} == {
        frozenset({place}) for place in range(4)
    }
    numbers = rng.normal(10, 5, 90)
    question = targeted(numbers, classes=0).next_questions(1)[0]
    assert numbers[list(question.examples)].min() > numbers[list(question.without)].max()


def test_a_target_with_one_value_is_refused() -> None:
    with pytest.raises(StrategyError, match="one value only"):
        targeted(np.ones(30, np.intp))


def test_an_answer_differs_by_four_of_eight_either_way() -> None:
    truth = np.zeros((16, 4), np.int8)
    truth[:4, 0] = truth[8:12, 1] = truth[:3, 2] = 1
    truth[:8, 3] = 1
    truth[12, 3] = UNKNOWN
    question = Comparison(Kind.GROUPS, tuple(range(8)), tuple(range(8, 16)))
    assert valid_columns(truth, question).tolist() == [True, True, False, False]
    assert differs_clearly(truth[:8] == 1, truth[8:] == 1).tolist() == [True, True, False, True]


@pytest.mark.parametrize("name", ["adaptive-triple", "adaptive-pair", "adaptive-hybrid", "auto"])
def test_a_feature_that_is_known_beforehand_settles_what_it_tells_apart(name: str) -> None:
    labels = np.array([1] * 4 + [0] * 4, np.int8)
    strategy = make_strategy(name, 8, np.random.default_rng(0))
    before = strategy.unresolved
    strategy.know("half", labels)
    strategy.know("half", 1 - labels)  # known by that name already
    if name != "adaptive-hybrid":
        assert strategy.unresolved < before
    other = make_strategy(name, 8, np.random.default_rng(0))
    other.know("half", labels)
    assert strategy.next_questions(3) == other.next_questions(3)
