"""Labels for a pool of examples, asked where they must be and predicted where that is certified.

1. A random part is asked, classifiers are fitted, and what they are least sure of is asked too: from this they learn.
2. A random sample of the rest is asked: the certificate. It is drawn after the classifiers are fixed.
3. What lies above the certified cut is predicted; the rest is asked, and what cannot be certified in full, or, where
   the caller says so, left.

The certificate is about all features together (together.py) or about each (each.py), as the promise says. Chance comes
from the order of the pool alone, which its caller draws: with the same answers everything is the same."""

from __future__ import annotations

from dataclasses import replace

from discovery.statistics import Promise, looks
from models.predicted.asking import UNSURE, PoolAsking
from models.predicted.each import EachFeature
from models.predicted.pool import Ask, KeptClassifiers, LabelPool, PredictedLabels, Table
from models.predicted.together import FeaturesTogether

FEWEST_LEARNED = 200
LEARNED = 0.04  # of a large pool
WORTH_IT = 0.5  # of the pool at most may be asked before anything is predicted


def sizes(pool: int, promise: Promise) -> tuple[int, int]:
    """How many examples are learned from, and how many certify; of all features together, usually."""
    sampled = looks(promise)[1] if promise.together else promise.sample_size(pool)
    return max(FEWEST_LEARNED, min(int(LEARNED * pool), 2_000)), sampled


def asked_in_full(pool: int, promise: Promise, *, known: int = 0, kept: bool = False) -> int:
    """How many examples `label_pool` asks about everything before it predicts any: all but `known`, if they are few."""
    learned, sampled = sizes(pool, promise)
    if kept and sampled <= WORTH_IT * pool:
        return sampled
    if max(learned, known) + sampled > WORTH_IT * pool:
        return pool - known
    unsure = int(UNSURE * learned)
    return max(0, learned - unsure - known) + unsure + sampled


def may_predict(pool: int, promise: Promise, *, known: int = 0, kept: bool = False) -> bool:
    """Whether there are so many examples that `label_pool` may predict any."""
    return asked_in_full(pool, promise, known=known, kept=kept) < pool - known


def label_pool(
    pool: LabelPool,
    ask: Ask,
    promise: Promise,
    kept: KeptClassifiers | None = None,
    known: Table | None = None,
    *,
    leave: bool = False,
) -> PredictedLabels:
    """`kept` classifiers are used if a sample of this pool certifies the features again that they had a certificate
    for, and learned anew if it does not. `known` are labels of the first examples of the pool, which are learned from
    and not asked again; they must not depend on the order. With `leave`, features that cannot be certified are not
    asked in full: their labels are known where examples were asked anyway."""
    asking = PoolAsking(pool, ask, known, leave=leave, whole_rows=pool.whole_rows or promise.together)
    learned, sampled = sizes(pool.size, promise)
    confirmable = kept is not None and sampled <= WORTH_IT * pool.size
    if confirmable:
        promise = replace(promise, delta=promise.delta / 2)  # there may be two samples that certify
    labeller = FeaturesTogether(asking, promise) if promise.together else EachFeature(asking, promise, sampled)
    if kept is not None and confirmable and (confirmed := labeller.confirmed(kept)) is not None:
        return confirmed
    if max(learned, int(asking.asked.any(axis=1).sum())) + sampled > WORTH_IT * pool.size:
        return asking.nothing_predicted(None)
    asking.learn(learned)
    return labeller.learned()
