"""One tool for all benchmarks.

    python -m benchmarks NAME [--quick] [options]    run one; its options: python -m benchmarks NAME --help
    python -m benchmarks NAME NAME … [--quick]       several, each in a process of its own; `all` for all of them
    python -m benchmarks render                      write docs/results.md from the results

Each run adds a line to benchmarks/results/NAME.jsonl: date, commit, command, machine and the tables. The exit status is
1 where a target is missed; `--quick` is too small to judge by targets."""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from typing import Any

from benchmarks.machine import ROOT, commit, machine, tell
from benchmarks.results import RESULTS, Cell, Result, Table, last_of_each_table, read_results

PAGE = ROOT / "docs" / "results.md"
# each module has QUICK, the options that --quick sets, and the functions `add_options` and `run`
ENTRIES = {
    "strategies": "benchmarks.strategies",
    "target": "benchmarks.target",
    "duplicates": "benchmarks.duplicates",
    "price": "benchmarks.price",
    "estimates": "benchmarks.estimates",
    "predicted": "benchmarks.predicted",
    "clip": "benchmarks.clip",
    "scale": "benchmarks.scale",
    "store": "benchmarks.store",
    "enrichment": "benchmarks.enrichment",
    "start": "benchmarks.start",
    "real": "benchmarks.real",
    "openai": "benchmarks.openai",
    "peers": "benchmarks.peers.measures",
}
PAPER = "paper"  # has a page of its own: docs/replication
NAMES = (*ENTRIES, PAPER)
HEAD = """# Results

What `python -m benchmarks NAME` has measured, written by `python -m benchmarks render` from benchmarks/results. Each
table is the last of its kind, with the command, the date, the commit, and the machine. *Busy* means that other programs
were running: compare times within a table only. *Shared* means that it was not noted whether they were.

`python -m benchmarks paper` holds the claims of the paper against simulations: see
[replication](replication/README.md).
"""
REAL_MODELS = """## With real models

What models that others have trained did in the whole program, good or bad: the sections below have the whole tables."""


def main(arguments: Sequence[str]) -> int:
    names = list(takewhile((*NAMES, "all").__contains__, arguments))
    options = list(arguments[len(names) :])
    if arguments and arguments[0] == "render":
        PAGE.write_text(page(RESULTS), encoding="utf-8")
        tell(f"written to {PAGE.relative_to(ROOT)}")
        return 0
    if not names:
        print(listing())
        return 0 if not options or options[0] in ("-h", "--help") else 2
    if names == [PAPER]:
        return int(import_module("benchmarks.paper.__main__").main(options) or 0)
    if len(names) == 1 and names != ["all"]:
        return run_entry(names[0], options)
    return run_several(list(NAMES) if "all" in names else names, options)


def run_several(names: Sequence[str], options: Sequence[str]) -> int:
    failed = []
    for name in names:
        tell(f"{name} …")
        if subprocess.run([sys.executable, "-m", "benchmarks", name, *options], check=False, cwd=ROOT).returncode:
            failed.append(name)
    if failed:
        tell(f"failed, or missed a target: {', '.join(failed)}")
    return 1 if failed else 0


def run_entry(name: str, arguments: Sequence[str]) -> int:
    module = import_module(ENTRIES[name])
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks {name}",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help=f"a small size: {small(module.QUICK)}")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FOLDER", help="where NAME.jsonl is written")
    module.add_options(parser)
    if "--quick" in arguments:
        parser.set_defaults(**module.QUICK)
    options = parser.parse_args(arguments)
    date, state = datetime.now(UTC).date().isoformat(), machine()
    tables: list[Table] = module.run(options)
    if options.quick:  # targets are those of the full size
        tables = [replace(table, missed=[]) for table in tables]
    if not tables:
        return 0
    result = Result(date, commit(), command_line(name, arguments), state, options.quick, tables)
    result.append_to(options.results / f"{name}.jsonl")
    print(section(name, [(result, table) for table in tables]))
    return 1 if any(table.missed for table in tables) else 0


def small(options: Mapping[str, Any]) -> str:
    """What --quick sets, as it would be typed."""
    values = {name: value if isinstance(value, list) else [value] for name, value in options.items()}
    return " ".join(" ".join([f"--{name}", *map(str, value)]) for name, value in values.items()) or "as without it"


def command_line(name: str, arguments: Sequence[str]) -> str:
    """As it was called; of paths elsewhere only the names, and not where the results were written."""
    words = [Path(word).name if Path(word).is_absolute() else word for word in arguments]
    if "--results" in words:
        place = words.index("--results")
        del words[place : place + 2]
    return " ".join(["python -m benchmarks", name, *words])


def documentation(name: str) -> list[str]:
    """The paragraphs of an entry's docstring, which is read without importing what the entry needs."""
    path = ROOT.joinpath(*ENTRIES[name].split(".")).with_suffix(".py")
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split("\n\n")


def listing() -> str:
    lines = [f"  {name:12} {documentation(name)[0]}" for name in ENTRIES]
    lines.append(f"  {PAPER:12} The claims of the paper, held against simulations: docs/replication.")
    return "\n".join([(__doc__ or "").strip(), "", *lines])


def section(name: str, tables: Sequence[tuple[Result, Table]]) -> str:
    texts = [f"## {name}", *documentation(name)]
    for result, table in tables:
        origin = f"`{result.command}`; {result.date}, {result.commit}; {result.machine}."
        texts.append(f"### {table.title}\n\n{origin}\n\n{table.markdown()}")
    return "\n\n".join(texts)


def page(folder: Path) -> str:
    tables = {name: last_of_each_table(read_results(folder / f"{name}.jsonl")) for name in ENTRIES}
    sections = [section(name, shown) for name, shown in tables.items()]
    return "\n".join([HEAD, *(f"{text}\n" for text in [with_real_models(tables.values()), *sections] if text)])


def with_real_models(results: Iterable[Sequence[tuple[Result, Table]]]) -> str:
    """One table of what all benchmarks have found with real models."""
    rows: list[list[Cell]] = [
        [found.model, found.data, f"`{result.command}`", result.date, found.figure, found.does_not_show]
        for tables in results
        for result, table in tables
        for found in table.real_models
    ]
    columns = ["model", "data", "command", "date", "figure", "what it does not show"]
    return f"{REAL_MODELS}\n\n{Table('', columns, rows).markdown()}" if rows else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
