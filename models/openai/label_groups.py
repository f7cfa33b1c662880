"""Labels that share one request: one example with many features, or one feature with many examples, of one voter."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Literal

from models.oracle import Label

Key = tuple[str, object, object]
Grouping = Literal["auto", "example", "feature", "none"]


class LabelGroups:
    """Buffers labels and releases them in groups that can share one request."""

    def __init__(self, grouping: Grouping, size: int, *, most_per_example: int | None = None) -> None:
        self._forms = {"auto": ("example", "feature"), "none": ()}.get(grouping, (grouping,))
        self._size = size if self._forms else 1
        self._most = {"example": max(most_per_example or size, size), "feature": size, "alone": 1}
        self._numbers = itertools.count()
        self._groups: dict[Key, dict[int, Label]] = {}
        self._keys: dict[int, list[Key]] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, label: Label) -> None:
        number = next(self._numbers)
        self._keys[number] = list(self._keys_of(label, number))
        for key in self._keys[number]:
            self._groups.setdefault(key, {})[number] = label

    def release(self, *, partial: bool) -> list[list[Label]]:
        """The full groups, largest first; with `partial` all labels."""
        released = []
        while self._groups:
            key, group = max(self._groups.items(), key=lambda item: len(item[1]))
            if len(group) < self._size and not partial:
                break
            chosen = dict(itertools.islice(group.items(), self._most[key[0]]))
            released.append(list(chosen.values()))
            self._remove(chosen)
        return released

    def _keys_of(self, label: Label, number: int) -> Iterator[Key]:
        if not self._forms:
            yield ("alone", 0, number)
        if "example" in self._forms:
            yield ("example", label.voter, label.example.digest)
        if "feature" in self._forms:
            yield ("feature", label.voter, label.feature)

    def _remove(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            for key in self._keys.pop(number):
                group = self._groups[key]
                del group[number]
                if not group:
                    del self._groups[key]
