"""The page that `replicate` writes: every claim of the paper, what was simulated, and what came out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from reports.drawing import svg_of
from reports.replicate import (
    algorithm_1,
    figure_3,
    lemma_4_4,
    lemma_5_3,
    lemma_5_4,
    lemmas_5_1_5_2,
    proposition_4_3,
    proposition_6_1,
    propositions_4_1_4_2,
    table_1,
)
from reports.replicate.claim import ClaimResult, ClaimTable, Topic

TOPICS: tuple[Topic, ...] = (
    *algorithm_1.TOPICS,
    *propositions_4_1_4_2.TOPICS,
    *proposition_4_3.TOPICS,
    *lemma_4_4.TOPICS,
    *lemmas_5_1_5_2.TOPICS,
    *lemma_5_3.TOPICS,
    *lemma_5_4.TOPICS,
    *proposition_6_1.TOPICS,
    *figure_3.TOPICS,
    *table_1.TOPICS,
)

_ABOUT = """# The paper, replicated

{written}

The paper is James Y. Zou, Kamalika Chaudhuri and Adam Tauman Kalai, *Crowdsourcing Feature Discovery via Adaptively
Chosen Comparisons* (HCOMP 2015, arXiv:1504.00064). Its propositions and lemmas are tested here on simulated crowds, and
its table and figures are repeated with them. Verdicts are computed from the runs. Intervals are 95 % confidence
intervals (Wilson's for shares, order statistics for medians, the normal one for means). Lemmas have the numbers of the
printed paper. The verdict *holds only as read here* means that the text needs a condition or a correction, which is
named below.
"""


def write_page(folder: Path, findings: Sequence[ClaimResult], written: str) -> Path:
    """README.md and its pictures. `written` is the one line that may differ between two runs of the same command."""
    folder.mkdir(parents=True, exist_ok=True)
    for finding in findings:
        for name, plot in finding.plots.items():
            (folder / name).write_text(svg_of(plot), encoding="utf-8", newline="\n")
        for name, picture in finding.pictures.items():
            (folder / name).write_text(picture, encoding="utf-8", newline="\n")
    page = folder / "README.md"
    page.write_text(page_of(findings, written), encoding="utf-8", newline="\n")
    return page


def page_of(findings: Sequence[ClaimResult], written: str) -> str:
    summary = ClaimTable(
        ("claim", "runs", "verdict"),
        [
            (f"[{_name(finding)}](#{_anchor(finding)}): {_about(finding)}", f"{finding.runs:,}", finding.verdict)
            for finding in findings
        ],
    )
    parts = [_ABOUT.format(written=written), "## Summary\n", *_table(summary), _wrong_or_loose(findings)]
    parts += [_section(finding) for finding in findings]
    return "\n".join(parts).rstrip() + "\n"


def _wrong_or_loose(findings: Sequence[ClaimResult]) -> str:
    lines = ["## Where the paper's text is wrong or loose\n"]
    for finding in findings:
        lines += [f"- **{_name(finding)}.** {remark}" for remark in finding.remarks]
    return "\n".join([*lines, ""])


def _section(finding: ClaimResult) -> str:
    lines = [
        f"## {_name(finding)}\n",
        f"*{_about(finding)}*\n",
        f"**Claim.** {finding.claim}\n",
        f"**Simulated.** {finding.simulated}\n",
        f"**Runs.** {finding.runs:,}\n",
    ]
    for table in finding.tables:
        lines += _table(table)
    for name, plot in finding.plots.items():
        lines.append(f"![{plot.alt}]({name})\n")
    for name in finding.pictures:
        lines.append(f"![{finding.title}]({name})\n")
    lines.append(f"**Verdict: {finding.verdict}.** {finding.because[0].upper()}{finding.because[1:]}\n")
    return "\n".join(lines)


def _table(table: ClaimTable) -> list[str]:
    rows = ["| " + " | ".join(row) + " |" for row in (table.headings, ["---"] * len(table.headings), *table.rows)]
    return [*([table.caption + "\n"] if table.caption else []), *rows, ""]


def _name(finding: ClaimResult) -> str:
    return finding.title.partition(": ")[0]


def _about(finding: ClaimResult) -> str:
    return finding.title.partition(": ")[2]


def _anchor(finding: ClaimResult) -> str:
    """As GitHub makes it of the heading, which is plain ASCII."""
    return _name(finding).lower().replace(".", "").replace(" ", "-")
