"""Numbers in words, as pages and the terminal show them."""

from __future__ import annotations

import re


def usd(amount: float) -> str:
    """Cents where that says enough, more digits where it would say 0.00."""
    if amount == 0 or amount >= 0.995:
        return f"${amount:,.2f}"
    return f"${amount:.4f}" if amount >= 0.0001 else f"${amount:.6f}"


def percent(share: float | None) -> str:
    """Whole percents, with a digit more where the whole would hide something."""
    if share is None:
        return "–"
    percents = 100 * share
    return f"{percents:.1f} %" if 0 < percents < 1 or 99 < percents < 100 else f"{percents:.0f} %"


def duration(seconds: float | None) -> str:
    if seconds is None:
        return "not recorded"
    if seconds < 1:
        return "under a second"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def g_value(value: float) -> str:
    return f"{value:.3f}" if value >= 0.001 else f"{value:.2g}"


def count(number: float) -> str:
    return f"{number:,.0f}" if float(number).is_integer() else f"{number:,.1f}"


def plural(number: int, thing: str) -> str:
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def unbroken(text: str) -> str:
    """With no line break between a number and its percent sign."""
    return re.sub(r"(?<=\d) %", "\N{NO-BREAK SPACE}%", text)
