"""axe-core, where it is installed: tests/install_axe.sh fetches it from npm, and the page itself never needs it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Error, Page

SCRIPT = Path(__file__).parents[1] / "node_modules" / "axe-core" / "axe.min.js"
MISSING = "axe-core is not installed: run tests/install_axe.sh"
SERIOUS = ("serious", "critical")
RULES = "{rules: {'target-size': {enabled: true}}}"  # WCAG 2.2 has it, and axe has it switched off
TRIES = 5  # a page that waits for questions is another one as soon as there are some


def violations(page: Page) -> list[str]:
    """All that WCAG 2.2 AA and good practice find fault with, as lines."""
    return serious_violations(page, impacts=("minor", "moderate", *SERIOUS))


def serious_violations(page: Page, impacts: Sequence[str] = SERIOUS) -> list[str]:
    """What axe finds of serious or critical impact on the page, as lines. Skips the test where axe is missing."""
    if not SCRIPT.exists():
        if os.environ.get("CI"):
            pytest.fail(MISSING)
        return []
    for _ in range(TRIES):
        try:
            page.wait_for_load_state()
            found = _violations(page)
            break
        except Error as error:
            gone = error
    else:
        raise gone
    return [
        f"{one['id']}: {node['target']} {node.get('failureSummary', '')}"
        for one in found
        if one["impact"] in impacts
        for node in one["nodes"]
    ]


def _violations(page: Page) -> list[Any]:
    session = page.context.new_cdp_session(page)  # past the page's own policy, which forbids foreign scripts
    session.send("Runtime.enable")
    session.send("Runtime.evaluate", {"expression": SCRIPT.read_text(encoding="utf-8")})
    reply: dict[str, Any] = session.send(
        "Runtime.evaluate",
        {
            "expression": f"axe.run({RULES}).then(r => JSON.parse(JSON.stringify(r.violations)))",
            "awaitPromise": True,
            "returnByValue": True,
        },
    )
    session.detach()
    found = reply["result"]["value"]
    assert isinstance(found, list)
    return found
