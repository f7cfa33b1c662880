"""One environment for all templates, and pages in one file: style and script inside, and a policy that allows nothing
else."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from twothirds.studio.web.charts import expected_bar, interval_bar, share_bar, sparkline
from twothirds.studio.web.languages import CATALOGUES
from twothirds.studio.web.numbers import count, duration, g_value, percent, plural, unbroken, usd

if TYPE_CHECKING:
    from jinja2 import Environment

HERE = Path(__file__).parent
STATIC = HERE / "static"
FILTERS: dict[str, Callable[..., str]] = {
    "usd": usd,
    "percent": lambda share: unbroken(percent(share)),
    "unbroken": unbroken,
    "duration": duration,
    "g_value": g_value,
    "count": count,
    "plural": plural,
}


def render(template: str, context: Mapping[str, Any], language: str = "en") -> bytes:
    """Everything that the template shows is escaped, and an undefined name is an error."""
    return environment(language).get_template(template).render(context).encode("utf-8", "replace")


def render_file(template: str, context: Mapping[str, Any], styles: Sequence[str], scripts: Sequence[str]) -> str:
    """A page in one file; styles and scripts are names of static files."""
    style, script = _joined(styles), _joined(scripts)
    policy = (
        f"default-src 'none'; img-src data:; style-src '{_fingerprint(style)}'; script-src '{_fingerprint(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    own = {"style": Markup(style), "script": Markup(script), "policy": policy}  # noqa: S704 - files of this project
    return render(template, {**context, **own}).decode("utf-8")


@cache
def environment(language: str = "en") -> Environment:
    """Compiled templates are kept among the user's temporary files, for compiling takes longer than rendering. `t` in
    templates is the catalogue of texts in the language."""
    from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined

    try:
        compiled = FileSystemBytecodeCache()
    except (OSError, RuntimeError):  # no such folder can be had, or it is not ours alone
        compiled = None
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        bytecode_cache=compiled,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,  # saves a look at the template's file for every page
    )
    say = CATALOGUES[language]
    made.filters |= {**FILTERS, "moment": say.moment, "share": say.share, "number": say.number}
    drawings = {drawing.__name__: drawing for drawing in (interval_bar, share_bar, sparkline, expected_bar)}
    made.globals |= {**drawings, "t": say}
    return made


def _joined(names: Sequence[str]) -> str:
    return "".join((STATIC / name).read_text(encoding="utf-8") for name in names)


def _fingerprint(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
