from __future__ import annotations

import numpy as np
import pytest

from benchmarks.worlds import independent_features
from discovery import valid_columns
from discovery.questions import UNKNOWN, Comparison, Kind, Labels
from discovery.strategies.hypothetical import CHANCE, HypotheticalFeatures, answers

SIZE = {Kind.TWO_OF_THREE: 3, Kind.PAIR: 2, Kind.TAG: 1}
EVERYONE = np.arange(40)


def some(kind: Kind, count: int = 200, seed: int = 5) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.array([rng.choice(40, SIZE[kind], replace=False) for _ in range(count)])


def tell(
    model: HypotheticalFeatures, kind: Kind, labels: Labels | None, *, counts: bool = False, seed: int = 1
) -> None:
    """A random question of that kind was asked, and brought this feature or NONE."""
    sample = model.sample(EVERYONE)
    places = some(kind, 1, seed)
    number = model.record_question(sample, kind, places[0], float(sample.promise(kind, places)[1][0]))
    new = [] if labels is None else [labels]
    model.record_answer(number, len(new), new, [counts] * len(new))


def labels_of(share: float, seed: int) -> Labels:
    return (np.random.default_rng([seed, 7]).permutation(40) < share * 40).astype(np.int8)


def mean_promise(model: HypotheticalFeatures, kind: Kind) -> float:
    return float(model.sample(EVERYONE).promise(kind, some(kind))[0].mean())


@pytest.mark.parametrize("kind", list(CHANCE))
def test_a_question_is_answered_by_what_a_crowd_would_name(kind: Kind) -> None:
    truth = independent_features(40, [0.4] * 30, np.random.default_rng(0)).truth
    for examples in some(kind, 20):
        fits = valid_columns(truth, Comparison(kind, tuple(examples.tolist())))
        assert (answers(kind, truth[examples][None] == 1)[0] == fits).all()


@pytest.mark.parametrize("kind", list(CHANCE))
def test_before_anything_is_known_a_share_answers_as_often_as_chance_has_it(kind: Kind) -> None:
    sample = HypotheticalFeatures(40, np.random.default_rng(0)).sample(EVERYONE)
    hit = answers(kind, sample.has[some(kind)]).mean(axis=0)
    middling = np.abs(sample.shares - 0.3) < 0.05
    assert hit[middling].mean() == pytest.approx(float(CHANCE[kind](np.array(0.3))), rel=0.15)


def test_none_rules_out_what_would_have_answered() -> None:
    model = HypotheticalFeatures(40, np.random.default_rng(0))
    before = model.sample(EVERYONE)
    places = some(Kind.TWO_OF_THREE, 1)
    mass = float(before.promise(Kind.TWO_OF_THREE, places)[1][0])
    model.record_answer(model.record_question(before, Kind.TWO_OF_THREE, places[0], mass), 0, [], [])
    assert model.sample(EVERYONE).promise(Kind.TWO_OF_THREE, places)[1][0] < 0.05 * mass


def test_two_of_three_promises_more_once_rare_features_turn_up() -> None:
    model = HypotheticalFeatures(40, np.random.default_rng(0))
    for seed in range(8):
        tell(model, Kind.PAIR, labels_of(0.05, seed), seed=seed)
        tell(model, Kind.TWO_OF_THREE, labels_of(0.3, seed), counts=True, seed=seed)
    assert mean_promise(model, Kind.TWO_OF_THREE) > 1.1 * mean_promise(model, Kind.PAIR)


def test_pairs_promise_more_once_two_of_three_finds_nothing() -> None:
    model = HypotheticalFeatures(40, np.random.default_rng(0))
    for seed in range(8):
        tell(model, Kind.PAIR, labels_of(0.15, seed), counts=True, seed=seed)
        tell(model, Kind.TWO_OF_THREE, None, seed=seed)
    assert mean_promise(model, Kind.PAIR) > 1.5 * mean_promise(model, Kind.TWO_OF_THREE)


def test_a_triple_that_a_known_feature_settles_promises_less() -> None:
    """Near-duplicates of the known feature would answer it, and they do not count."""
    model = HypotheticalFeatures(40, np.random.default_rng(0))
    half = (EVERYONE < 20).astype(np.int8)
    for seed in range(6):
        tell(model, Kind.TWO_OF_THREE, half, counts=seed == 0, seed=seed)
    settled, open_triples = np.array([[0, 1, 30], [5, 9, 35]]), np.array([[0, 30, 31], [2, 8, 9]])
    promise = model.sample(EVERYONE).promise
    assert promise(Kind.TWO_OF_THREE, settled)[0].max() < 0.7 * promise(Kind.TWO_OF_THREE, open_triples)[0].min()


def test_examples_that_share_known_features_are_thought_to_share_others() -> None:
    model = HypotheticalFeatures(40, np.random.default_rng(0))
    for seed in range(10):  # the first four examples have all in common
        labels = labels_of(0.3, seed)
        labels[:4] = labels[0]
        tell(model, Kind.TWO_OF_THREE, labels, counts=True, seed=seed)
    has = model.sample(EVERYONE).has
    assert (has[0] == has[1]).mean() > (has[0] == has[20]).mean() + 0.1


def test_missing_labels_are_borne() -> None:
    model = HypotheticalFeatures(40, np.random.default_rng(0))
    for seed in range(5):
        labels = labels_of(0.4, seed)
        labels[seed::5] = UNKNOWN
        tell(model, Kind.TWO_OF_THREE, labels, counts=True, seed=seed)
    for kind in CHANCE:
        assert 0 < mean_promise(model, kind) < 1


def test_a_part_of_the_examples_is_enough() -> None:
    model = HypotheticalFeatures(40, np.random.default_rng(0))
    tell(model, Kind.PAIR, labels_of(0.4, 0), counts=True)
    pool = np.array([7, 3, 30, 12, 25, 39, 1, 18])
    promise, _ = model.sample(pool).promise(Kind.PAIR, np.array([[0, 1], [2, 7]]))
    assert ((promise > 0) & (promise < 1)).all()
