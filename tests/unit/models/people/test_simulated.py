from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.asking import ask, bounds
from tests.support.made import crowd_of, random_truth, texts
from twothirds.discovery.questions import Kind
from twothirds.models.oracle import Compare, Feature, Label, OracleError, Verdict
from twothirds.models.people.simulated import Behaviour

TRUTH = random_truth(12, 8)
EXAMPLES = texts(12)


def labels_of(oracle_options: dict[str, Any], voters: int = 40) -> list[Verdict]:
    oracle = crowd_of(TRUTH, **oracle_options)
    feature = Feature("feature a")
    questions = [Label(feature, example, voter) for example in EXAMPLES for voter in range(voters)]
    return [answer.verdict for answer in ask(oracle, questions)]


def test_a_label_is_the_truth_when_nobody_errs() -> None:
    oracle = crowd_of(TRUTH)
    answers = list(ask(oracle, [Label(Feature("feature a"), example) for example in EXAMPLES]))
    assert [answer.verdict is Verdict.YES for answer in answers] == (TRUTH[:, 0] == 1).tolist()


def test_a_comparison_names_a_feature_that_exactly_two_of_three_have() -> None:
    oracle = crowd_of(TRUTH)
    for a, b, c in [(0, 1, 2), (3, 4, 5), (6, 7, 8), (9, 10, 11)]:
        question = Compare(Kind.TWO_OF_THREE, (EXAMPLES[a], EXAMPLES[b], EXAMPLES[c]))
        (answer,) = ask(oracle, [question])
        columns = {f"feature {chr(97 + column)}": column for column in range(8)}
        if answer.feature is None:
            assert not (TRUTH[[a, b, c]].sum(axis=0) == 2).any()
        else:
            assert TRUTH[[a, b, c], columns[answer.feature.name]].sum() == 2
            assert len(answer.shown) == 2


def test_answers_do_not_depend_on_the_order_of_asking() -> None:
    questions = [Label(Feature("feature b"), example, voter) for example in EXAMPLES for voter in range(3)]
    one = {a.question: a.verdict for a in ask(crowd_of(TRUTH, flip=0.3), questions)}
    other = {a.question: a.verdict for a in ask(crowd_of(TRUTH, flip=0.3), reversed(questions))}
    assert one == other
    assert one != {a.question: a.verdict for a in ask(crowd_of(TRUTH, flip=0.3, seed=1), questions)}


def test_threads_change_nothing_but_the_order() -> None:
    questions = [Label(Feature("feature c"), example, voter) for example in EXAMPLES for voter in range(3)]
    one = {a.question: a.verdict for a in ask(crowd_of(TRUTH, flip=0.3), questions)}
    late = {a.question: a.verdict for a in ask(crowd_of(TRUTH, flip=0.3, latency=0.001, width=8), iter(questions))}
    assert one == late


def test_labels_are_flipped_and_refused_at_the_given_rates() -> None:
    truth = [bool(value) for value in TRUTH[:, 0] for _ in range(40)]
    flipped = np.mean([(v is Verdict.YES) != t for v, t in zip(labels_of({"flip": 0.2}), truth, strict=True)])
    refused = np.mean([v is Verdict.REFUSED for v in labels_of({"refuse": 0.3})])
    assert abs(flipped - 0.2) < 0.06
    assert abs(refused - 0.3) < 0.07


def test_false_nones_and_wrong_features_come_at_the_given_rates() -> None:
    triples = [(a, b, c) for a in range(12) for b in range(a) for c in range(b)]
    questions = [Compare(Kind.TWO_OF_THREE, (EXAMPLES[a], EXAMPLES[b], EXAMPLES[c])) for a, b, c in triples]
    plain = [a.verdict for a in ask(crowd_of(TRUTH), questions)]
    nones = [a.verdict for a in ask(crowd_of(TRUTH, none=0.5), questions)]
    answerable = [i for i, verdict in enumerate(plain) if verdict is Verdict.FEATURE]
    assert abs(np.mean([nones[i] is Verdict.NONE for i in answerable]) - 0.5) < 0.12
    wrong = list(ask(crowd_of(TRUTH, wrong=1.0), [questions[i] for i in answerable]))
    assert any(len(answer.shown) != 2 for answer in wrong)


def test_every_answer_costs_the_price_and_the_bound_equals_it() -> None:
    oracle = crowd_of(TRUTH, price=250)
    questions = [Label(Feature("feature a"), example) for example in EXAMPLES]
    assert [a.cost for a in ask(oracle, questions)] == [250] * 12
    assert sum(bounds(oracle, questions)) == 250 * 12


def test_a_feature_that_the_truth_lacks_cannot_be_told() -> None:
    (answer,) = ask(crowd_of(TRUTH), [Label(Feature("zebra"), EXAMPLES[0])])
    assert answer.verdict is Verdict.UNREADABLE


OUT_OF_RANGE: list[dict[str, float]] = [{"flip": 1.5}, {"refuse": -0.1}, {"width": 0}, {"price": -1}]


@pytest.mark.parametrize("wrong", OUT_OF_RANGE)
def test_impossible_behaviour_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(OracleError, match="simulated"):
        Behaviour(**wrong)  # type: ignore[arg-type]


def test_identity_tells_crowds_apart_but_not_prices() -> None:
    assert crowd_of(TRUTH).identity == crowd_of(TRUTH, price=5, latency=0.1).identity
    assert crowd_of(TRUTH).identity != crowd_of(TRUTH, flip=0.1).identity
    assert crowd_of(TRUTH).identity != crowd_of(1 - TRUTH).identity


def test_of_two_groups_it_names_a_feature_that_clearly_more_of_one_have() -> None:
    question = Compare(Kind.GROUPS, tuple(EXAMPLES[:6]), tuple(EXAMPLES[6:]))
    answers = [next(iter(ask(crowd_of(TRUTH, seed=seed), [question]))) for seed in range(20)]
    assert any(answer.feature for answer in answers)
    for answer in answers:
        if answer.feature is not None:
            having = TRUTH[:, ord(answer.feature.name[-1]) - 97] == 1
            assert abs(having[:6].mean() - having[6:].mean()) >= 1 / 2
            assert answer.shown == tuple(np.flatnonzero(having))
