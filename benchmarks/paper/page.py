"""The page docs/replication: every claim of the paper, what was simulated, and what came out."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.paper.claim import ClaimTable, Finding
from benchmarks.paper.plots import svg_of

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
