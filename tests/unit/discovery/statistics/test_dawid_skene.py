from __future__ import annotations

import numpy as np
import pytest

from tests.support.made_votes import annotated, made_truth
from twothirds.discovery.statistics.dawid_skene import dawid_skene, why_not
from twothirds.discovery.votes import majority_labels

CROWD = [(0.9, 0.95), (0.85, 0.8), (0.7, 0.9), (0.6, 0.55), (0.8, 0.6)]
SKILLED = [(0.95, 0.95), (0.9, 0.85), (0.85, 0.9), (0.9, 0.9)]


def test_error_rates_and_share_come_back() -> None:
    rng = np.random.default_rng(3)
    truth = made_truth(rng, 4_000, 0.3)
    found = dawid_skene(annotated(rng, truth, CROWD, missing=0.2))
    assert found.converged
    assert found.share == pytest.approx(0.3, abs=0.03)
    assert found.sensitivity == pytest.approx([one for one, _ in CROWD], abs=0.05)
    assert found.specificity == pytest.approx([two for _, two in CROWD], abs=0.05)


@pytest.mark.filterwarnings("ignore:The copy keyword")  # crowd-kit 1.4.2 with pandas 3
def test_it_agrees_with_crowd_kit() -> None:
    import pandas as pd
    from crowdkit.aggregation import DawidSkene

    rng = np.random.default_rng(5)
    votes = annotated(rng, made_truth(rng, 150), SKILLED, missing=0.1)
    ours = dawid_skene(votes)
    task, worker = np.nonzero(votes >= 0)
    table = pd.DataFrame({"task": task, "worker": worker, "label": votes[task, worker]})
    # Its own rule stops at the first fall of its bound, which may be the second step: let it go on.
    theirs = DawidSkene(n_iter=60, tol=-1).fit_predict_proba(table)[1].sort_index()
    assert ours.probability == pytest.approx(theirs.to_numpy(), abs=1e-4)


def test_it_beats_the_majority_where_workers_differ_in_skill() -> None:
    """Adversaries and coin-tossers among a few who know: five seeds, each better than the majority."""
    rates = [(0.97, 0.97)] * 3 + [(0.5, 0.5)] * 4 + [(0.3, 0.35)] * 2
    for seed in range(5):
        rng = np.random.default_rng(seed)
        truth = made_truth(rng, 200)
        votes = annotated(rng, truth, rates)
        majority = majority_labels((votes == 1).sum(1), (votes == 0).sum(1))
        assert (dawid_skene(votes).labels == truth).mean() > (majority == truth).mean() + 0.05


def test_an_example_without_votes_stays_unknown() -> None:
    rng = np.random.default_rng(0)
    votes = annotated(rng, made_truth(rng, 50), CROWD)
    votes[7] = -1
    votes[:, 2] = -1
    found = dawid_skene(votes)
    assert found.labels[7] == -1
    assert np.isnan(found.probability[7])
    assert np.isnan(found.sensitivity[2])


def test_it_says_why_there_is_no_consensus() -> None:
    assert why_not(np.array([[1, 0], [1, 1]], np.int8)).startswith("2 workers")
    assert why_not(np.array([[1, -1, -1], [-1, 0, -1], [-1, -1, 1]], np.int8)) == "no example has two votes"
    assert why_not(np.ones((4, 3), np.int8)) == ""
