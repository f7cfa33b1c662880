"""What a strategy asks and what it learns. Examples are row numbers here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Labels = NDArray[np.int8]  # one value per example: 1 has it, 0 lacks it, UNKNOWN
UNKNOWN = -1
CLEARLY = 1 / 2  # least difference of two groups in the share that has a feature, for it to answer a group question


class Kind(StrEnum):
    TWO_OF_THREE = "two-of-three"  # two of the three share it, the third lacks it
    SHARED = "shared"  # at least two of the examples share it, at least one lacks it
    ONE_OR_TWO = "one-or-two"  # one or two of the three have it
    PAIR = "pair"  # one of the two has it, the other lacks it
    ONE_OF_THREE = "one-of-three"  # one of the three has it, two lack it
    LEFT_RIGHT = "left-right"  # all of `examples` have it, none of `without` does
    GROUPS = "groups"  # clearly more of `examples` than of `without` have it, or the other way round
    TAG = "tag"  # anything that the one example has
    LABEL = "label"  # does the example have the feature?
    SAME = "same"  # do two features mean the same? A label of the pair, which is a text
    WHY = "why"  # does the example have the feature, and why?
    FAMILY = "family"  # which of some features are values of one attribute, and what is it called?
    VALUE = "value"  # which value of an attribute does the example have?


@dataclass(frozen=True, slots=True)
class Comparison:
    kind: Kind
    examples: tuple[int, ...]
    without: tuple[int, ...] = ()
    other_than_known: bool = False  # the question lists the features found so far and asks for another one


def differs_clearly(left: NDArray[np.bool_], right: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Of features in columns, which clearly more of one group have: the answers to a group question."""
    clear: NDArray[np.bool_] = np.abs(left.mean(axis=0) - right.mean(axis=0)) >= CLEARLY
    return clear


def possible_counts(kind: Kind, shown: int) -> range:
    """How many of the examples of a question have a feature that answers it, where `shown` are to be judged; for a
    group question any number may."""
    counts = {
        Kind.TWO_OF_THREE: range(2, 3),
        Kind.SHARED: range(2, shown),
        Kind.ONE_OR_TWO: range(1, shown),
        Kind.PAIR: range(1, 2),
        Kind.ONE_OF_THREE: range(1, 2),
        Kind.GROUPS: range(shown + 1),
    }
    return counts.get(kind, range(shown, shown + 1))


def contradicts(kind: Kind, has: Labels, lacks: Labels) -> bool:
    """Whether a feature with these labels cannot answer a question about examples that are to have it, or some of
    which are, and others that are to lack it. A label that is missing may be either."""
    if kind is Kind.GROUPS:
        is_known = (has != UNKNOWN).all() and (lacks != UNKNOWN).all()
        return bool(is_known and not differs_clearly(has == 1, lacks == 1))
    having, missing = int((has == 1).sum()), int((has == UNKNOWN).sum())
    counts = possible_counts(kind, len(has))
    return bool((lacks == 1).any() or having >= counts.stop or having + missing < counts.start)


COMPARING = frozenset(Kind) - {Kind.LABEL, Kind.SAME, Kind.WHY, Kind.FAMILY, Kind.VALUE}


def valid_columns(truth: Labels, question: Comparison) -> NDArray[np.bool_]:
    """Which columns answer the question. A column that is unknown on one of its examples does not."""
    if question.kind not in COMPARING:
        raise ValueError(f"a crowd is asked to compare, and {question.kind.value!r} is not a comparison")
    has, others = truth[list(question.examples)], truth[list(question.without)]
    having, counts = (has == 1).sum(axis=0), possible_counts(question.kind, len(has))
    valid: NDArray[np.bool_] = (has != UNKNOWN).all(axis=0) & (having >= counts.start) & (having < counts.stop)
    if question.kind is Kind.GROUPS:
        valid &= (others != UNKNOWN).all(axis=0) & differs_clearly(has == 1, others == 1)
    else:
        valid &= (others == 0).all(axis=0)
    return valid


class StrategyError(ValueError):
    """What was asked of a strategy is impossible; the message is one line that says why."""


class Strategy(Protocol):
    """Chooses what to ask next from what was learned."""

    @property
    def unresolved(self) -> float:
        """Share of the strategy's comparisons that no known feature settles: 1 at the start, 0 when exhausted."""
        ...

    def next_questions(self, k: int) -> list[Comparison]:
        """Up to `k` different questions, none asked before; empty when there is nothing left to ask."""
        ...

    def know(self, feature: str, labels: Labels) -> None:
        """A feature that no question of this strategy has found."""
        ...

    def learn(self, question: Comparison, features: Sequence[str], labels: Sequence[Labels]) -> None:
        """The answer to a question of `next_questions`, in that order: features with their labels, or none (NONE)."""
        ...


@runtime_checkable
class HearsAnswers(Protocol):
    """A strategy that uses an answer before the features in it are labelled."""

    def hear(self, question: Comparison, *, full: bool) -> None:
        """Whether the answer named as many new features as were asked for; `learn` follows when they have labels."""
        ...
