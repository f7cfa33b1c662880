"""Settings of the review page, and the functions it gets from other layers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from twothirds.store.review import LeaseTerms

Record = dict[str, Any]
NameProblem = Callable[[str, Iterable[str], Iterable[str]], str]  # of a name, the known ones and those not wanted


OVERVIEW = "/admin"


@dataclass(frozen=True)
class ReviewConfig:
    """`name_problem` says what is wrong with a feature's name, given the known ones: empty, or what follows `name.` in
    the catalogue; `quality` computes statistics of
    reviewers from their answers; `export` writes answers as CSV. They come from layers that studio/ cannot import."""

    clean: Callable[[str], str]
    name_problem: NameProblem
    quality: Callable[[Iterable[Record], dict[int, str]], Any]
    export: Callable[[Iterable[Record]], Iterator[str]]
    base_url: str = "http://127.0.0.1:8765"
    terms: LeaseTerms = field(default_factory=LeaseTerms)
    submit_addresses: tuple[str, ...] = ()  # where tasks published elsewhere may be submitted to
    overview: str = OVERVIEW  # the page that shows the queue to an administrator

    @property
    def secure(self) -> bool:
        return self.base_url.startswith("https://")

    @property
    def cookie(self) -> str:
        """Its name. With the prefix __Host- browsers accept it from this host only, not from a sibling domain."""
        return "__Host-review" if self.secure else "review"
