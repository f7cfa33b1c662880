"""What is published to Prefect shows names, ids and warnings as they are, and nothing of them as marks or HTML."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from twothirds.tasks import publish as published
from twothirds.tasks import publish_enrichment

HOSTILE = "<img src=x onerror=alert(1)> [look](javascript:alert(1))"


def test_names_and_warnings_of_an_enrichment_are_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[dict[str, Any]] = []
    module = import_module("twothirds.tasks.publish")
    for name in ("create_markdown_artifact", "create_table_artifact"):
        monkeypatch.setattr(module, name, lambda **named: made.append(named))
    publish_enrichment.fn("key", HOSTILE, {"version": 3, "drift": []}, [f"skipped {HOSTILE}\n# big", "2 rows"])
    published.fn("features", [], f"Features of {HOSTILE}")
    text, *tables = made
    shown = "&lt;img src=x onerror=alert\\(1\\)&gt; \\[look\\]\\(javascript:alert\\(1\\)\\)"
    assert text["markdown"] == f"### {shown}, version 3\n\n- skipped {shown} \\# big\n- 2 rows"
    assert [table["description"] for table in tables] == [f"Shares of features of {shown}", f"Features of {shown}"]
