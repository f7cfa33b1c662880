from __future__ import annotations

import numpy as np
import pytest

from tests.support.made_votes import annotated, made_truth
from twothirds.discovery.statistics.ppi import corrected_share


def test_it_agrees_with_ppi_python() -> None:
    # ppi-python 0.2.3: ppi_mean_pointestimate and ppi_mean_ci(alpha=0.05) of the same labels.
    rng = np.random.default_rng(11)
    truth = (rng.random(400) < 0.35).astype(np.int8)
    model = np.where(rng.random(400) < 0.85, truth, 1 - truth).astype(np.int8)
    people = truth.copy()
    people[80:] = -1
    found = corrected_share(people, model).corrected
    assert found.value == pytest.approx(0.41547177, abs=5e-9)
    assert found.low == pytest.approx(0.32667196, abs=5e-9)
    assert found.high == pytest.approx(0.50427158, abs=5e-9)


@pytest.mark.parametrize(("sensitivity", "specificity"), [(0.9, 0.9), (0.6, 0.95), (0.5, 0.5), (0.2, 0.3)])
def test_the_interval_holds_the_share_as_often_as_it_says(sensitivity: float, specificity: float) -> None:
    """However bad the model: 400 seeds, 100 people's labels, 900 others; the model's own share is often far off."""
    held = 0
    for seed in range(400):
        rng = np.random.default_rng([seed, 3])
        truth = made_truth(rng, 1_000, 0.3)
        people = truth.copy()
        people[100:] = -1
        found = corrected_share(people, annotated(rng, truth, [(sensitivity, specificity)])[:, 0])
        assert found.corrected.low is not None
        assert found.corrected.high is not None
        held += found.corrected.low <= 0.3 <= found.corrected.high
    assert 0.915 <= held / 400 <= 0.98


def test_a_good_model_saves_labels_and_a_coin_saves_none() -> None:
    rng = np.random.default_rng(4)
    truth = made_truth(rng, 2_000, 0.4)
    people = truth.copy()
    people[200:] = -1
    good = corrected_share(people, annotated(rng, truth, [(0.95, 0.95)])[:, 0])
    coin = corrected_share(people, annotated(rng, truth, [(0.5, 0.5)])[:, 0])
    assert good.saved.value is not None
    assert good.saved.value > 200
    assert coin.saved.value is not None
    assert coin.saved.value < 20


def test_it_says_what_is_missing() -> None:
    truth = made_truth(np.random.default_rng(0), 50)
    few = np.where(np.arange(50) < 5, truth, -1).astype(np.int8)
    assert corrected_share(few, truth).corrected.reason == "people and model both labelled 5 examples, and it takes 10"
    assert "nothing is left" in corrected_share(truth, truth).corrected.reason
    assert corrected_share(np.full(50, -1, np.int8), truth).people.reason == "people labelled no example"
    ones = np.ones(50, np.int8)
    some = np.where(np.arange(50) < 20, ones, -1).astype(np.int8)
    assert corrected_share(some, ones).corrected.low is None
    assert "same label" in corrected_share(some, ones).corrected.reason
