"""Which labels share one request: those of one voter, in a form that the prompts can show.

An example that gives orders to whoever answers may spoil the labels of those in its request. So every voter's requests
hold other examples together, where there are several: a majority then seldom has the same ones spoiled."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

from twothirds.models.oracle import Exemplar, Feature, Label

Grouping = Literal["auto", "example", "feature", "none"]
MANY_LABELS = 400  # in one request at most, by default: as many as one call of the decisions endpoint takes


Shown = frozenset[tuple[Exemplar, ...]]


def shown_with(labels: Iterable[Label]) -> Shown:
    """The exemplars of these labels: only labels with the same ones can share a request."""
    return frozenset(label.exemplars for label in labels if label.exemplars)


Row = dict[Feature, Label]  # labels of one example and one voter
RowKey = tuple[int, str, int]  # the voter, the example, and which time that a label of both is repeated
# Of one example in one request: more are split evenly. A picture costs as much as hundreds of features; a strict schema
# of more than 100 keys is refused by some servers.
ROW_FEATURES = 96
PICTURE_LABELS = 20  # in one request with several pictures
TEXTS, TEXT_CHARS = 25, 6_000  # in one request with several texts


class LabelBlocks:
    """Buffers labels and releases them in groups that can share one request: some examples with the same features each.
    Whole rows of pictures go one by one, short texts several at a time, a feature that is alone with many examples."""

    def __init__(self, grouping: Grouping, size: int, *, row: int | None = None, matrix: bool = True) -> None:
        """At most `size` labels in a request, and `row` features of one example, by default what suits it; without
        `matrix` a request has one example or one feature."""
        self._size = size
        self._row = 1 if grouping in ("feature", "none") else row
        self._alone = grouping in ("example", "none")
        self._matrix = matrix
        self._rows: dict[RowKey, Row] = {}
        self._count = 0
        self._last = ""  # the example whose label came last: it may have more

    def __len__(self) -> int:
        return self._count

    def add(self, label: Label) -> None:
        for time in itertools.count():
            row = self._rows.setdefault((label.voter, label.example.digest, time), {})
            if label.feature not in row:
                break
        row[label.feature] = label
        self._last = label.example.digest
        self._count += 1

    def release(self, *, partial: bool, more: bool = False) -> list[list[Label]]:
        """The full groups; with `partial` all labels, but if `more` are to come not those that may have company yet."""
        if partial and not more:
            return self._released(partial=True, waiting=None)
        released = self._released(partial=False, waiting=self._last)
        if partial and not released:
            released = self._released(partial=True, waiting=self._last) or self._released(partial=True, waiting=None)
        return released

    def _released(self, *, partial: bool, waiting: str | None) -> list[list[Label]]:
        alike: dict[tuple[int, int, frozenset[Feature], Shown], list[RowKey]] = {}
        for key, row in self._rows.items():
            voter, digest, time = key
            if digest != waiting:
                shape = (voter, time, frozenset(row), shown_with(row.values()))
                alike.setdefault(shape, []).append(key)
        released = []
        for (voter, _, features, shown), arrived in alike.items():
            keys = sorted(arrived, key=_place_for(voter)) if voter else arrived
            most = self._row or ROW_FEATURES
            if shown:
                most = max(1, min(most, PICTURE_LABELS // max(map(len, shown))))
            ordered = sorted(features, key=lambda feature: (feature.name, feature.definition))
            slices = evenly(ordered, most)
            for block, full in self._blocks(keys, max(map(len, slices))):
                if full or partial:
                    rows = [self._rows.pop(key) for key in block]
                    released += [[row[feature] for row in rows for feature in part] for part in slices]
        self._count -= sum(map(len, released))
        return released

    def _blocks(self, keys: Sequence[RowKey], features: int) -> Iterator[tuple[list[RowKey], bool]]:
        """The rows that share a request, and whether it is full."""
        block, chars = list[RowKey](), 0
        for key in keys:
            example = next(iter(self._rows[key].values())).example
            length = len(example.text or "")
            if block and chars + length > TEXT_CHARS:
                yield block, True
                block, chars = [], 0
            block.append(key)
            chars += length
            if len(block) >= self._most_examples(features, picture=example.image is not None):
                yield block, True
                block, chars = [], 0
        if block:
            yield block, False

    def _most_examples(self, features: int, *, picture: bool) -> int:
        if self._alone or (features > 1 and not self._matrix):
            return 1
        most = min(PICTURE_LABELS, self._size) if picture else self._size
        return max(1, min(most // features, PICTURE_LABELS if picture else TEXTS))


def _place_for(voter: int) -> Callable[[RowKey], bytes]:
    """Of a row among those of this voter: a random order, the same for the same contents."""
    return lambda key: hashlib.sha256(f"{voter} {key[1]}".encode()).digest()


def planned(waiting: LabelBlocks, labels: Iterable[Label], *, more: bool) -> list[list[Label]]:
    """The groups of these labels. Where `more` are to come, only full ones, unless most labels would be left out."""
    for label in labels:
        waiting.add(label)
    if not more:
        return waiting.release(partial=True)
    groups = waiting.release(partial=False, more=True)
    few = sum(map(len, groups)) < len(waiting)
    return groups + waiting.release(partial=True, more=True) if few else groups


def evenly(items: Sequence[Feature], most: int) -> list[Sequence[Feature]]:
    """In as few parts as have at most `most` each, none more than one longer than another."""
    count = -(-len(items) // most)
    edges = [len(items) * part // count for part in range(count + 1)]
    return [items[start:end] for start, end in itertools.pairwise(edges)]


def rectangles(labels: Sequence[Label]) -> list[list[int]]:
    """The places of labels, in parts of some examples with the same features each."""
    rows: dict[str, list[int]] = {}
    for place, label in enumerate(labels):
        rows.setdefault(label.example.digest, []).append(place)
    alike: dict[tuple[tuple[Feature, ...], Shown], list[int]] = {}
    for places in rows.values():
        features, shown = (labels[place].feature for place in places), shown_with(labels[place] for place in places)
        alike.setdefault((tuple(features), shown), []).extend(places)
    return list(alike.values())
