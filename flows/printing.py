"""How anything gets on a terminal. Ids, names and paths may hold whatever somebody wrote: what would move the cursor,
change colours or turn a line around is shown as an escape, in tables, lines and JSON alike."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from sources.location import printable


def printable_lines(text: str) -> str:
    return "\n".join(map(printable, text.split("\n")))


def as_json(value: Any) -> str:
    """For people and programs: the same value, with what a terminal would obey as JSON's own escapes."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return "".join(
        letter if letter == "\n" or printable(letter) == letter else json.dumps(letter)[1:-1] for letter in text
    )


def print_result(data: Any, lines: Iterable[str], *, json: bool) -> None:
    """Results go to stdout: as JSON, or as lines."""
    print(as_json(data) if json else "\n".join(map(printable, lines)))
