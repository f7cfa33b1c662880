"""One page, one file: a template with its style and script inside, and a policy that allows nothing else."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from reports.svg import interval_bar
from reports.wording import FILTERS

ASSETS = Path(__file__).parent / "assets"


def render_template(template: str, context: Mapping[str, Any], styles: Sequence[str], scripts: Sequence[str]) -> str:
    """Files of `assets`. Everything that the template shows is escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(ASSETS),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(FILTERS)
    environment.globals["interval_bar"] = interval_bar
    style, script = _joined(styles), _joined(scripts)
    policy = (
        f"default-src 'none'; img-src data:; style-src '{_fingerprint(style)}'; script-src '{_fingerprint(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    own = {"style": Markup(style), "script": Markup(script), "policy": policy}  # noqa: S704 - files of this project
    text = environment.get_template(template).render({**context, **own})
    return text.encode("utf-8", "replace").decode("utf-8")


def _joined(names: Sequence[str]) -> str:
    return "".join((ASSETS / name).read_text(encoding="utf-8") for name in names)


def _fingerprint(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
