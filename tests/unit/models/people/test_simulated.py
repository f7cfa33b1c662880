from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from discovery.questions import Kind
from models.oracle import Compare, Feature, Label, OracleError, Verdict
from models.people.simulated import Behaviour
from tests.support.made import crowd_of, random_truth, texts

TRUTH = random_truth(12, 8)
EXAMPLES = texts(12)


def labels_of(oracle_options: dict[str, Any], voters: int = 40) -> list[Verdict]:
    oracle = crowd_of(TRUTH, **oracle_options)
    feature = Feature("feature a")
    questions = [Label(feature, example, voter) for example in EXAMPLES for voter in range(voters)]
    return [answer.verdict for answer in oracle.ask(questions)]


def test_a_label_is_the_truth_when_nobody_errs() -> None:
    oracle = crowd_of(TRUTH)
    answers = list(oracle.ask([Label(Feature("feature a"), example) for example in EXAMPLES]))
    assert [answer.verdict is Verdict.YES for answer in answers] == (TRUTH[:, 0] == 1).tolist()


def test_a_comparison_names_a_feature_that_exactly_two_of_three_have() -> None:
    oracle = crowd_of(TRUTH)
    for a, b, c in [(0, 1, 2), (3, 4, 5), (6, 7, 8), (9, 10, 11)]:
        question = Compare(Kind.TWO_OF_THREE, (EXAMPLES[a], EXAMPLES[b], EXAMPLES[c]))
        (answer,) = oracle.ask([question])
        columns = {f"feature {chr(97 + column)}": column for column in range(8)}
        if answer.feature is None:
            assert not (TRUTH[[a, b, c]].sum(axis=0) == 2).any()
        else:
            assert TRUTH[[a, b, c], columns[answer.feature.name]].sum() == 2
            assert len(answer.shown) == 2


def test_answers_do_not_depend_on_the_order_of_asking() -> None:
    questions = [Label(Feature("feature b"), example, voter) for example in EXAMPLES for voter in range(3)]
    one = {a.question: a.verdict for a in crowd_of(TRUTH, flip=0.3).ask(questions)}
    other = {a.question: a.verdict for a in crowd_of(TRUTH, flip=0.3).ask(reversed(questions))}
    assert one == other
    assert one != {a.question: a.verdict for a in crowd_of(TRUTH, flip=0.3, seed=1).ask(questions)}


def test_threads_change_nothing_but_the_order() -> None:
    questions = [Label(Feature("feature c"), example, voter) for example in EXAMPLES for voter in range(3)]
    one = {a.question: a.verdict for a in crowd_of(TRUTH, flip=0.3).ask(questions)}
    late = {a.question: a.verdict for a in crowd_of(TRUTH, flip=0.3, latency=0.001, width=8).ask(iter(questions))}
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
    plain = [a.verdict for a in crowd_of(TRUTH).ask(questions)]
    nones = [a.verdict for a in crowd_of(TRUTH, none=0.5).ask(questions)]
    answerable = [i for i, verdict in enumerate(plain) if verdict is Verdict.FEATURE]
    assert abs(np.mean([nones[i] is Verdict.NONE for i in answerable]) - 0.5) < 0.12
    wrong = list(crowd_of(TRUTH, wrong=1.0).ask([questions[i] for i in answerable]))
    assert any(len(answer.shown) != 2 for answer in wrong)


def test_every_answer_costs_the_price_and_the_bound_equals_it() -> None:
    oracle = crowd_of(TRUTH, price=250)
    questions = [Label(Feature("feature a"), example) for example in EXAMPLES]
    assert [a.cost for a in oracle.ask(questions)] == [250] * 12 == oracle.estimate(questions)


def test_a_feature_that_the_truth_lacks_cannot_be_told() -> None:
    (answer,) = crowd_of(TRUTH).ask([Label(Feature("zebra"), EXAMPLES[0])])
    assert answer.verdict is Verdict.UNREADABLE


OUT_OF_RANGE: list[dict[str, float]] = [{"flip": 1.5}, {"refuse": -0.1}, {"width": 0}, {"price": -1}, {"shared": 2}]


@pytest.mark.parametrize("wrong", [*OUT_OF_RANGE, {"yes_bias": -1.5}, {"confused": -1}])
def test_impossible_behaviour_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(OracleError, match="simulated"):
        Behaviour(**wrong)  # type: ignore[arg-type]


def test_identity_tells_crowds_apart_but_not_prices() -> None:
    assert crowd_of(TRUTH).identity == crowd_of(TRUTH, price=5, latency=0.1).identity
    assert crowd_of(TRUTH).identity != crowd_of(TRUTH, flip=0.1).identity
    assert crowd_of(TRUTH).identity != crowd_of(1 - TRUTH).identity


def test_errors_that_are_not_shared_are_the_oracle_that_it_was() -> None:
    """Answers that were kept before errors could be shared stay valid."""
    plain = crowd_of(TRUTH, flip=0.1).identity
    assert [name for name, _ in plain.parameters] == ["seed", "truth", "flip", "wrong", "none", "refuse"]
    others: list[dict[str, Any]] = [
        {"shared": 0.5},
        {"confused": 0.1},
        {"yes_bias": 0.2},
        {"shared": 0.5, "by_example": 0.5},
    ]
    assert len({plain, *(crowd_of(TRUTH, flip=0.1, **one).identity for one in others)}) == 5


def test_voters_who_share_their_errors_err_on_the_same_labels() -> None:
    truth = random_truth(300, 4)
    asked = [Label(Feature("feature a"), example, voter) for example in texts(300) for voter in range(5)]

    def wrong(**behaviour: Any) -> NDArray[np.bool_]:
        said = [answer.verdict is Verdict.YES for answer in crowd_of(truth, flip=0.2, **behaviour).ask(asked)]
        errs: NDArray[np.bool_] = np.array(said).reshape(300, 5) != (truth[:, :1] == 1)
        return errs

    alone, together = wrong(), wrong(shared=1.0)
    assert abs(alone.mean() - 0.2) < 0.06
    assert abs(together.mean() - 0.2) < 0.08
    assert (alone.sum(1) % 5 > 0).sum() > 0
    assert set(together.sum(1)) == {0, 5}
    biased = wrong(yes_bias=1.0)
    assert not biased[truth[:, 0] == 1].any()
    assert biased[truth[:, 0] == 0].mean() == pytest.approx(0.4, abs=0.1)


def test_a_hard_example_is_hard_for_every_feature() -> None:
    truth = random_truth(300, 4)
    oracle = crowd_of(truth, flip=0.3, shared=1.0, by_example=1.0)
    wrong = [
        [
            (answer.verdict is Verdict.YES) != bool(truth[row, column])
            for row, answer in enumerate(oracle.ask([Label(Feature(name), one) for one in texts(300)]))
        ]
        for column, name in enumerate(("feature a", "feature b"))
    ]
    assert wrong[0] == wrong[1]
    assert any(wrong[0])


def test_a_confused_crowd_answers_for_the_most_similar_feature() -> None:
    truth = random_truth(60, 3)
    truth[:, 1] = truth[:, 0]
    truth[:9, 1] ^= 1
    oracle = crowd_of(truth, confused=1.0)
    said = [answer.verdict is Verdict.YES for answer in oracle.ask([Label(Feature("feature a"), e) for e in texts(60)])]
    assert said == (truth[:, 1] == 1).tolist()


def test_of_two_groups_it_names_a_feature_that_clearly_more_of_one_have() -> None:
    question = Compare(Kind.GROUPS, tuple(EXAMPLES[:6]), tuple(EXAMPLES[6:]))
    answers = [next(iter(crowd_of(TRUTH, seed=seed).ask([question]))) for seed in range(20)]
    assert any(answer.feature for answer in answers)
    for answer in answers:
        if answer.feature is not None:
            having = TRUTH[:, ord(answer.feature.name[-1]) - 97] == 1
            assert abs(having[:6].mean() - having[6:].mean()) >= 1 / 2
            assert answer.shown == tuple(np.flatnonzero(having))
