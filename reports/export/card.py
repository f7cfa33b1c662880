"""A data set card: where the labels come from, what they cost, and what they cannot do."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from twothirds.reports.curation import checked_by_people, effective, read_log
from twothirds.reports.export.content import ExportContent
from twothirds.reports.finished_run import Run
from twothirds.reports.run import Findings, public_source, without_paths
from twothirds.studio.web import percent, plural, usd

MARKDOWN = re.compile(r"([\\`*_{}\[\]<>()#|~!&$])")


def plain(text: object) -> str:
    """Any text as a line of Markdown that shows it and nothing else."""
    return MARKDOWN.sub(r"\\\1", " ".join(str(text).split())).replace("://", ":\u200b//")


def card_of(content: ExportContent, header: Mapping[str, Any] | None = None) -> str:
    """Markdown with a YAML head, as HuggingFace reads it. It names no path of this machine."""
    run, findings, summary = content.run, content.findings, content.run.summary
    name = summary.dataset.name
    head = {
        "pretty_name": f"{name} with discovered features",
        "tags": ["twothirds", "feature-discovery", "machine-generated-labels"],
        "size_categories": [_size(len(findings.ids))],
        **(header or {}),
    }
    yaml = "\n".join(f"{key}: {json.dumps(value)}" for key, value in head.items())  # JSON is YAML
    sections = [
        f"---\n{yaml}\n---",
        f"# {plain(name)} with discovered features",
        f"{plural(len(findings.found), 'feature')} of {plural(len(findings.ids), 'example')}. Each was named by an "
        "oracle that was shown a few examples and asked what sets them apart; then every example was labelled with it: "
        "1 has it, 0 lacks it, empty is unknown.",
        *_predicted(findings),
        "## Features",
        _features(findings),
        *(["## Attributes", _attributes(findings)] if findings.attributes else []),
        "## Where the labels come from",
        _provenance(run),
        *(["## Steered while it ran", _steered(run)] if run.summary.steered else []),
        *(["## Changes by hand", _curation(run)] if read_log(run.folder) else []),
        *(["## Labels corrected by people", _corrected(findings)] if any(f.corrected for f in findings.found) else []),
        "## Limits",
        _limits(content),
    ]
    return "\n\n".join(sections) + "\n"


def _predicted(findings: Findings) -> list[str]:
    """What is to be known of labels that are not the oracle's."""
    marked = [feature for feature in findings.found if feature.predicted.any()]
    if not marked:
        return []
    predicted = sum(int(feature.predicted.sum()) for feature in marked)
    known = sum(feature.labelled for feature in findings.found)
    certificates = [feature.certificate for feature in marked if feature.certificate]
    lines = [
        f"**{predicted:,} of {known:,} labels are predicted** by a classifier and were not put to the oracle: they are "
        "marked, with the probability of yes beside each of them."
    ]
    if certificates:
        agree, confidence = percent(certificates[0]["agree"]), percent(certificates[0]["confidence"])
        lines.append(
            f"Of {plural(len(certificates), 'feature')} together it is certified that at least {agree} of the "
            f"predicted labels are what the oracle would say, with a confidence of {confidence}."
        )
    if len(marked) > len(certificates):
        lines.append(f"Of {plural(len(marked) - len(certificates), 'feature')} changed by hand no certificate holds.")
    return [" ".join(lines)]


def _features(findings: Findings) -> str:
    lines = ["| feature | definition | have it | unknown | predicted | doubtful labels |", "|---|---|---|---|---|---|"]
    for feature in findings.found:
        known = feature.labelled
        doubtful = f"{int(feature.doubtful.sum()):,}" if feature.doubt_is_known else "not known"
        lines.append(
            f"| {plain(feature.name)} | {plain(feature.definition)} | {percent(feature.positives / max(known, 1))} "
            f"| {len(findings.ids) - known:,} | {int(feature.predicted.sum()):,} | {doubtful} |"
        )
    return "\n".join(lines)


def _attributes(findings: Findings) -> str:
    """Columns of categories, made of features that are values of one attribute."""
    lines = ["| attribute | definition | values | unknown |", "|---|---|---|---|"]
    for attribute in findings.attributes:
        values = ", ".join(f"{plain(name)} ({count:,})" for name, count in attribute.counts)
        lines.append(f"| {plain(attribute.name)} | {plain(attribute.definition)} | {values} | {attribute.unknown:,} |")
    return "\n".join(lines)


def _provenance(run: Run) -> str:
    summary, settings = run.summary, run.summary.settings
    oracle = summary.oracle
    parameters = without_paths(", ".join(f"{key} {value}" for key, value in oracle.parameters.items()))
    facts = {
        "data set": f"{public_source(summary)}, {plural(summary.dataset.examples, 'example')}",
        "content digest": summary.dataset.digest,
        "oracle": without_paths(f"{oracle.kind} {oracle.model}".strip()),
        "its parameters": parameters or "none",
        "version of the prompts": oracle.prompts or "none: the oracle reads no prompts",
        "how questions were chosen": f"{settings['strategy']}, seed {settings['seed']}",
        "questions": f"{summary.queries:,}, then at most {plural(settings['votes'], 'vote')} per label, by majority",
        "cost": f"{usd(summary.total_usd)} in all",
        "finished": summary.finished_at,
        "run": summary.run_id,
        "versions": ", ".join(f"{key} {value}" for key, value in summary.versions.items()),
    }
    return "\n".join(f"- **{key}**: {plain(value)}" for key, value in facts.items())


def _steered(run: Run) -> str:
    """What people wanted of the discovery, in the order in which it applied that."""
    return "\n".join(
        f"- {command.at[:10]} after {plural(command.after, 'question')}: {plain(f'{command.by} {command.words}')}"
        + (f" (rejected: {plain(command.rejected)})" if command.rejected else "")
        for command in run.summary.steered
    )


def _curation(run: Run) -> str:
    return "\n".join(
        f"- {entry.at[:10]} {entry.action}: {plain(json.dumps(entry.arguments, ensure_ascii=False))}"
        + (f", by {plain(entry.by)}" if entry.by else "")
        for entry in effective(read_log(run.folder))
    )


def _corrected(findings: Findings) -> str:
    lines = checked_by_people(findings.found).sentences()
    for feature in findings.found:
        if people := sorted({correction.by for correction in feature.corrected.values()}):
            lines.append(f"{plain(feature.name)}: {len(feature.corrected):,}, by {plain(', '.join(people))}")
    return "\n".join(f"- {line}" for line in lines)


def _doubt(findings: Findings) -> str:
    """How many labels are doubtful, of those of which it is known."""
    judged = [feature for feature in findings.found if feature.doubt_is_known]
    if not judged:
        return "Each label is one vote: which of them are doubtful is not known. Several votes (`--votes 3`) tell."
    doubtful = sum(int(feature.doubtful.sum()) for feature in judged)
    known = sum(feature.labelled for feature in judged)
    others = len(findings.found) - len(judged)
    return (
        f"{doubtful:,} of {known:,} labels are doubtful: a third of the votes or more went the other way, or the "
        "votes did not decide. `export --to doubtful` lists them."
        + (f" Of {plural(others, 'feature')} with one vote per label it is not known." if others else "")
    )


def _limits(content: ExportContent) -> str:
    findings, summary = content.findings, content.run.summary
    labelled = int(findings.labelled.sum())
    lines = [
        "Labels that are not predicted are the oracle's answers; no person checked them unless it says so above."
        if any(feature.predicted.any() for feature in findings.found)
        else "Labels are the oracle's answers; no person checked them unless it says so above.",
        _doubt(findings),
        "The features are those that came up while telling examples apart. Nothing says that they are complete, and a "
        "feature of one single example cannot come up in a question about two of three.",
        "Features are correlated; a share says nothing about any other data set.",
    ]
    if content.left_out:
        lines.append(plain(f"{content.left_out_line}."))
    if findings.found and labelled < len(findings.ids):
        lines.append(f"Only {labelled:,} of {len(findings.ids):,} examples were labelled.")
    if summary.oracle.kind == "simulated":
        lines.append(
            "The oracle is a simulated crowd that answers from known attributes: these labels are for testing."
        )
    return "\n".join(f"- {line}" for line in lines)


def _size(n: int) -> str:
    for limit, name in ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M")):
        if n < limit:
            return name
    return "1M<n<10M"
