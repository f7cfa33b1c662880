"""What a run reports while it works. The terminal's display is flows.cli.progress."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Display:
    """Silent: for callers from Python and for deployments."""

    def say(self, message: str) -> None:
        pass

    @contextmanager
    def waiting(self, message: str) -> Iterator[None]:  # noqa: ARG002
        yield

    @contextmanager
    def counting(self, total: int | None, unit: str) -> Iterator[None]:  # noqa: ARG002
        """`total` is None where it is not known."""
        yield

    def update(self, done: int, detail: str) -> None:
        pass

    def note(self, detail: str) -> None:
        """Say what is being waited for while nothing is counted."""


SILENT = Display()
