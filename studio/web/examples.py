"""An example as every page shows it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ExampleTile:
    """`place` is its number among the examples that a page can show, -1 where the page does not have it."""

    place: int
    name: str
    text: str
    pictured: bool  # a picture that cannot be read any more counts: the page says that it is missing
    src: str = ""  # the address of its picture; empty: the page carries it
    contradicted: bool = False  # the votes say otherwise than where it stands
    predicted: float | None = None  # how probable yes was, where the label is not the oracle's
