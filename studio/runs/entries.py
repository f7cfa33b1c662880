"""What the lists of the studio have in common: folders with a summary, read when it has changed, searched by words."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from reports.run import RunError


class _Finished(Protocol):
    @property
    def finished_at(self) -> str: ...


Summary = TypeVar("Summary", bound=_Finished)


@dataclass(frozen=True)
class ListEntry(Generic[Summary]):
    """One line of a list."""

    key: str
    folder: Path
    summary: Summary

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def when(self) -> str:
        return self.summary.finished_at[:16].replace("T", " ")

    @property
    def words(self) -> str:
        """What is searched."""
        return self.name

    def matches(self, words: str) -> bool:
        searched = self.words.casefold()
        return all(word in searched for word in words.casefold().split())


class Summaries(Generic[Summary]):
    """Of the folders that hold such a file, each read when that has changed."""

    def __init__(self, folders: Callable[[str], Iterable[Path]], holding: str, read: Callable[[Path], Summary]) -> None:
        self._folders, self._holding, self._read = folders, holding, read
        self._known: dict[Path, tuple[int, Summary]] = {}

    def latest_first(self) -> list[tuple[Path, Summary]]:
        """Those that cannot be read are left out."""
        found = []
        for folder in self._folders(self._holding):
            with suppress(RunError, OSError):
                found.append((folder, self._of(folder)))
        return sorted(found, key=lambda one: one[1].finished_at, reverse=True)

    def _of(self, folder: Path) -> Summary:
        written = (folder / self._holding).stat().st_mtime_ns
        known = self._known.get(folder)
        if known is None or known[0] != written:
            known = self._known[folder] = written, self._read(folder)
        return known[1]
