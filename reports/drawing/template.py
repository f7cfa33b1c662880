"""One page, one file: a template with its style and script inside, and a policy that allows nothing else. Numbers in
words, as pages and the terminal show them."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from twothirds.reports.drawing.svg import interval_bar

if TYPE_CHECKING:
    from jinja2 import Environment


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


FILTERS: dict[str, Callable[..., str]] = {
    "usd": usd,
    "percent": lambda share: unbroken(percent(share)),
    "unbroken": unbroken,
    "duration": duration,
    "g_value": g_value,
    "count": count,
    "plural": plural,
}


ASSETS = Path(__file__).parents[1] / "assets"


def render_template(template: str, context: Mapping[str, Any], styles: Sequence[str], scripts: Sequence[str]) -> str:
    """All names are of files in `assets`. Everything that the template shows is escaped."""
    style, script = _joined(styles), _joined(scripts)
    policy = (
        f"default-src 'none'; img-src data:; style-src '{_fingerprint(style)}'; script-src '{_fingerprint(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    own = {"style": Markup(style), "script": Markup(script), "policy": policy}  # noqa: S704 - files of this project
    text = _environment().get_template(template).render({**context, **own})
    return text.encode("utf-8", "replace").decode("utf-8")


@cache
def _environment() -> Environment:
    """Compiled templates are kept among the user's temporary files, for compiling takes longer than rendering."""
    from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined

    try:
        compiled = FileSystemBytecodeCache()
    except (OSError, RuntimeError):  # no such folder can be had, or it is not ours alone
        compiled = None
    environment = Environment(
        loader=FileSystemLoader(ASSETS),
        bytecode_cache=compiled,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(FILTERS)
    environment.globals["interval_bar"] = interval_bar
    return environment


def _joined(names: Sequence[str]) -> str:
    return "".join((ASSETS / name).read_text(encoding="utf-8") for name in names)


def _fingerprint(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
