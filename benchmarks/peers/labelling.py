"""Labels per second and tokens per label, and what becomes of labels when something goes wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmarks.machine import tell
from benchmarks.peers.environments import python_of
from benchmarks.peers.running import OURS, Bench, Case, Killed, Outcome, Tool
from benchmarks.results import Cell, Table

BAD = 0.10  # share of replies
PART = 0.4  # of what a tool's whole run costs: the budget
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
    whole: Outcome
    killed: Killed
    limited: Outcome | None  # None: the tool has no budget
    bad: Outcome

    @property
    def spent(self) -> float:
        """Of the budget."""
        return (self.limited or self.whole).usd / (PART * self.whole.usd)


def hazards(bench: Bench, case: Case, tool: Tool) -> Hazards:
    name = f"{tool.module}{tool.variant}"
    tell(f"{tool.name}: whole")
    whole = bench.run(tool, case, f"whole-{name}")
    tell(f"{tool.name}: killed")
    killed = bench.killed(tool, case, f"killed-{name}")
    limited = None
    if tool.budget:
        tell(f"{tool.name}: with a budget")
        limited = bench.run(tool, case, f"limited-{name}", budget=round(PART * whole.usd, 6))
    tell(f"{tool.name}: with bad replies")
    return Hazards(tool, whole, killed, limited, bench.run(tool, case, f"bad-{name}", bad=BAD))


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
                round(bad.tokens / result.whole.tokens, 2) if result.whole.tokens else None,
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
