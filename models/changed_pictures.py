"""Pictures that are no longer what they were when the data set was read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from models.oracle import ExampleChanged
from sources.errors import Vanished


@contextmanager
def seen_as_it_was() -> Iterator[None]:
    """Nothing is recorded of a picture that has changed or is gone: whoever asks may go on without it."""
    try:
        yield
    except Vanished as problem:
        raise ExampleChanged(str(problem)) from None
