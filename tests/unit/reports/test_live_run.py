"""Whoever follows a run reads what is new of its file, and reads it anew where the run has written it anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from twothirds.reports.run import LiveRun


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "live.jsonl"
    path.write_text("")
    return path


def write(path: Path, *events: dict[str, Any], anew: bool = False) -> None:
    with path.open("w" if anew else "a", encoding="utf-8") as file:
        file.writelines(json.dumps(event, ensure_ascii=False) + "\n" for event in events)


def numbered(first: int, last: int, **more: Any) -> list[dict[str, Any]]:
    return [{"kind": "state", "number": number} | more for number in range(first, last)]


def test_a_look_reads_only_what_is_new(path: Path) -> None:
    live = LiveRun(path)
    write(path, *numbered(0, 50, name="Größe"))
    assert len(live.events()) == 50
    before = path.stat().st_size
    write(path, *numbered(50, 53))
    with path.open("r+b") as file:
        file.write(b"x" * (before // 2))  # whoever read this again would stumble
    assert live.events(50) == numbered(50, 53)
    assert live.events(53) == []
    write(path, *numbered(53, 54))
    assert live.events(53) == numbered(53, 54)


def test_a_line_that_is_not_finished_is_left_for_the_next_look(path: Path) -> None:
    live = LiveRun(path)
    write(path, *numbered(0, 2))
    with path.open("a") as file:
        file.write('{"kind": "state", ')
    assert live.events() == numbered(0, 2)
    assert live.events(2) == []
    with path.open("a") as file:
        file.write('"number": 2}\n')
    assert live.events(2) == numbered(2, 3)


@pytest.mark.parametrize("longer", [0, 1, 9], ids=["shorter", "as long", "longer"])
def test_a_file_that_is_written_anew_is_read_anew(path: Path, longer: int) -> None:
    live = LiveRun(path)
    write(path, *numbered(0, 6, run="first one"))
    assert len(live.events()) == 6
    write(path, *numbered(0, 5 + longer, run="second"), anew=True)
    assert live.events(6) == numbered(6, 5 + longer, run="second")
    write(path, *numbered(5 + longer, 20, run="second"))
    assert live.events(6) == numbered(6, 20, run="second")


def test_one_joins_in_the_middle_and_goes_back(path: Path) -> None:
    live = LiveRun(path)
    write(path, *numbered(0, 8))
    assert live.events(5) == numbered(5, 8)
    assert live.begun == numbered(0, 1)[0]
    assert live.events(8) == []
    assert live.events(2, most=3) == numbered(2, 5)
    assert live.events(5) == numbered(5, 8)
