"""Test the paper's claims, tables and figures on simulated crowds, and write the page that says what came out."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.cases import at_least_one
from benchmarks.paper import experiments, independent, trees
from benchmarks.paper.claim import FULL, QUICK, Finding, Scale, processes, run_trials
from benchmarks.paper.page import CLAIMS, write_page

TOPICS = {topic.name: topic for module in (trees, independent, experiments) for topic in module.TOPICS}


def replicate(folder: Path, scale: Scale, seed: int, process_count: int) -> dict[str, Finding]:
    """What came out by the name of the claim; the page and its plots are written to the folder."""
    planned = {name: TOPICS[name].plan(scale, seed) for name in CLAIMS}
    progress = _Progress(sum(len(trials.seeds) for plan in planned.values() for trials in plan))
    findings = {}
    with processes(process_count) as pool:
        for name, plan in planned.items():
            tested = run_trials(plan, pool, lambda name=name: progress.advance(name))  # type: ignore[misc]
            finding = TOPICS[name].judge(scale, tested)
            findings[name] = replace(finding, runs=finding.runs or sum(len(results) for _, results in tested))
    quick = " --quick" if scale is not FULL else ""
    size = "fewer and smaller simulations than without `--quick`" if quick else "the full run"
    command = f"python -m benchmarks.paper{quick} --seed {seed}"
    write_page(folder, findings, f"Written on {datetime.now(UTC).date()} by `{command}`: {size}.")
    return findings


class _Progress:
    """A line on stderr every few seconds."""

    def __init__(self, total: int) -> None:
        self._total, self._done = total, 0
        self._began = self._reported = time.monotonic()

    def advance(self, name: str) -> None:
        self._done += 1
        now = time.monotonic()
        if now - self._reported >= 5:
            self._reported = now
            left = (now - self._began) / self._done * (self._total - self._done)
            print(f"{self._done:,} of {self._total:,} simulations: {name}, {left:.0f} s left", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paper", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer simulations: two minutes, not up to an hour")
    parser.add_argument("--out", type=Path, default=Path("docs/replication"), help="folder of the page and its plots")
    parser.add_argument("--seed", type=int, default=0, help="seed of every random choice, from 0")
    parser.add_argument("--processes", type=at_least_one, default=2, help="the results do not depend on it")
    options = parser.parse_args(arguments)
    if options.seed < 0:
        parser.error("--seed must not be negative")
    try:
        options.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"cannot write to {options.out} ({error.strerror}): give another folder with --out")
    findings = replicate(options.out, QUICK if options.quick else FULL, options.seed, options.processes)
    for name, finding in findings.items():
        print(f"{finding.verdict}: {name}: {CLAIMS[name]['title']} ({finding.runs:,} runs)")
    print(f"written to {options.out}")


if __name__ == "__main__":
    main()
