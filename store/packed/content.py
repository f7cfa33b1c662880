"""What a pack holds, as bytes: a column for each member of its answers, written once where it is the same in all."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

import orjson

from store.errors import DamagedStore
from store.schema import LOOK, json_text, json_value

MOST = 60  # answers in a pack: their places are the bits of one number
COUNTS = ("cost", "requests", "input_tokens", "output_tokens", "seconds")  # what the charge of an answer tells


class PackedAnswer(NamedTuple):
    """One answer of a pack. `form` is the number of its question without the example."""

    form: int
    example: str
    answer: Mapping[str, Any]
    cost: int
    requests: int
    input_tokens: int
    output_tokens: int
    seconds: float


class Content:
    """The columns of a pack. A column of one value is that of all places."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._columns = columns

    def column(self, name: str) -> list[Any]:
        column: list[Any] = self._columns[name]
        return column * self.size if len(column) == 1 else column

    @property
    def size(self) -> int:
        return int(self._columns["size"])

    def member(self, name: str, place: int) -> Any:
        """One member of the answer at a place."""
        column = self._columns["answer"].get(name, (None,))
        return column[0] if len(column) == 1 else column[place]

    def answer(self, place: int) -> dict[str, Any]:
        columns = self._columns["answer"]
        return {name: column[0] if len(column) == 1 else column[place] for name, column in columns.items()}

    def with_column(self, name: str, column: list[Any]) -> dict[str, Any]:
        """All columns, one of the answers' being this one."""
        return {**self._columns, "answer": {**self._columns["answer"], name: column}}

    def at(self, place: int) -> PackedAnswer:
        columns = {name: self._columns[name] for name in ("form", "example", *COUNTS)}
        values = {name: column[0] if len(column) == 1 else column[place] for name, column in columns.items()}
        return PackedAnswer(answer=self.answer(place), **values)


@dataclass(slots=True)  # not frozen: that would take three times as long, once for each label
class AnswerRecord:
    """An answer under the fence with which its question was claimed. `key` digests `identity` and `question`."""

    key: str
    fence: int
    oracle: str
    kind: str
    question: Mapping[str, Any]
    answer: Mapping[str, Any]
    cost: int
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    in_doubt: int = 0  # the bounds of requests for it that may have been charged and never reported it
    identity: Mapping[str, Any] = field(default_factory=dict)
    replaces: float | None = None  # an answer that was kept before this time, if there is one
    overcharge: float = 1.0  # above 1 where one was charged more than its bound: requests may cost so many times theirs


_counts = [(name, attrgetter(name)) for name in COUNTS]


def encode(answers: Sequence[AnswerRecord], examples: list[str], forms: list[int]) -> bytes:
    """At most MOST answers whose members have the same names, and the examples and forms of their questions."""
    columns: dict[str, Any] = {"size": len(answers), "example": _column(examples), "form": _column(forms)}
    columns |= {name: _column(list(map(count, answers))) for name, count in _counts}
    given = [record.answer for record in answers]
    columns["answer"] = {name: _column(list(map(itemgetter(name), given))) for name in given[0]}
    return _compressed(columns)


def recode(content: Content, name: str, places: Collection[int], value: Any) -> bytes:
    """The same with another value of one member of the answers at these places."""
    values = [value if place in places else content.member(name, place) for place in range(content.size)]
    return _compressed(content.with_column(name, _column(values)))


def _compressed(columns: Mapping[str, Any]) -> bytes:
    return zlib.compress(json_text(columns).encode(), 6)


def decode(content: bytes) -> Content:
    try:
        text = zlib.decompress(content)
    except zlib.error:
        raise DamagedStore(f"the store holds answers that cannot be unpacked: {LOOK}") from None
    try:
        return Content(orjson.loads(text))
    except ValueError:  # such as lone surrogates
        return Content(json_value(text.decode()))


def _column(values: list[Any]) -> list[Any]:
    first = values[0]
    if values.count(first) != len(values):
        return values
    if first is None or isinstance(first, str):
        return [first]
    if isinstance(first, (int, float)):
        return [first] if len(set(map(type, values))) == 1 else values  # 1, 1.0 and true are equal
    same = ",".join([json_text(first)] * len(values))
    return [first] if json_text(values) == f"[{same}]" else values


def checksum(content: bytes) -> bytes:
    """It detects accidents and manual edits, not forgery."""
    return hashlib.blake2b(content, digest_size=16).digest()


def bits(places: Sequence[int]) -> int:
    return sum(1 << place for place in places)


def places(bits: int) -> Iterator[int]:
    """The places that are set."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
