"""Names that stand for several files: `part-*.parquet`, `shard-{0000..0012}.tar`, `{train,test}.csv`."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator

from sources.errors import DatasetError
from sources.files.location import file_system, is_url
from sources.printable import quoted

MAX_FILES = 100_000
_BRACES = re.compile(r"\{([^{},]+)\.\.([^{},]+)\}|\{([^{}]*,[^{}]*)\}")
_WILD = re.compile(r"[*?\[]")


def is_pattern(location: str) -> bool:
    path = location.partition("?")[0] if location.startswith(("http://", "https://")) else location
    return bool(_BRACES.search(path) or _WILD.search(path))


def expanded(location: str) -> list[str]:
    """The files that a pattern stands for, in order: all that braces name, and those there are that `*` matches."""
    found = []
    for name in _spelled_out(location):
        found += _matches(name) if _WILD.search(name) and not name.startswith("http") else [name]
        if len(found) > MAX_FILES:
            raise DatasetError(f"{quoted(location)} stands for more than {MAX_FILES:,} files: name fewer")
    return found


def _spelled_out(pattern: str) -> Iterator[str]:
    braces = _BRACES.search(pattern)
    if braces is None:
        yield pattern
        return
    for word in _words(braces):
        yield from _spelled_out(pattern[: braces.start()] + word + pattern[braces.end() :])


def _words(braces: re.Match[str]) -> Iterator[str]:
    first, last, listed = braces.groups()
    if listed is not None:
        yield from listed.split(",")
    elif first.isdecimal() and last.isdecimal() and int(last) - int(first) < MAX_FILES:
        yield from (str(number).zfill(len(first)) for number in range(int(first), int(last) + 1))
    else:
        raise DatasetError(f"{braces.group()!r} is no range of file numbers: write {{0000..0012}}")


def _matches(pattern: str) -> list[str]:
    if not is_url(pattern):
        return sorted(glob.glob(pattern))
    fs, path = file_system(pattern)
    scheme = pattern.partition("://")[0]
    return sorted(f"{scheme}://{one}" for one in fs.glob(path))
