"""What callers from Python see: settings in help, progress in a notebook, and packages of their own beside ours."""

from __future__ import annotations

import inspect
import subprocess
import sys
import types
from pathlib import Path

import pytest

from tests.support.api_stub import PLACE, stub
from twothirds.flows.api import enrich
from twothirds.flows.discover.flow import discover
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.flows.enrich.settings import EnrichSettings
from twothirds.flows.events import SILENT
from twothirds.flows.subscribers.notebook import events_for_python

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(("function", "model"), [(discover, DiscoverSettings), (enrich, EnrichSettings)])
def test_help_lists_every_setting_with_its_type_and_meaning(function: object, model: type[DiscoverSettings]) -> None:
    signature = inspect.signature(function)  # type: ignore[arg-type]
    assert list(signature.parameters) == [*model.model_fields, "yes"]
    assert signature.parameters["votes"].default == 1
    assert signature.parameters["votes"].annotation is int
    assert "Annotated" not in str(signature)
    for name, field in model.model_fields.items():
        assert f"    {name}: {field.description}" in (function.__doc__ or "")


def test_editors_know_the_settings_of_today() -> None:
    assert PLACE.read_text(encoding="utf-8") == stub(), "write it anew: python -m tests.support.api_stub"


class Cell:
    """What a notebook shows below a cell: printed lines, and lines that change."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def display(self, line: str, display_id: bool) -> Cell:
        assert display_id
        self.lines.append(line)
        return self

    def update(self, line: str) -> None:
        self.lines[-1] = line


def test_a_notebook_shows_one_line_that_changes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cell, shell, shown = Cell(), types.ModuleType("IPython"), types.ModuleType("IPython.display")
    shell.get_ipython = lambda: types.SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    shown.Pretty, shown.display = str, cell.display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", shown)
    events = events_for_python()
    with events.waiting("reading faces"):
        assert cell.lines == ["reading faces …"]
    events.say("3 answers are stored already")
    with events.counting(35, "queries") as show:
        show(1, "1 feature")
        assert cell.lines == ["1/35 queries: 1 feature"]
        show(2, "2 features\x1b[31m")  # too soon after the other to be shown at once
    with events.waiting("writing the report"):
        assert len(cell.lines) == 2, "what was counted stays"
    assert cell.lines[0].startswith("2/35 queries: 2 features")
    assert cell.lines[1] == "writing the report: done"
    assert "\x1b" not in cell.lines[0]
    assert capsys.readouterr().out == "3 answers are stored already\n"


def test_a_script_and_a_terminal_shell_are_shown_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert events_for_python() is SILENT
    shell = types.ModuleType("IPython")
    shell.get_ipython = lambda: types.SimpleNamespace()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", shell)
    assert events_for_python() is SILENT


def test_packages_of_a_project_that_are_called_as_folders_of_ours_are_left_alone(tmp_path: Path) -> None:
    for name in ("models", "tasks", "store", "flows"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise AssertionError('imported by twothirds')")
    words = [sys.executable, "-m", "twothirds", "oracles", "openai"]
    environment = {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
