"""Every command of docs/strategies.md is run, without a server, and every option of a strategy is on that page."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from uuid import uuid4

import pytest

from twothirds.discovery.strategies import STRATEGIES
from twothirds.flows.cli.app import build_app
from twothirds.flows.cli.options import read_options
from twothirds.flows.discover.preparation import prepare
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.discover.settings import OF_THE_STRATEGY, DiscoverSettings

ROOT = Path(__file__).parents[4]
PAGE = (ROOT / "docs" / "strategies.md").read_text(encoding="utf-8")
COMMANDS = [line for block in re.findall(r"^```sh\n(.*?)^```$", PAGE, re.DOTALL | re.M) for line in block.splitlines()]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_commands_of_the_page_work(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "datasets").symlink_to(ROOT / "datasets")
    words = shlex.split(command)
    assert words[:2] == ["twothirds", "discover"]
    _, given, _ = build_app().parse_args([*words[1:], "--store", "store.sqlite"])
    settings = read_options(given.arguments, DiscoverSettings)
    outcome = run_discovery(prepare(settings), run_id=str(uuid4()))
    assert outcome.summary().features > 5


def test_every_strategy_and_option_is_on_the_page() -> None:
    for name in ("strategy", "voters", "elicit_on", "label_rest", *OF_THE_STRATEGY):
        assert name in DiscoverSettings.model_fields
        assert f"--{name.replace('_', '-')}" in PAGE, name
    for name in STRATEGIES:
        assert f"`{name}" in PAGE, name
