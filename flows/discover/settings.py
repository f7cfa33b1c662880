"""The parts of `auto` that `--parts` switches: `imagine=off,ways=unresolved+pair` on the command line."""

from __future__ import annotations

from math import isfinite, nan
from typing import Any

from flows.cli.options import UsageError

SWITCHES = ("other", "imagine", "sample")
NUMBERS = ("trust", "caution", "memory")
REMEDY = (
    f"write name=value, separated by commas: {', '.join(SWITCHES)} on or off; {', '.join(NUMBERS)} a number; "
    "ways=triple+unresolved+near+far+pair+tag, or some of these"
)


def read_parts(text: str | None) -> dict[str, Any]:
    """The options of the strategy that the text stands for; UsageError where it stands for none."""
    parts: dict[str, Any] = {}
    for item in (text or "").split(","):
        if item.strip():
            name, _, value = item.strip().partition("=")
            parts[name] = _value(name, value)
    return parts


def _value(name: str, value: str) -> Any:
    if name == "ways":
        return tuple(value.split("+"))
    if name in SWITCHES and value in ("on", "off"):
        return value == "on"
    if name in NUMBERS:
        try:
            number = float(value)
        except ValueError:
            number = nan
        if isfinite(number):
            return number
    raise UsageError(f"--parts {f'{name}={value}'!r} is not understood: {REMEDY}")
