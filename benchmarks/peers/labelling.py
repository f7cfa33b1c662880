"""Labels per second and tokens per label, and what becomes of labels when something goes wrong."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmarks.cases import table
from benchmarks.peers.environments import python_of
from benchmarks.peers.running import OURS, Bench, Case, Killed, Outcome, Tool

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
    rates = {tool: max(rate_of(one) for one in done) for tool, done in outcomes.items()}
    return [Measured(tool, done[-1], rates[tool]) for tool, done in outcomes.items()]


def rate_of(outcome: Outcome) -> float:
    return outcome.right / outcome.seconds if outcome.seconds else 0.0


SPEED_HEAD = ["tool", "labels a second, of the fastest", "tokens per label", "of ours", "USD, of ours", "requests"]
SPEED_HEAD += ["right labels", "seconds beside", "versions"]


def speed_table(results: Sequence[Measured]) -> str:
    fastest = max(one.rate for one in results)
    own = next((one for one in results if one.tool == OURS or one.tool.module == OURS.module), None)
    rows = []
    for one in results:
        done = one.outcome
        if not done.right:
            rows.append([one.tool.name, done.note or "no labels", *[""] * (len(SPEED_HEAD) - 2)])
            continue
        against = [f"{one.per_label / own.per_label:.2f}", f"{done.usd / own.outcome.usd:.2f}"] if own else ["", ""]
        figures = [f"{one.rate / fastest:.2f}", f"{one.per_label:.1f}", *against, f"{done.requests:,}"]
        versions = ", ".join(f"{name} {version}" for name, version in done.versions.items())
        rows.append([one.tool.name, *figures, f"{done.right / done.wanted:.1%}", f"{done.beside:.0f}", versions])
    return table(SPEED_HEAD, rows)


def speed_verdicts(case: Case, results: Sequence[Measured]) -> list[tuple[str, bool]]:
    """What is wanted of us, and whether it is so."""
    own = [one for one in results if one.tool.module == OURS.module]
    others = [one for one in results if one.tool.module != OURS.module and one.usable]
    if not own or not others:
        return []
    fast = own[0].rate / max(one.rate for one in [*own, *others])
    frugal = own[0].per_label / min(one.per_label for one in others)
    return [
        (f"{case.name}: labels a second at least {FAST} of the fastest: {fast:.2f}", fast >= FAST),
        (f"{case.name}: tokens per label at most {FRUGAL} of the next best: {frugal:.2f}", frugal <= FRUGAL),
    ]


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


HAZARD_HEAD = ["tool", "killed: answers paid twice", "under way then, paid again", "answers before", "complete after"]
HAZARD_HEAD += ["spent of a budget", "labels for it", "10 % bad replies: labels lost", "wrong", "tokens, of a calm run"]


def hazard_table(results: Sequence[Hazards]) -> str:
    rows = []
    for one in results:
        killed, bad = one.killed, one.bad
        spent = f"{one.spent:.0%}" if one.limited else f"has none: {one.spent:.0%}"
        bought = f"{one.limited.right:,} of {one.limited.wanted:,}" if one.limited else ""
        complete = "yes" if killed.outcome.right == killed.outcome.wanted else f"no: {killed.outcome.note or 'lost'}"
        dear = f"{bad.tokens / one.whole.tokens:.2f}" if one.whole.tokens else ""
        crashed = f" ({bad.note})" if bad.note and not bad.right else ""
        after = [f"{killed.again:,}", f"{killed.in_flight:,}", f"{killed.before:,}", complete]
        rows.append(
            [one.tool.name, *after, spent, bought, f"{bad.lost:,} of {bad.wanted:,}{crashed}", f"{bad.wrong:,}", dear]
        )
    return table(HAZARD_HEAD, rows)


def hazard_verdicts(results: Sequence[Hazards]) -> list[tuple[str, bool]]:
    own = [one for one in results if one.tool.module == OURS.module]
    others = [one for one in results if one.tool.module != OURS.module]
    if not own:
        return []
    one = own[0]
    paying = [other.tool.name for other in others if other.killed.again]
    beside = f"paid twice by {', '.join(paying)}" if paying else "no other tool pays twice either"
    return [
        (f"answers paid twice after a kill: {one.killed.again} ({beside})", one.killed.again == 0),
        (f"overshoot of the budget: {max(0.0, one.spent - 1):.0%}", one.spent <= 1),
        (f"labels lost or wrong with bad replies: {one.bad.lost} and {one.bad.wrong}", one.bad.right == one.bad.wanted),
    ]


def installed(tools: Sequence[Tool]) -> tuple[list[Tool], list[str]]:
    """Those that can run, and what to do about the others."""
    there = [tool for tool in tools if python_of(tool.environment) is not None]
    missing = dict.fromkeys(tool.environment for tool in tools if tool not in there)
    return there, [f"{name}: not installed: python -m benchmarks.peers --setup {name}" for name in missing]


def without_prefect(tools: Sequence[Tool]) -> list[Tool]:
    return [replace(tool, variant="plain") if tool.module == OURS.module else tool for tool in tools]


def tell(what: str) -> None:
    print(what, file=sys.stderr, flush=True)
