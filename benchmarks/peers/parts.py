"""twothirds beside the tools that one would pick instead, all asking one local server that keeps a book.

The server (tests/support/fake_openai) reads the prompts, tools and JSON schemas of all of them, answers from the known
truth after a quarter of a second and 5 ms for each token that it writes, and counts tokens by OpenAI's rules with the
prices of gpt-4o-mini. Each tool is used as its own documentation does, by a small program in benchmarks/peers/tools,
with the same examples, features, definitions and requests in flight. Tools are pinned in
benchmarks/peers/packages.toml; `--setup all` installs each into an environment of its own in the user's cache folder.
A tool that is not installed is skipped.

*labels*: all answers are right. *Labels a second* are by the server's clock, from the first question to the last
answer; *seconds beside* are the rest of the program's time.

*hazards*: with four requests in flight. *Killed*: SIGKILL when half of the labels are answered, then the same command
again; *paid twice* are answers that had left the server half a second before the kill and were charged again. *Budget*:
40 % of what the tool's own whole run costs. *Bad replies*: one in ten is prose, or lacks half of the labels.

*finding*: attributes of the truth that some feature's labels agree with (balanced accuracy of 0.9 for labels that are
known for at least 80 % of the examples), for at most the same money. The server is noisy here. Other ways are prompts
after the published descriptions (benchmarks/peers/prompts.py), each with the same purse: tags for every example that
are merged; LLooM's stages (Lam et al. 2024); VisDiff's differences of two groups (Dunlap et al. 2024). The server names
attributes of the truth and merges tags almost without error, which is kinder to tags than a model is."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.cases import at_least_one
from benchmarks.data import draw_faces, write_texts
from benchmarks.machine import ROOT, tell
from benchmarks.peers import labelling
from benchmarks.peers.environments import pinned, set_up
from benchmarks.peers.finding import OPTIONS, found_by
from benchmarks.peers.running import OURS, TOOLS, Bench, Case, Tool
from benchmarks.peers.styles import STYLES
from benchmarks.results import Table, mean_of

PARTS = ("labels", "hazards", "finding")
DATA = {"zoo": ("datasets/zoo/animals.csv", 0.05), "faces": ("datasets/faces", 1.0)}  # and the budget in USD
QUICK = {"texts": 40, "pictures": 10, "hazards": 40, "rounds": 1, "seeds": 1, "data": ["zoo"]}


def labels(options: argparse.Namespace, folder: Path) -> list[Table]:
    tools = [tool for tool in chosen_tools(options) if tool.variant != "cached"]  # it sends what its twin sends
    bench, tables = Bench(folder, options.seed), []
    for name, count in (("texts", options.texts), ("pictures", options.pictures)):
        if not count or not tools:
            continue
        draw = write_texts(folder, count, options.features, options.seed) if name == "texts" else None
        case = Case(name, draw or draw_faces(folder, count, options.seed), options.features)
        results = labelling.measured(bench, case, tools, options.rounds)
        tables.append(labelling.speed_table(case, results))
    return tables


def hazards(options: argparse.Namespace, folder: Path) -> list[Table]:
    """With four requests at a time and a quick server, so that there are many before and after a kill."""
    tools = chosen_tools(options)
    if not tools:
        return []
    bench = Bench(folder, options.seed, concurrency=4, first=0.1, per_token=0.002)
    case = Case("texts", write_texts(folder, options.hazards, options.features, options.seed), options.features)
    return [labelling.hazard_table(case, [labelling.hazards(bench, case, tool) for tool in tools])]


def finding(options: argparse.Namespace, _folder: Path) -> list[Table]:
    tables = []
    for data in options.data:
        spec, budget = DATA[data]
        rows, own = [], 0.0
        for way in (*OPTIONS, *STYLES):
            tell(f"{data}: {way}")
            done = [found_by(way, str(ROOT / spec), budget, options.seed + number) for number in range(options.seeds)]
            count, usd = np.mean([each.found for each in done]), np.mean([each.usd for each in done])
            own = own or float(count / usd)
            named = round(float(np.mean([each.named for each in done])))
            money = [round(float(usd), 4), round(float(count / usd)), round(float(count / usd / own), 2)]
            rows.append([way, mean_of([each.found for each in done], 1), done[0].of, named, *money])
        columns = ["way", "attributes found", "of", "features named", "USD spent", "found per USD", "of ours"]
        note = f"At most {budget:.2f} USD, {options.seeds} seeds."
        tables.append(Table(f"Features found for the same money, {data}", columns, rows, [note]))
    return tables


MEASURES = {"labels": labels, "hazards": hazards, "finding": finding}


def chosen_tools(options: argparse.Namespace) -> list[Tool]:
    wanted = [tool for tool in TOOLS if not options.tools or (tool.environment or OURS.name) in options.tools]
    tools, missing = labelling.installed(labelling.without_prefect(wanted) if options.plain else wanted)
    for line in missing:
        tell(line)
    return tools


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--setup", nargs="+", choices=[*pinned(), "all"], help="install these tools, nothing else")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--tools", nargs="+", choices=[OURS.name, *pinned()], help="default: all")
    parser.add_argument("--texts", type=int, default=300, help="labels")
    parser.add_argument("--pictures", type=int, default=100, help="labels")
    parser.add_argument("--hazards", type=at_least_one, default=120, help="hazards: texts")
    parser.add_argument("--features", type=at_least_one, default=20)
    parser.add_argument("--rounds", type=at_least_one, default=2, help="labels: the best of so many counts")
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA), help="finding")
    parser.add_argument("--seeds", type=at_least_one, default=3, help="finding")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plain", action="store_true", help="twothirds without Prefect, which takes seconds to start")


def run(options: argparse.Namespace) -> list[Table]:
    if options.setup:
        names = list(pinned()) if "all" in options.setup else options.setup
        if failed := {name: problem for name in names if (problem := set_up(name))}:
            raise SystemExit("\n".join(f"{name}: {problem}" for name, problem in failed.items()))
        return []
    tables = []
    for part in options.only:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
            tables += MEASURES[part](options, Path(name))
    return tables
