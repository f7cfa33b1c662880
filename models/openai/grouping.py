"""Which labels share one request: those of one voter, in a form that the prompts can show.

An example that gives orders to whoever answers may spoil the labels of those in its request. So every voter's requests
hold other examples together, where there are several: a majority then seldom has the same ones spoiled."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from twothirds.models.oracle import Exemplar, Feature, Label

Grouping = Literal["auto", "example", "feature", "none"]
MANY_LABELS = 400  # in one request at most, by default: as many as one call of the decisions endpoint takes
# Of one example in one request: more are split evenly. A picture costs as much as hundreds of features; a strict schema
# of more than 100 keys is refused by some servers.
ROW_FEATURES = 96
PICTURE_LABELS = 20  # in one request with several pictures
TEXTS, TEXT_CHARS = 25, 6_000  # in one request with several texts

Shown = frozenset[tuple[Exemplar, ...]]
Row = dict[Feature, Label]  # labels of one example and one voter


def shown_with(labels: Iterable[Label]) -> Shown:
    """The exemplars of these labels: only labels with the same ones can share a request."""
    return frozenset(label.exemplars for label in labels if label.exemplars)


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups of labels that can share one request: some examples with the same features each. Whole rows of pictures go
    one by one, short texts several at a time, a feature that is alone with many examples."""

    grouping: Grouping
    size: int  # labels in a request at most
    row: int | None = None  # features of one example in a request at most; None: what suits it
    matrix: bool = True  # else a request has one example or one feature
    now: Callable[[], int | None] = lambda: None  # labels at most that the server ends in time, when it is next asked

    def of(self, labels: Iterable[Label]) -> Iterator[list[Label]]:
        """Each label is in one group, which is made when it is wanted: the speed of a slow server is known better by
        then."""
        rows: dict[tuple[int, str, int], Row] = {}  # by voter, example, and which time that a label of both is repeated
        for label in labels:
            for time in itertools.count():
                row = rows.setdefault((label.voter, label.example.digest, time), {})
                if label.feature not in row:
                    row[label.feature] = label
                    break
        alike: dict[tuple[int, int, frozenset[Feature], Shown], dict[str, Row]] = {}
        for (voter, digest, time), row in rows.items():
            shape = voter, time, frozenset(row), shown_with(row.values())
            alike.setdefault(shape, {})[digest] = row
        for (voter, _, features, shown), found in alike.items():
            ordered = sorted(features, key=lambda feature: (feature.name, feature.definition))
            digests = sorted(found, key=_place_for(voter)) if voter else list(found)
            yield from self._of_rows([found[digest] for digest in digests], ordered, max(map(len, shown), default=0))

    def _of_rows(self, rows: Sequence[Row], features: Sequence[Feature], exemplars: int) -> Iterator[list[Label]]:
        start = 0
        while start < len(rows):
            slow = self.now()
            size = min(slow or self.size, self.size)
            most = 1 if self.grouping in ("feature", "none") else self.row or ROW_FEATURES
            if slow is not None:
                most = min(most, size)
            if exemplars:
                most = max(1, min(most, PICTURE_LABELS // exemplars))
            slices = evenly(features, most)
            end = self._end(rows, start, max(map(len, slices)), size)
            yield from ([row[feature] for row in rows[start:end] for feature in part] for part in slices)
            start = end

    def _end(self, rows: Sequence[Row], start: int, features: int, size: int) -> int:
        """Where the rows end that share a request with the one at the start."""
        example = next(iter(rows[start].values())).example
        if self.grouping in ("example", "none") or (features > 1 and not self.matrix):
            return start + 1
        most = min(PICTURE_LABELS, size) if example.image is not None else size
        most = max(1, min(most // features, PICTURE_LABELS if example.image is not None else TEXTS))
        chars = 0
        for end in range(start, min(start + most, len(rows))):
            chars += len(next(iter(rows[end].values())).example.text or "")
            if chars > TEXT_CHARS and end > start:
                return end
        return min(start + most, len(rows))


def _place_for(voter: int) -> Callable[[str], bytes]:
    """Of an example among those of this voter: a random order, the same for the same contents."""
    return lambda digest: hashlib.sha256(f"{voter} {digest}".encode()).digest()


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
