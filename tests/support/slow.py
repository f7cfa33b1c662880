"""Parameters that only `make test-slow` tries, beside those that `make test` does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet


def slow(*values: Any) -> list[ParameterSet]:
    """A tuple is the values of several parameters."""
    every = [value if isinstance(value, tuple) else (value,) for value in values]
    return [pytest.param(*one, marks=pytest.mark.slow) for one in every]
