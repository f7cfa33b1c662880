"""The votes that a free crowd computes are those that it gives when it is asked, one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.asking import ask
from tests.support.made import random_truth, texts
from twothirds.discovery import UNKNOWN
from twothirds.models.oracle import Feature, Label, OracleError, Verdict
from twothirds.models.people.simulated import Behaviour, SimulatedOracle

EXAMPLES, NAMES = 40, ("a", "b", "c", "d")
TRUTH = random_truth(EXAMPLES, len(NAMES), seed=2)
TRUTH[::9, 1] = UNKNOWN
FEATURES = [Feature("d"), Feature("zebra"), Feature("b", "It is b."), Feature("a")]
BEHAVIOURS: list[dict[str, Any]] = [
    {},
    {"wrong": 0.3, "none": 0.3},  # none of which changes a label
    {"flip": 0.3},
    {"refuse": 0.4},
    {"flip": 0.3, "refuse": 0.2},
]


def free(**behaviour: Any) -> SimulatedOracle:
    return SimulatedOracle(texts(EXAMPLES), TRUTH, NAMES, seed=4, behaviour=Behaviour(**behaviour))


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
@pytest.mark.parametrize("voter", [0, 2])
def test_computed_votes_are_the_asked_ones(behaviour: dict[str, Any], voter: int) -> None:
    crowd = free(**behaviour)
    examples = texts(EXAMPLES)[::-1]
    wanted = np.random.default_rng(0).random((EXAMPLES, len(FEATURES))) < 0.7
    said = crowd.compute(FEATURES, examples, voter, wanted)
    assert said.chances is None
    for row, column in np.argwhere(wanted).tolist():
        [answer] = ask(crowd, [Label(FEATURES[column], examples[row], voter)])
        code = {Verdict.YES: 1, Verdict.NO: 0}.get(answer.verdict, UNKNOWN)
        assert said.labels[row, column] == code
        assert said.refused[row, column] == (answer.verdict is Verdict.REFUSED)


def test_only_a_free_crowd_computes_labels() -> None:
    assert free().traits.deterministic
    assert not free(price=1).traits.deterministic
    assert not free(latency=0.01).traits.deterministic


@pytest.mark.parametrize("behaviour", [{}, {"flip": 0.3}])
def test_an_example_that_the_truth_lacks_is_an_error_unless_no_feature_is_known(behaviour: dict[str, Any]) -> None:
    crowd, examples = free(**behaviour), texts(EXAMPLES + 1)
    wanted = np.ones((len(examples), 1), np.bool_)
    with pytest.raises(OracleError, match="'e40' is not in the truth"):
        crowd.compute([Feature("a")], examples, 0, wanted)
    assert (crowd.compute([Feature("zebra")], examples, 0, wanted).labels == UNKNOWN).all()
