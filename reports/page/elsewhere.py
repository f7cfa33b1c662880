"""A run on pages that are not ours, which have room for Markdown alone: what was found, with pictures in the text."""

from __future__ import annotations

import html
from collections.abc import Iterable

import numpy as np

from twothirds.reports.page.browser_data import MIME, thumbnails
from twothirds.reports.run import Findings, FoundFeature
from twothirds.sources import Dataset, Example

MOST_FEATURES, PICTURES, SIDE = 20, 4, 72  # features that are shown, pictures of each, pixels of a picture


def markdown_of(findings: Findings, dataset: Dataset, lines: Iterable[str], curves: str = "") -> str:
    """`curves` is the data URL of a drawing. No text of an example is in it: other people may read the page."""
    by_id = {example.id: example for example in dataset.examples}
    shown = findings.found[:MOST_FEATURES]
    examples = [
        [by_id.get(findings.ids[row]) for row in np.flatnonzero(feature.labels == 1)[:PICTURES]] for feature in shown
    ]
    written = [*(f"- {plain_markdown(line)}" for line in lines), ""]
    written += [f"![how they were found]({curves})", ""] if curves else []
    written += ["| feature | definition | has it | examples |", "|---|---|---|---|"]
    written += [_row(feature, pictured) for feature, pictured in zip(shown, examples, strict=True)]
    if len(findings.found) > MOST_FEATURES:
        written.append(f"\nand {len(findings.found) - MOST_FEATURES} more")
    return "\n".join(written)


def _row(found: FoundFeature, examples: list[Example | None]) -> str:
    thumbs = thumbnails(examples, SIDE) if examples else []
    pictures = [f"![](data:{MIME};base64,{picture})" for picture in thumbs if picture]
    share = f"{found.positives:,} of {found.labelled:,}"
    return f"| {plain_markdown(found.name)} | {plain_markdown(found.definition)} | {share} | {' '.join(pictures)} |"


def plain_markdown(text: str) -> str:
    """What Markdown or HTML would take for a mark is shown as it is."""
    escaped = html.escape(" ".join(text.split()))
    return "".join(f"\\{letter}" if letter in "\\`*_{}[]()#+!|~" else letter for letter in escaped)
