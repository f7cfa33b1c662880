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
after the published descriptions (benchmarks/peers/finding.py), each with the same purse: tags for every example that
are merged; LLooM's stages (Lam et al. 2024); VisDiff's differences of two groups (Dunlap et al. 2024). The server names
attributes of the truth and merges tags almost without error, which is kinder to tags than a model is."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.cases import at_least_one
from benchmarks.data import draw_faces, write_texts
from benchmarks.machine import ROOT, tell
from benchmarks.peers.finding import OPTIONS, STYLES, found_by
from benchmarks.peers.running import OURS, TOOLS, Bench, Case, Killed, Outcome, Tool, pinned, python_of, set_up
from benchmarks.results import Cell, Table, mean_of

DATA = {"zoo": ("datasets/zoo/animals.csv", 0.05), "faces": ("datasets/faces", 1.0)}  # and the budget in USD
QUICK = {"texts": 40, "pictures": 10, "hazards": 40, "rounds": 1, "seeds": 1, "data": ["zoo"]}
BAD = 0.10  # share of replies
BUDGET_SHARE = 0.4  # of what a tool's undisturbed run costs
FAST, FRUGAL = 0.95, 0.5  # what is wanted: of the fastest, and of the next best's tokens


@dataclass(frozen=True)
class Measured:
    tool: Tool
    outcome: Outcome
    rate: float  # labels per second, the best of all rounds

    @property
    def per_label(self) -> float:
        return self.outcome.tokens / self.outcome.wanted

    @property
    def usable(self) -> bool:
        return self.outcome.right == self.outcome.wanted


def measured(bench: Bench, case: Case, tools: Sequence[Tool], rounds: int) -> list[Measured]:
    """The tools take turns, so that a busy machine is busy for all of them."""
    outcomes: dict[Tool, list[Outcome]] = {tool: [] for tool in tools}
    for number in range(rounds):
        for tool in tools:
            tell(f"{case.name}: {tool.name}")
            outcomes[tool].append(bench.run(tool, case, f"{case.name}-{tool.module}{tool.variant}-{number}"))
    rates = {tool: max(rate_of(outcome) for outcome in done) for tool, done in outcomes.items()}
    return [Measured(tool, done[-1], rates[tool]) for tool, done in outcomes.items()]


def rate_of(outcome: Outcome) -> float:
    return outcome.right / outcome.seconds if outcome.seconds else 0.0


SPEED_COLUMNS = ["tool", "labels a second, of the fastest", "tokens per label", "of ours", "USD, of ours", "requests"]
SPEED_COLUMNS += ["right labels", "seconds beside", "versions"]


def speed_table(case: Case, results: Sequence[Measured]) -> Table:
    fastest = max(result.rate for result in results)
    own = next((result for result in results if result.tool.module == OURS.module), None)
    rows: list[list[Cell]] = []
    for result in results:
        done = result.outcome
        if not done.right:
            rows.append([result.tool.name, done.note or "no labels", *[None] * (len(SPEED_COLUMNS) - 2)])
            continue
        ratios = (
            [round(result.per_label / own.per_label, 2), round(done.usd / own.outcome.usd, 2)] if own else [None] * 2
        )
        versions = ", ".join(f"{name} {version}" for name, version in done.versions.items())
        rows.append(
            [
                result.tool.name,
                round(result.rate / fastest, 2) if fastest else None,
                round(result.per_label, 1),
                *ratios,
                done.requests,
                f"{done.right / done.wanted:.1%}",
                round(done.beside),
                versions,
            ]
        )
    note = f"{len(case.dataset.examples):,} {case.name} × {len(case.names)} features."
    return Table(f"Labels of {case.name}", SPEED_COLUMNS, rows, [note], missed_speed(case, results))


def missed_speed(case: Case, results: Sequence[Measured]) -> list[str]:
    """What is wanted of us and is not so."""
    own = [result for result in results if result.tool.module == OURS.module]
    others = [result for result in results if result.tool.module != OURS.module and result.usable]
    if not own or not others:
        return []
    fast = own[0].rate / max(result.rate for result in [*own, *others])
    frugal = own[0].per_label / min(result.per_label for result in others)
    missed = [f"{case.name}: labels a second at least {FAST} of the fastest: {fast:.2f}"] if fast < FAST else []
    return missed + (
        [f"{case.name}: tokens per label at most {FRUGAL} of the next best: {frugal:.2f}"] if frugal > FRUGAL else []
    )


@dataclass(frozen=True)
class Hazards:
    tool: Tool
    calm: Outcome  # nothing went wrong
    killed: Killed
    limited: Outcome | None  # None: the tool has no budget
    bad: Outcome

    @property
    def spent(self) -> float:
        """Of the budget."""
        return (self.limited or self.calm).usd / (BUDGET_SHARE * self.calm.usd)


def hazards_of(bench: Bench, case: Case, tool: Tool) -> Hazards:
    name = f"{tool.module}{tool.variant}"
    tell(f"{tool.name}: undisturbed")
    calm = bench.run(tool, case, f"calm-{name}")
    tell(f"{tool.name}: killed")
    killed = bench.killed(tool, case, f"killed-{name}")
    limited = None
    if tool.budget:
        tell(f"{tool.name}: with a budget")
        limited = bench.run(tool, case, f"limited-{name}", budget=round(BUDGET_SHARE * calm.usd, 6))
    tell(f"{tool.name}: with bad replies")
    return Hazards(tool, calm, killed, limited, bench.run(tool, case, f"bad-{name}", bad=BAD))


HAZARD_COLUMNS = ["tool", "killed: answers paid twice", "under way then, paid again", "answers before"]
HAZARD_COLUMNS += ["complete after", "spent of a budget", "labels for it", "10 % bad replies: labels lost", "wrong"]
HAZARD_COLUMNS += ["tokens, of a calm run"]


def hazard_table(case: Case, results: Sequence[Hazards]) -> Table:
    rows = []
    for result in results:
        killed, bad = result.killed, result.bad
        complete = "yes" if killed.outcome.right == killed.outcome.wanted else f"no: {killed.outcome.note or 'lost'}"
        crashed = f" ({bad.note})" if bad.note and not bad.right else ""
        rows.append(
            [
                result.tool.name,
                killed.again,
                killed.in_flight,
                killed.before,
                complete,
                f"{result.spent:.0%}" if result.limited else f"has none: {result.spent:.0%}",
                f"{result.limited.right:,} of {result.limited.wanted:,}" if result.limited else None,
                f"{bad.lost:,} of {bad.wanted:,}{crashed}",
                bad.wrong,
                round(bad.tokens / result.calm.tokens, 2) if result.calm.tokens else None,
            ]
        )
    note = f"{len(case.dataset.examples):,} {case.name} × {len(case.names)} features."
    return Table("Killed, with a budget, with bad replies", HAZARD_COLUMNS, rows, [note], missed_hazards(results))


def missed_hazards(results: Sequence[Hazards]) -> list[str]:
    missed = []
    for own in (result for result in results if result.tool.module == OURS.module):
        if own.killed.again:
            missed.append(f"{own.killed.again} answers paid twice after a kill")
        if own.spent > 1:
            missed.append(f"{own.spent:.0%} of the budget spent")
        if own.bad.right < own.bad.wanted:
            missed.append(f"{own.bad.lost} labels lost and {own.bad.wrong} wrong with bad replies")
    return missed


def installed(tools: Sequence[Tool]) -> tuple[list[Tool], list[str]]:
    """Those that can run, and what to do about the others."""
    there = [tool for tool in tools if python_of(tool.environment) is not None]
    missing = dict.fromkeys(tool.environment for tool in tools if tool not in there)
    return there, [f"{name}: not installed: python -m benchmarks peers --setup {name}" for name in missing]


def without_prefect(tools: Sequence[Tool]) -> list[Tool]:
    return [replace(tool, variant="plain") if tool.module == OURS.module else tool for tool in tools]


def labels(options: argparse.Namespace, folder: Path) -> list[Table]:
    tools = [tool for tool in chosen_tools(options) if tool.variant != "cached"]  # it sends what its twin sends
    bench, tables = Bench(folder, options.seed), []
    for name, count in (("texts", options.texts), ("pictures", options.pictures)):
        if not count or not tools:
            continue
        draw = write_texts(folder, count, options.features, options.seed) if name == "texts" else None
        case = Case(name, draw or draw_faces(folder, count, options.seed), options.features)
        results = measured(bench, case, tools, options.rounds)
        tables.append(speed_table(case, results))
    return tables


def hazards(options: argparse.Namespace, folder: Path) -> list[Table]:
    """With four requests at a time and a quick server, so that there are many before and after a kill."""
    tools = chosen_tools(options)
    if not tools:
        return []
    bench = Bench(folder, options.seed, concurrency=4, first=0.1, per_token=0.002)
    case = Case("texts", write_texts(folder, options.hazards, options.features, options.seed), options.features)
    return [hazard_table(case, [hazards_of(bench, case, tool) for tool in tools])]


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
    tools, missing = installed(without_prefect(wanted) if options.plain else wanted)
    for line in missing:
        tell(line)
    return tools


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--setup", nargs="+", choices=[*pinned(), "all"], help="install these tools, nothing else")
    parser.add_argument("--only", nargs="+", choices=MEASURES, default=list(MEASURES))
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
    for measure in options.only:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
            tables += MEASURES[measure](options, Path(name))
    return tables
