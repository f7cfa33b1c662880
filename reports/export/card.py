"""A data set card: where the labels come from, what they cost, and what they cannot do. HuggingFace's library writes
its head, a template the rest; it names no path of this machine."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from twothirds.discovery import UNKNOWN
from twothirds.reports.export.content import Export
from twothirds.reports.label_table import Source
from twothirds.studio.web import percent, plural

TEMPLATE = Path(__file__).with_name("card.md.jinja")
MARKDOWN = re.compile(r"([\\`*_{}\[\]<>()#|~!&$])")
SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


def plain(text: object) -> str:
    """Any text as a line of Markdown that shows it and nothing else."""
    return MARKDOWN.sub(r"\\\1", " ".join(str(text).split())).replace("://", ":\u200b//")


def card_of(export: Export, configs: Sequence[dict[str, Any]] | None = None) -> str:
    """`configs` says which files a library loads."""
    from huggingface_hub import DatasetCard, DatasetCardData

    labels, size = export.labels, len(export.labels)
    head = DatasetCardData(
        pretty_name=f"{export.dataset} with discovered features",
        tags=["twothirds", "feature-discovery", "machine-generated-labels"],
        size_categories=[next((name for limit, name in SIZES if size < limit), "1M<n<10M")],
        configs=list(configs) if configs else None,
    )
    card = DatasetCard.from_template(
        head,
        template_path=str(TEMPLATE),
        dataset=export.dataset,
        examples=size,
        rows=_rows(export),
        attributes=export.attributes,
        provenance=export.provenance,
        changes=export.changes,
        predicted=int((labels.source == Source.PREDICTED).sum()),
        known=int((labels.value != UNKNOWN).sum()),
        certificates=export.certificates,
        uncertified=len(export.predicted) - len(export.certificates),
        limits=_limits(export),
        plain=plain,
        percent=percent,
        plural=plural,
    )
    return f"{str(card).rstrip()}\n"


def _rows(export: Export) -> list[dict[str, Any]]:
    rows = []
    for place, feature in enumerate(export.labels.features):
        value, source = export.labels.value[place], export.labels.source[place]
        known = int((value != UNKNOWN).sum())
        found = export.findings.found[place] if export.findings else None
        rows.append(
            {
                "name": feature.name,
                "column": export.columns[place],
                "definition": feature.definition,
                "share": int((value == 1).sum()) / max(known, 1),
                "unknown": len(value) - known,
                "predicted": int((source == Source.PREDICTED).sum()),
                "doubtful": f"{int(found.doubtful.sum()):,}" if found and found.doubt_is_known else "not known",
            }
        )
    return rows


def _doubt(export: Export) -> str:
    """How many labels are doubtful, of those of which it is known."""
    if export.findings is None:
        return "A table keeps no votes: which of its labels are doubtful is not known."
    found = export.findings.found
    judged = [feature for feature in found if feature.doubt_is_known]
    if not judged:
        return "Each label is one vote: which of them are doubtful is not known. Several votes (`--votes 3`) tell."
    doubtful = sum(int(feature.doubtful.sum()) for feature in judged)
    known, others = sum(feature.labelled for feature in judged), len(found) - len(judged)
    return (
        f"{doubtful:,} of {known:,} labels are doubtful: a third of the votes or more went the other way, or the "
        "votes did not decide. `export --to doubtful` lists them."
        + (f" Of {plural(others, 'feature')} with one vote per label it is not known." if others else "")
    )


def _limits(export: Export) -> list[str]:
    value = export.labels.value
    labelled = int(np.count_nonzero((value != UNKNOWN).any(axis=0)))
    start = "Labels that are not predicted are" if export.predicted else "Labels are"
    lines = [
        f"{start} the oracle's answers; no person checked them unless it says so above.",
        _doubt(export),
        "The features are those that came up while telling examples apart. Nothing says that they are complete, and a "
        "feature of one single example cannot come up in a question about two of three.",
        "Features are correlated; a share says nothing about any other data set.",
    ]
    if export.left_out:
        lines.append(plain(f"{export.left_out_line}."))
    if len(value) and labelled < len(export.labels):
        lines.append(f"Only {labelled:,} of {len(export.labels):,} examples were labelled.")
    if export.simulated:
        lines.append(
            "The oracle is a simulated crowd that answers from known attributes: these labels are for testing."
        )
    return lines
