"""One page, one file: a template with its style and script inside, and a policy that allows nothing else."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from reports.drawing.number_formats import FILTERS
from reports.drawing.svg import interval_bar

if TYPE_CHECKING:
    from jinja2 import Environment

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
