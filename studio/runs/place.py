"""A run as one place: what stands above all of its tabs, whether it goes on or has ended."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from twothirds.reports.export import FILES
from twothirds.reports.run import without_paths
from twothirds.studio.catalog import OpenRun
from twothirds.studio.web import duration, plural, usd

Tab = tuple[str, str, str, str]  # name, address, how many, and whether that is bad


@dataclass(frozen=True)
class Place:
    """`title` is the data set, `about` one line below it, `chips` words with a style. `finished`: it has results."""

    key: str
    folder: str
    title: str
    about: str
    chips: Sequence[tuple[str, str]]
    tabs: Sequence[Tab]
    kind: str  # texts or images
    finished: bool
    again: bool = False  # it says how it was started, so that it can go on
    reported: bool = False
    formats: Sequence[str] = ()


def finished_place(opened: OpenRun) -> Place:
    summary, findings = opened.run.summary, opened.run.findings
    to_check = opened.to_check
    judged = f", judged by labels {summary.of_sampled}" if summary.of_sampled else ""
    chips = [(f"{plural(findings.counting, 'feature')} to use{judged}", "good")]
    if summary.truth is not None:
        chips.append((f"truth {summary.truth.matched} of {summary.truth.of}", "good"))
    if to_check:
        chips.append((f"{plural(to_check, 'label')} to check", "bad"))
    noun = "text" if any(opened.texts) else "picture"
    oracle = f"{summary.oracle.kind}:{summary.oracle.model}" if summary.oracle.model else summary.oracle.kind
    about = [plural(len(findings.ids), noun), without_paths(oracle), plural(summary.queries, "question")]
    about += [duration(summary.seconds), usd(summary.total_usd)]
    address = f"/runs/{opened.key}"
    return Place(
        key=opened.key,
        folder=opened.folder.name,
        title=summary.dataset.name,
        about=" · ".join(about),
        chips=chips,
        tabs=[
            ("Features", address, f"{len(findings.found):,}", ""),
            ("Examples", f"{address}/browse", f"{len(findings.ids):,}", ""),
            ("Check labels", f"{address}/correct", f"{to_check:,}" if to_check else "", "bad"),
            ("Structure", f"{address}/structure", "", ""),
            ("Discovery", f"{address}/discovery", f"{summary.queries:,}", ""),
            ("Settings & log", f"{address}/settings", "", ""),
        ],
        kind="texts" if any(opened.texts) else "images",
        finished=True,
        again=opened.watched,
        reported=(opened.folder / "report.html").is_file(),
        formats=FILES,
    )


def unfinished_place(key: str, folder: str, begun: dict[str, object], state: str, kind: str) -> Place:
    address = f"/runs/{key}"
    return Place(
        key=key,
        folder=folder,
        title=str(begun.get("name", folder)),
        about=without_paths(str(begun.get("oracle", ""))),
        chips=[(state, "busy" if state == "running" else "")],
        tabs=[
            ("Discovery", f"{address}/discovery", "", ""),
            ("Examples", f"{address}/browse", "", ""),
            ("Settings & log", f"{address}/settings", "", ""),
        ],
        kind=kind,
        finished=False,
        again=state != "running",
    )


def written(value: object) -> str:
    """A setting as a page shows it."""
    if value is None or value == "":
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return without_paths(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
