"""Test the paper's claims, tables and figures on simulated crowds, and write the page that says what came out."""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.cases import at_least_one
from benchmarks.machine import tell
from benchmarks.paper import experiments, independent, trees
from benchmarks.paper.claim import FULL, QUICK, ClaimTable, Finding, Scale, processes, run_trials
from benchmarks.paper.plots import svg_of

TOPICS = {topic.name: topic for module in (trees, independent, experiments) for topic in module.TOPICS}
CLAIMS: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("claims.toml").read_text(encoding="utf-8"))
INTRODUCTION = """# The paper, replicated

{written}

The paper is James Y. Zou, Kamalika Chaudhuri and Adam Tauman Kalai, *Crowdsourcing Feature Discovery via Adaptively
Chosen Comparisons* (HCOMP 2015, arXiv:1504.00064). Its propositions and lemmas are tested here on simulated crowds, and
its table and figures are repeated with them. Verdicts are computed from the runs. Intervals are 95 % confidence
intervals (Wilson's for shares, order statistics for medians, the normal one for means). Lemmas have the numbers of the
printed paper. The verdict *holds only as read here* means that the text needs a condition or a correction, which is
named below.
"""


def replicate(folder: Path, scale: Scale, seed: int, process_count: int) -> dict[str, Finding]:
    """What came out by the name of the claim; the page and its plots are written to the folder."""
    findings = {}
    with processes(process_count) as pool:
        for place, name in enumerate(CLAIMS, start=1):
            plan = TOPICS[name].plan(scale, seed)
            tell(f"{place} of {len(CLAIMS)}: {name}, {sum(len(trials.seeds) for trials in plan):,} simulations")
            tested = run_trials(plan, pool)
            finding = TOPICS[name].judge(scale, tested)
            findings[name] = replace(finding, runs=finding.runs or sum(len(results) for _, results in tested))
    quick = " --quick" if scale is not FULL else ""
    size = "fewer and smaller simulations than without `--quick`" if quick else "the full run"
    command = f"python -m benchmarks.paper{quick} --seed {seed}"
    write_page(folder, findings, f"Written on {datetime.now(UTC).date()} by `{command}`: {size}.")
    return findings


def write_page(folder: Path, findings: Mapping[str, Finding], written: str) -> None:
    """README.md and its pictures. `written` is the one line that may differ between two runs of the same command."""
    pictures = {name: picture for finding in findings.values() for name, picture in finding.pictures.items()}
    pictures |= {name: svg_of(plot) for finding in findings.values() for name, plot in finding.plots.items()}
    for name, text in (pictures | {"README.md": page_of(findings, written)}).items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")


def page_of(findings: Mapping[str, Finding], written: str) -> str:
    """The findings by the name of their claim."""
    rows = [
        (f"[{name}](#{_anchor(name)}): {CLAIMS[name]['title']}", f"{finding.runs:,}", finding.verdict)
        for name, finding in findings.items()
    ]
    remarks = [f"- **{name}.** {remark}" for name in findings for remark in CLAIMS[name].get("remarks", ())]
    lines = [INTRODUCTION.format(written=written), "## Summary\n", *_table(ClaimTable("claim | runs | verdict", rows))]
    lines += ["## Where the paper's text is wrong or loose\n", *remarks, ""]
    for name, finding in findings.items():
        lines += _section(name, finding)
    return "\n".join(lines).rstrip() + "\n"


def _section(name: str, finding: Finding) -> list[str]:
    title, claim = CLAIMS[name]["title"], CLAIMS[name]["claim"]
    pictures = dict.fromkeys(finding.pictures, f"{name}: {title}")
    pictures |= {picture: plot.alt for picture, plot in finding.plots.items()}
    return [
        f"## {name}\n",
        f"*{title}*\n",
        f"**Claim.** {claim}\n",
        f"**Simulated.** {finding.simulated}\n",
        f"**Runs.** {finding.runs:,}\n",
        *(line for table in finding.tables for line in _table(table)),
        *(f"![{alt}]({picture})\n" for picture, alt in pictures.items()),
        f"**Verdict: {finding.verdict}.** {finding.because[0].upper()}{finding.because[1:]}\n",
    ]


def _table(table: ClaimTable) -> list[str]:
    headings = table.headings.split(" | ")
    rows = ["| " + " | ".join(map(str, row)) + " |" for row in (headings, ["---"] * len(headings), *table.rows)]
    return [*([table.caption + "\n"] if table.caption else []), *rows, ""]


def _anchor(name: str) -> str:
    """As GitHub makes it of the heading, which is plain ASCII."""
    return name.lower().replace(".", "").replace(" ", "-")


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
