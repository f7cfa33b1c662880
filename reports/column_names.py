"""The columns of features: one normal form of their names, the same in run folders, nightly tables and exports."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from twothirds.discovery import plain_name

VOTES = ("yes", "no", "abstained")
BESIDE = ("source", "probability", "by", *VOTES)  # what else is known of labels: in brackets after a feature's column
ENDINGS = tuple(f" ({kind})" for kind in BESIDE)


def column_names(features: Iterable[tuple[str, str]], taken: Collection[str] = ()) -> list[str]:
    """Of features with names and definitions. No two are the same to a reader that ignores case, nor one that is
    taken: such a name is marked as a feature's."""
    used, columns = {name.casefold() for name in taken}, list[str]()
    for name, definition in features:
        columns.append(untaken(plain_name(name, definition), used, "feature"))
        used.add(columns[-1].casefold())
    return columns


def untaken(name: str, taken: Collection[str], mark: str) -> str:
    """The name, with the mark after it and then a number, until no other has it."""
    column, number = name, 1
    while column.casefold() in taken or column.endswith(ENDINGS):
        column = f"{name} ({mark})" if number == 1 else f"{name} ({mark} {number})"
        number += 1
    return column
