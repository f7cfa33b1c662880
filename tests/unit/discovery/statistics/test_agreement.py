"""Kappa, alpha and their kin against published worked examples, against other libraries, and over many seeds."""

from __future__ import annotations

import math
import re
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.support.made_votes import annotated, joint, made_truth
from tests.support.slow import slow
from twothirds.discovery.statistics.agreement import (
    OF_PAIRS,
    OF_VOTES,
    Statistic,
    alpha_of_two,
    bias,
    cohen_kappa,
    fleiss_kappa,
    krippendorff_alpha,
    negative_agreement,
    pair_columns,
    positive_agreement,
    prevalence,
    raw_agreement,
    vote_columns,
)
from twothirds.discovery.statistics.intervals import Estimate, Resamples, estimates

LABELS = arrays(np.int8, 40, elements=st.sampled_from([-1, 0, 1]))
VOTES = arrays(np.int8, (25, 4), elements=st.sampled_from([-1, 0, 1]))


def test_kappa_of_the_usual_worked_example() -> None:
    # Two readers of 50 grant proposals: 20 both yes, 5 and 10 divided, 15 both no.
    totals = np.array([20.0, 5.0, 10.0, 15.0])
    assert cohen_kappa(totals) == pytest.approx(0.4)
    assert raw_agreement(totals) == pytest.approx(0.7)
    assert positive_agreement(totals) == pytest.approx(40 / 55)
    assert negative_agreement(totals) == pytest.approx(30 / 45)
    assert prevalence(totals) == pytest.approx(0.55)
    assert bias(totals) == pytest.approx(-0.1)


def test_alpha_of_krippendorffs_own_example() -> None:
    # Krippendorff 2011, section A: two observers, ten units, binary data; alpha is 0.095.
    a = np.array([0, 1, 0, 0, 0, 0, 0, 0, 1, 0], np.int8)
    b = np.array([1, 1, 1, 0, 0, 1, 0, 0, 0, 0], np.int8)
    assert round(float(alpha_of_two(pair_columns(a, b).sum(0))), 3) == 0.095
    assert round(krippendorff_alpha(np.stack([a, b], axis=1)), 3) == 0.095


def test_fleiss_kappa_agrees_with_statsmodels() -> None:
    # statsmodels 0.15.0, fleiss_kappa of these counts of no and yes: 0.39613527
    counts = [(5, 0), (4, 1), (3, 2), (0, 5), (1, 4), (5, 0), (2, 3), (4, 1), (0, 5), (3, 2)]
    votes = np.array([[0] * no + [1] * yes for no, yes in counts], np.int8)
    assert round(float(fleiss_kappa(vote_columns(votes).sum(0))), 8) == 0.39613527


@given(LABELS, LABELS)
def test_kappa_agrees_with_scikit_learn(a: np.ndarray, b: np.ndarray) -> None:
    from sklearn.metrics import cohen_kappa_score

    both = (a >= 0) & (b >= 0)
    ours = float(cohen_kappa(pair_columns(a, b).sum(0)))
    if len(set(a[both].tolist())) < 2 or len(set(b[both].tolist())) < 2:  # theirs is 0 then, or a warning
        assert math.isnan(ours)
    else:
        assert ours == pytest.approx(cohen_kappa_score(a[both], b[both]), abs=1e-12)


@given(VOTES)
def test_alpha_agrees_with_the_krippendorff_package(votes: np.ndarray) -> None:
    import krippendorff

    ours = krippendorff_alpha(votes)
    paired = votes[(votes >= 0).sum(1) >= 2]
    if len(set(paired[paired >= 0].tolist())) < 2:
        assert math.isnan(ours)
        return
    data = np.where(votes >= 0, votes.astype(float), np.nan).T
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = krippendorff.alpha(reliability_data=data, level_of_measurement="nominal")
    assert ours == pytest.approx(float(theirs), abs=1e-9)


@pytest.mark.parametrize("statistic", [*OF_PAIRS[:2], *slow(*OF_PAIRS[2:])], ids=lambda one: one.name)
def test_intervals_hold_the_long_run_value_as_often_as_they_say(statistic: Statistic) -> None:
    """A 95 % interval over 150 examples: between 91 and 99 % of 300 seeds, the model's errors known."""
    share, model, person = 0.4, (0.85, 0.9), (0.8, 0.75)
    wanted = float(statistic.of(1e9 * joint(share, model, person)))  # of endless examples
    held = 0
    for seed in range(300):
        rng = np.random.default_rng([seed, 1])
        votes = annotated(rng, made_truth(rng, 150, share), [model, person])
        columns = pair_columns(votes[:, 0], votes[:, 1])[:, None]
        found = estimates([statistic], columns, Resamples(150, seed, 200))[0][0][statistic.name]
        assert found.low is not None
        assert found.high is not None
        held += found.low <= wanted <= found.high
    assert 0.91 <= held / 300 <= 0.99


def test_intervals_over_features_hold_the_mean_of_the_features() -> None:
    people = [(0.9, 0.8), (0.7, 0.9), (0.8, 0.85)]
    shares = (0.2, 0.5, 0.7)
    kappa = OF_PAIRS[1]
    wanted = np.mean(
        [float(cohen_kappa(joint(share, (0.9, 0.9), one))) for share, one in zip(shares, people, strict=True)]
    )
    held = 0
    for seed in range(200):
        rng = np.random.default_rng([seed, 2])
        columns = []
        for share, one in zip(shares, people, strict=True):
            votes = annotated(rng, made_truth(rng, 120, share), [(0.9, 0.9), one])
            columns.append(pair_columns(votes[:, 0], votes[:, 1]))
        found = estimates([kappa], np.stack(columns, axis=1), Resamples(120, seed, 200))[1][kappa.name]
        assert found.low is not None
        assert found.high is not None
        held += bool(found.low <= wanted <= found.high)
    assert 0.9 <= held / 200 <= 0.99


CAREFUL, USUAL, HASTY = (0.9, 0.99), (0.8, 0.97), (0.6, 0.97)


@pytest.mark.parametrize(
    ("examples", "shares", "rater"),
    [
        (40, (0.05,) * 6, USUAL),
        *slow(
            (40, (0.05,) * 6, CAREFUL),
            (40, (0.05,) * 12, HASTY),
            (40, (0.1,) * 3, USUAL),
            (40, (0.05, 0.1, 0.2, 0.4, 0.5), USUAL),
            (100, (0.05,) * 6, USUAL),
            (200, (0.03,) * 10, USUAL),
            (40, (0.3,) * 6, USUAL),
        ),
    ],
)
def test_intervals_over_rare_features_hold_their_mean_kappa(
    examples: int, shares: tuple[float, ...], rater: tuple[float, float]
) -> None:
    """Many resamples leave out all the yes of a rare feature, and its kappa is not defined in them."""
    kappa = OF_PAIRS[1]
    true = np.array([float(cohen_kappa(joint(share, rater, rater))) for share in shares])
    held = []
    for seed in range(300):
        rng = np.random.default_rng([seed, 3])
        votes = [annotated(rng, made_truth(rng, examples, share), [rater, rater]) for share in shares]
        columns = np.stack([pair_columns(cast[:, 0], cast[:, 1]) for cast in votes], axis=1)
        found = estimates([kappa], columns, Resamples(examples, seed, 200))[1][kappa.name]
        if found.low is None or found.high is None:
            continue
        defined = ~np.isnan(cohen_kappa(columns.sum(0)))
        held.append(bool(found.low <= true[defined].mean() <= found.high))
    assert len(held) >= 295
    assert 0.92 <= np.mean(held) <= 0.99


def test_the_reason_for_no_interval_is_the_true_one() -> None:
    kappa = OF_PAIRS[1]
    rare = np.zeros(40, np.int8)
    rare[0] = 1
    varied = np.array([0, 1] * 20, np.int8)

    def of(*pairs: tuple[np.ndarray, np.ndarray]) -> tuple[Estimate, Estimate]:
        columns = np.stack([pair_columns(a, b) for a, b in pairs], axis=1)
        each, overall = estimates([kappa], columns, Resamples(40, 0, 200))
        return each[0][kappa.name], overall[kappa.name]

    feature, overall = of((rare, rare))
    assert (feature.value, feature.low) == (1.0, None)
    assert re.fullmatch(r"no interval: its value is not defined in \d\d\s% of the resamples", feature.reason)
    assert overall.reason == feature.reason
    feature, overall = of((varied, varied), (varied, np.zeros(40, np.int8)))
    assert (feature.value, feature.reason) == (1.0, "no interval: no two resamples differ")
    assert overall.reason == f"{feature.reason}; the mean of 1 feature; of 1 it is not defined"


@pytest.mark.parametrize("statistic", [OF_VOTES[0], *slow(*OF_VOTES[1:])], ids=lambda one: one.name)
def test_intervals_of_votes_hold_the_long_run_value_as_often_as_they_say(statistic: Statistic) -> None:
    workers = [(0.9, 0.8), (0.8, 0.85), (0.7, 0.9), (0.85, 0.75)]

    def voted(seed: int, n: int) -> np.ndarray:
        rng = np.random.default_rng([seed, 5])
        return vote_columns(annotated(rng, made_truth(rng, n, 0.35), workers, missing=0.1))

    wanted = float(statistic.of(voted(999, 400_000).sum(0)))
    held = 0
    for seed in range(300):
        found = estimates([statistic], voted(seed, 150)[:, None], Resamples(150, seed, 200))[0][0][statistic.name]
        assert found.low is not None
        assert found.high is not None
        held += found.low <= wanted <= found.high
    assert 0.91 <= held / 300 <= 0.99


def test_what_is_not_defined_says_why_and_is_never_zero() -> None:
    constant = np.ones(20, np.int8)
    varying = np.array([0, 1] * 10, np.int8)
    unknown = np.full(20, -1, np.int8)

    def of(a: np.ndarray, b: np.ndarray) -> dict[str, tuple[float | None, str]]:
        found = estimates(OF_PAIRS, pair_columns(a, b)[:, None], Resamples(20, 0, 50))[0][0]
        return {name: (one.value, one.reason) for name, one in found.items()}

    same = of(constant, constant)
    assert same["raw agreement"][0] == 1
    assert same["Cohen's kappa"][0] is None
    assert same["Krippendorff's alpha"][0] is None
    assert same["negative agreement"] == (None, "neither says no of any example")
    assert all(value is None and reason for value, reason in of(unknown, varying).values())
    one_sided = of(constant, varying)
    assert one_sided["Cohen's kappa"] == (None, "one of the two gives the same label to every example")
    assert one_sided["Krippendorff's alpha"][0] is not None


def test_a_share_of_one_has_an_interval_although_no_resample_differs() -> None:
    labels = np.array([0, 1] * 15, np.int8)
    found = estimates(OF_PAIRS[:1], pair_columns(labels, labels)[:, None], Resamples(30, 0, 50))[0][0]
    agreement = found["raw agreement"]
    assert agreement.value == 1
    assert agreement.low is not None
    assert 0.85 < agreement.low < 0.95


def test_votes_of_one_worker_have_no_agreement() -> None:
    columns = vote_columns(np.array([[1], [0], [1]], np.int8))[:, None]
    each, overall = estimates(OF_VOTES, columns, Resamples(3, 0, 20))
    assert all(one.value is None and one.reason for one in (*each[0].values(), *overall.values()))
