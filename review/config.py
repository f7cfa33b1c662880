"""All that the page is told when it starts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from store.review.leases import LeaseTerms

Record = dict[str, Any]


@dataclass(frozen=True)
class ReviewConfig:
    """`name_problem` says what is wrong with a feature's name, given those that are known; `quality` what the answers
    tell about the people; `export` writes them as CSV. They come from layers that the page does not know."""

    clean: Callable[[str], str]
    name_problem: Callable[[str, Iterable[str]], str]
    quality: Callable[[Iterable[Record], dict[int, str]], Any]
    export: Callable[[Iterable[Record]], Iterator[str]]
    base_url: str = "http://127.0.0.1:8765"
    terms: LeaseTerms = field(default_factory=LeaseTerms)
    submit_addresses: tuple[str, ...] = ()  # where tasks published elsewhere may be submitted to

    @property
    def secure(self) -> bool:
        return self.base_url.startswith("https://")

    @property
    def cookie(self) -> str:
        """Its name. With this prefix browsers take it from this very host only, not from a neighbour of the domain."""
        return "__Host-review" if self.secure else "review"
