"""What the command line leaves behind is what was recorded: `python -m tests.golden --write CASE` records it again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.golden.__main__ import WRITER
from tests.golden.cases import CASES, result_of
from tests.golden.may_differ import MASKED, MOST, differences, masked
from tests.golden.reading import written

FOLDER = Path(__file__).parent


def recorded(name: str) -> Any:
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.usefixtures("sampling_number")
@pytest.mark.parametrize("name", CASES)
def test_nothing_has_changed(
    name: str, prefect_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    assert prefect_url
    monkeypatch.setenv("COLUMNS", "100")
    found = result_of(CASES[name], tmp_path)
    if request.config.pluginmanager.has_plugin(WRITER):
        (FOLDER / f"{name}.json").write_text(written(found), encoding="utf-8")
    changed = differences(recorded(name), found)
    assert not changed, "\n".join([f"tests/golden/{name}.json:", *changed])


def test_every_case_is_recorded_and_nothing_else() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == CASES.keys()


def test_a_run_that_was_killed_differs_from_an_undisturbed_one_in_what_it_paid_itself_only() -> None:
    result = recorded("resume_after_kill")
    (told,) = [command for command in result["commands"] if "differs from the undisturbed run" in command]
    fields = {": ".join(line.split(": ")[:2]) for line in told["differs from the undisturbed run"]}
    own = {"run.json: cached_calls", "run.json: cost_usd", "run.json: paid_calls"}
    assert {field for field in fields if not field.endswith(".usd")} == own
    (calm,) = [command["printed"] for command in result["commands"] if command.get("command", "").startswith("costs")]
    assert paid_by_kind(calm) == paid_by_kind(result["books"])


def paid_by_kind(books: list[dict[str, Any]]) -> dict[str, list[int]]:
    """Micro-dollars and calls that were paid, of all runs together."""
    kinds = sorted({line["kind"] for line in books})
    return {
        kind: [sum(line[field] for line in books if line["kind"] == kind) for field in ("paid", "paid_calls")]
        for kind in kinds
    }


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.lifelike])
def test_the_books_are_those_of_the_server(name: str) -> None:
    result = recorded(name)
    paid = sum(line["paid"] for line in result["books"]) / 1e6
    assert paid == pytest.approx(result["books of the server"]["usd"], abs=2e-6)


@pytest.mark.parametrize("name", CASES)
def test_every_changed_field_is_named(name: str) -> None:
    """Each in turn: another value, a field less, a field more."""
    result = recorded(name)
    book = result["books"][0]
    for change, told in (
        ({"paid": book["paid"] + 1}, f"books: [0].paid: {book['paid']} != {book['paid'] + 1}"),
        ({"kind": "guess"}, f"books: [0].kind: {book['kind']!r} != 'guess'"),
        ({"new": 1}, "books: [0].new: new, is 1"),
    ):
        assert differences(result, result | {"books": [book | change, *result["books"][1:]]}) == [told]
    less = {key: value for key, value in book.items() if key != "requests"}
    assert differences(result, result | {"books": [less, *result["books"][1:]]}) == [
        f"books: [0].requests: missing, was {book['requests']}"
    ]


def test_one_label_one_file_and_one_row_are_named() -> None:
    result = recorded("discover_zoo_crowd")
    table = result["run/labels.csv"]
    feature = min(table["labels"])
    labels = table["labels"][feature]
    flipped = ("1" if labels[0] == "0" else "0") + labels[1:]
    changed = result | {"run/labels.csv": table | {"labels": table["labels"] | {feature: flipped}}}
    assert differences(result, changed) == [f"run/labels.csv: labels.{feature}: {labels!r} != {flipped!r}"]
    assert differences(result, {key: value for key, value in result.items() if key != "run/run.json"}) == [
        "run/run.json: missing"
    ]
    assert differences(result, result | {"run/more.csv": []}) == ["run/more.csv: new"]
    assert differences(result, result | {"books": result["books"][1:]})[0].startswith("books: length: ")


def test_at_most_thirty_are_told() -> None:
    lines = differences({"file": list(range(40))}, {"file": list(range(1, 41))})
    assert len(lines) == MOST + 1
    assert lines[-1] == "and 10 more"


def test_numbers_may_be_rounded_otherwise_but_a_number_is_no_text() -> None:
    assert differences({"file": [0.1]}, {"file": [0.1 + 1e-12]}) == []
    assert differences({"file": [0.001234]}, {"file": [0.001235]}) == ["file: [0]: 0.001234 != 0.001235"]
    assert differences({"file": {"probability": [0.5]}}, {"file": {"probability": [0.5004]}}) == []
    assert differences({"file": [1]}, {"file": [True]}) == ["file: [0]: 1 != True"]


def test_what_may_differ_is_masked_and_nothing_else() -> None:
    result = {
        "run.json": {"run_id": "a", "seconds": 1.5, "g": 0.5, "versions": {"numpy": "2"}, "finished_at": None},
        "live.jsonl": [{"at": "now", "message": "see /tmp/x/run at http://127.0.0.1:8080/v1", "look_at": {"n": 1}}],
        f"data-{'a' * 16}.csv": [],
    }
    assert masked(result, Path("/tmp/x")) == {
        "run.json": {
            "run_id": MASKED,
            "seconds": MASKED,
            "g": 0.5,
            "versions": {"numpy": MASKED},
            "finished_at": None,
        },
        "live.jsonl": [{"at": MASKED, "message": "see FOLDER/run at http://127.0.0.1:PORT/v1", "look_at": {"n": 1}}],
        "data-DIGEST.csv": [],
    }
