"""What may be said of a run to everybody: no path of the machine on which it was made."""

from __future__ import annotations

import re

from reports.run.summary import RunSummary
from sources import without_secrets

LOCAL = re.compile(r"(?:file://)?(?:/|~|[A-Za-z]:\\)[^\s,;'\"]*")


def public_source(summary: RunSummary) -> str:
    """The data set's address if others can reach it, else its name."""
    spec = str(summary.settings["dataset"])
    reachable = "://" in spec and not spec.startswith(("file:", "local:"))
    return without_secrets(spec) if reachable and not LOCAL.search(spec.partition("://")[0]) else summary.dataset.name


def without_paths(text: str) -> str:
    """Each local path in a text by its last part."""
    return LOCAL.sub(lambda found: re.split(r"[/\\]", found.group().rstrip("/\\"))[-1] or "…", text)
