"""Attributes with values in a truth of 0/1 columns, as someone who knows the data would see them: columns that exclude
one another and share a word, or that between them hold for every example."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery.families import groups_by_words
from twothirds.discovery.questions import Labels

FEWEST_OF_A_COVER = 3


@dataclass(frozen=True, slots=True)
class TrueAttribute:
    name: str
    columns: tuple[int, ...]


def true_attributes(truth: Labels, names: Sequence[str]) -> list[TrueAttribute]:
    """No column is in two of them."""
    has = truth == 1
    overlap = has.T.astype(np.int64) @ has.astype(np.int64)
    apart = overlap == 0
    found: list[TrueAttribute] = []
    free = [column for column in range(len(names)) if has[:, column].any()]
    words = groups_by_words([names[column] for column in free])
    listed = [(group.name, [free[place] for place in group.members]) for group in words if group.specific]
    for name, columns in listed:
        if _all_apart(columns, apart) and not _taken(columns, found):
            found.append(TrueAttribute(name, tuple(columns)))
    for cover in _covers(has, apart, free):
        if not _taken(cover, found):
            found.append(TrueAttribute(_common_word(cover, names), tuple(cover)))
    for group in words:
        columns = _greedy([free[place] for place in group.members if not _taken([free[place]], found)], has, apart)
        if len(columns) > 1:
            found.append(TrueAttribute(group.name, tuple(columns)))
    return found


def attribute_among(
    offered: Sequence[int | None], attributes: Sequence[TrueAttribute]
) -> tuple[TrueAttribute, list[int]] | None:
    """The attribute that most of the offered columns are values of, and their places; None where no two are."""
    named = [(true, [place for place, column in enumerate(offered) if column in true.columns]) for true in attributes]
    best = max(named, key=lambda match: len(match[1]), default=None)
    return best if best is not None and len(best[1]) > 1 else None


def true_scale(truth: Labels, columns: Sequence[int | None], names: Sequence[str]) -> str:
    """What the columns, the widest first, are levels of; nothing where one does not include the next."""
    known = [column for column in columns if column is not None]
    has = truth[:, known] == 1
    if len(known) < len(columns) or (has[:, 1:] & ~has[:, :-1]).any():
        return ""
    groups = groups_by_words([names[column] for column in known])
    return next((group.name for group in groups if len(group.members) == len(known)), "")


def _all_apart(columns: Sequence[int], apart: NDArray[np.bool_]) -> bool:
    return all(apart[column, other] for column in columns for other in columns if column != other)


def _taken(columns: Sequence[int], found: Sequence[TrueAttribute]) -> bool:
    return any(column in attribute.columns for column in columns for attribute in found)


def _greedy(columns: Sequence[int], has: NDArray[np.bool_], apart: NDArray[np.bool_]) -> list[int]:
    """The commonest first, each that excludes all before it."""
    chosen: list[int] = []
    for column in sorted(columns, key=lambda column: -int(has[:, column].sum())):
        if all(apart[column, other] for other in chosen):
            chosen.append(column)
    return sorted(chosen)


def _covers(has: NDArray[np.bool_], apart: NDArray[np.bool_], columns: Sequence[int]) -> list[list[int]]:
    """Columns that exclude one another and between them hold for every example."""
    found: list[list[int]] = []
    for first in sorted(columns, key=lambda column: -int(has[:, column].sum())):
        chosen = [first, *_greedy([column for column in columns if apart[first, column]], has, apart)]
        if len(chosen) >= FEWEST_OF_A_COVER and has[:, chosen].any(axis=1).all():
            found.append(sorted(chosen))
    return found


def _common_word(columns: Sequence[int], names: Sequence[str]) -> str:
    """The word that most of them share, or else the names one after the other."""
    called = [names[column] for column in columns]
    groups = sorted(groups_by_words(called), key=lambda group: -len(group.members))
    return groups[0].name if groups else " or ".join(called[:2])
