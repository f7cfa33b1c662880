"""One tool runs the benchmarks, writes their results as JSON lines and renders the page."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks import __main__ as tool
from benchmarks.results import RESULTS, RealModel, Result, Table, last_of_each_table, read_results

Printed = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry that counts to --size, of which 100 is wanted."""
    documented = tool.documentation
    monkeypatch.setattr(tool, "documentation", lambda name: ["Counts."] if name == "tiny" else documented(name))

    def add_options(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--size", type=int, default=99)

    def run(options: argparse.Namespace) -> list[Table]:
        missed = ["a size of 100"] if options.size < 100 else []
        return [Table("Counting", ["size", "result"], [[options.size, {"mean": 1.5, "error": 0.2}]], [], missed)]

    module = ModuleType("tiny_benchmark")
    vars(module).update(QUICK={"size": 2}, add_options=add_options, run=run, __doc__="Counts.")
    monkeypatch.setitem(sys.modules, "tiny_benchmark", module)
    monkeypatch.setitem(tool.ENTRIES, "tiny", "tiny_benchmark")


def test_every_entry_is_listed_with_one_line(capsys: Printed) -> None:
    assert tool.main(["--help"]) == 0
    listed = capsys.readouterr().out.splitlines()
    for name in (*tool.ENTRIES, "paper"):
        assert [line for line in listed if line.split()[:1] == [name] and line.endswith(".")], name
    assert tool.main(["no-such-benchmark"]) == 2


def test_a_quick_run_writes_a_line_with_its_figures_and_where_they_are_from(tmp_path: Path, capsys: Printed) -> None:
    assert tool.run_entry("tiny", ["--quick", "--results", str(tmp_path)]) == 0, "too small to judge by targets"
    [line] = (tmp_path / "tiny.jsonl").read_text(encoding="utf-8").splitlines()
    record = json.loads(line)
    assert record["command"] == "python -m benchmarks tiny --quick"
    assert {"date", "commit", "machine"} <= record.keys()
    assert record["tables"][0]["rows"] == [[2, {"mean": 1.5, "error": 0.2}]]
    assert "| 2 | 1.5 ± 0.2 |" in capsys.readouterr().out


def test_a_missed_target_is_in_the_exit_status_and_on_the_page(tmp_path: Path) -> None:
    assert tool.run_entry("tiny", ["--results", str(tmp_path)]) == 1
    assert "Target missed: a size of 100." in tool.page(tmp_path)
    assert tool.run_entry("tiny", ["--results", str(tmp_path), "--size", "100"]) == 0
    page = tool.page(tmp_path)
    assert "Target missed" not in page
    assert "## tiny\n\nCounts.\n\n### Counting\n\n`python -m benchmarks tiny --size 100`;" in page


def test_paths_of_a_machine_are_not_written() -> None:
    line = tool.command_line("strategies", ["/data/of/somebody/flags.csv", "--seeds", "8"])
    assert line == "python -m benchmarks strategies flags.csv --seeds 8"


def test_a_quick_result_is_shown_only_where_there_is_no_other(tmp_path: Path) -> None:
    def result(number: int, *titles: str, quick: bool = False) -> Result:
        tables = [Table(title, ["n"], [[number]]) for title in titles]
        return Result("2026-01-01", "abc", f"run {number}", "machine", quick, tables)

    results = [result(1, "a", quick=True), result(2, "a", "b"), result(3, "a", "c", quick=True)]
    for one in results:
        one.append_to(tmp_path / "x.jsonl")
    assert read_results(tmp_path / "x.jsonl") == results
    shown = {table.title: origin.command for origin, table in last_of_each_table(results)}
    assert shown == {"a": "run 2", "b": "run 2", "c": "run 3"}


def test_figures_of_real_models_stand_in_one_table_with_their_commands_and_dates(tmp_path: Path) -> None:
    def result(command: str, figure: str) -> Result:
        found = RealModel(model="CLIP", data="stamps", figure=figure, does_not_show="photographs")
        return Result("2026-01-01", "abc", command, "machine", False, [Table("a", ["n"], [[1]], real_models=[found])])

    assert "With real models" not in tool.page(tmp_path)
    result("run 1", "AUC 0.5").append_to(tmp_path / "tiny.jsonl")
    result("run 2", "AUC 0.9").append_to(tmp_path / "tiny.jsonl")
    page = tool.page(tmp_path)
    assert "| CLIP | stamps | `run 2` | 2026-01-01 | AUC 0.9 | photographs |" in page
    assert "AUC 0.5" not in page


def test_the_page_is_what_the_results_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(tool.ENTRIES, "tiny")
    assert tool.PAGE.read_text(encoding="utf-8") == tool.page(RESULTS), "run: python -m benchmarks render"
