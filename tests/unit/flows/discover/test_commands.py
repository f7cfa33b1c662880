"""What people may want of a run is a closed set; what is wrong with a command is reported in one line at its field."""

from __future__ import annotations

from typing import Any

import pytest

from twothirds.flows.discover.commands import COMMANDS, ChangeBudget, CommandProblem, read_command, read_line

WHOLE: dict[str, dict[str, Any]] = {
    "stop": {},
    "veto": {"name": "beard"},
    "add": {"name": "beard", "definition": "Hair on the chin."},
    "ask": {"examples": ["a", "b", "c"]},
    "budget": {"usd": "2.50"},
}


def command(action: str, **changed: Any) -> dict[str, Any]:
    return {"action": action, "by": "Ann", "at": "now"} | WHOLE.get(action, {}) | changed


def test_every_wish_is_written_as_it_was_read() -> None:
    assert set(WHOLE) == set(COMMANDS)
    for action in COMMANDS:
        read = read_command(command(action))
        assert read_line(read.model_dump(mode="json")) == read
        assert read.words


@pytest.mark.parametrize(
    ("given", "field", "said"),
    [
        (command("explode"), "action", "unknown command 'explode'"),
        (command("veto", name=" \u202e\x00 "), "name", "name: it is empty"),
        (command("add", name="x" * 201), "name", "name: it has 201 characters: shorten it to 200"),
        (command("add", definition="x" * 501), "definition", "shorten it to 500"),
        (command("ask", examples=["a", "b"]), "examples", "choose three different examples: 2 were given"),
        (command("ask", examples=["a", "b", "b"]), "examples", "one was given twice"),
        (command("budget", usd="much"), "usd", "'much' is not a sum in USD"),
        (command("budget", usd="0"), "usd", "more than 0 USD"),
        (command("budget", usd="-1"), "usd", "more than 0 USD"),
        (command("stop", by=7), "by", "by: input should be a valid string"),
    ],
)
def test_what_is_wrong_is_said_at_its_field(given: dict[str, Any], field: str, said: str) -> None:
    with pytest.raises(CommandProblem) as problem:
        read_command(given)
    assert problem.value.field == field
    assert said in str(problem.value)
    assert "\n" not in str(problem.value)
    assert read_line(given) is None, "such a line steers nothing"


def test_names_are_lines_of_visible_characters() -> None:
    assert read_command(command("add", name=" red\n\u202ehat\x00 ")).model_dump()["name"] == "red hat"
    assert read_command(command("add", name="می\u200cخواهم")).model_dump()["name"] == "می\u200cخواهم"


def test_a_budget_is_the_same_however_it_is_written() -> None:
    read = read_command(command("budget", usd="2.50"))
    assert isinstance(read, ChangeBudget)
    assert read.words == "allows 2.5 USD in all"
    assert read_command(command("budget", usd=2.5)) == read
