"""Run folders that nothing of ours wrote: every command that reads one says so in one line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.run_folders import make_run
from twothirds.flows.cli.app import main
from twothirds.reports.finished_run import Run
from twothirds.sources.printable import printable

COMMANDS = (
    ["tree"],
    ["features", "list"],
    ["report"],
    ["export", "--to", "wide-csv,tidy-csv,jsonl,card,tree-json,doubtful"],
)
VALUES: tuple[Any, ...] = (None, 7, "\x1b[2J../../x", [], {}, [None], True, -1e308)
DEEP = "[" * 100_000


@pytest.fixture
def run(tmp_path: Path) -> Run:
    (tmp_path / "t.csv").write_text("id,text\n" + "".join(f"e{number},text {number}\n" for number in range(6)))
    matrix = np.array([[1, 1, 0, 0, 1, 0], [0, 1, 1, 0, 0, 1]], np.int8)
    ids = [f"e{number}" for number in range(6)]
    return make_run(tmp_path / "run", str(tmp_path / "t.csv"), ids, ["round", "red"], matrix)


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield at
    inner = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for name, one in inner:
        yield from places(one, (*at, name))


def changed(text: str, at: tuple[Any, ...], new: Any) -> str:
    value = json.loads(text)
    if not at:
        return json.dumps(new)
    inner = value
    for name in at[:-1]:
        inner = inner[name]
    inner[at[-1]] = new
    return json.dumps(value)


def assert_reported(folder: Path, capsys: pytest.CaptureFixture[str], what: object) -> None:
    for name, *options in COMMANDS:
        status = main([name, str(folder), *options])
        said = capsys.readouterr().err
        assert status in (0, 2), (what, name, said)
        assert said.count("error: ") == (status == 2), (what, name, said)
        assert all(printable(line) == line for line in said.split("\n"))


@pytest.mark.parametrize("name", ["run.json", "answers.jsonl"])
@pytest.mark.slow
def test_a_value_of_another_kind_anywhere_is_one_line(run: Run, capsys: pytest.CaptureFixture[str], name: str) -> None:
    path = run.folder / name
    lines = path.read_text().split("\n") if name == "answers.jsonl" else [path.read_text()]
    for at in places(json.loads(lines[0])):
        for new in VALUES:
            path.write_text("\n".join([changed(lines[0], at, new), *lines[1:]]))
            assert_reported(run.folder, capsys, (at, new))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *(("run.json", content) for content in ("[]", "{}", "7", DEEP, '{"a":' + "9" * 10_000 + "}", "\x00")),
        *(("answers.jsonl", content) for content in (DEEP, "1\n2\n", '{"question": {}, "answer": {}}')),
        *(("features.csv", content) for content in ("", "order,name\n1,x\n", "\x00\xff", "a,a\n1,2,3\n")),
        *(("labels.parquet", content) for content in ("", "PAR1")),
        *(("corrections.jsonl", content) for content in ("{}", "[]", '{"label": 7, "origins": [[7]]}', DEEP)),
        *(("curation.jsonl", content) for content in ("{}", "[]", '{"action": "rename", "arguments": 7}', DEEP)),
    ],
)
def test_a_file_of_another_kind_is_one_line(
    run: Run, capsys: pytest.CaptureFixture[str], name: str, content: str
) -> None:
    (run.folder / name).write_text(content, encoding="latin-1")
    assert_reported(run.folder, capsys, name)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda run: run.pop("g_curve"), "g_curve: Field required"),
        (lambda run: run["dataset"].update(examples="100"), "dataset.examples: Input should be a valid integer"),
        (lambda run: run["dataset"].update(left_out=[7]), "dataset.left_out.0: Input should be an object"),
        (lambda run: run.update(oracle=[]), "oracle: Input should be an object"),
        (lambda run: run.update(paid_calls=True), "paid_calls: Input should be a valid integer"),
    ],
)
def test_what_is_wrong_with_a_summary_is_named(
    run: Run, capsys: pytest.CaptureFixture[str], change: Callable[[dict[str, Any]], object], problem: str
) -> None:
    summary = json.loads((run.folder / "run.json").read_text())
    change(summary)
    (run.folder / "run.json").write_text(json.dumps(summary))
    assert main(["report", str(run.folder)]) == 2
    assert f"is not what discover writes ({problem}): run discover again" in capsys.readouterr().err
