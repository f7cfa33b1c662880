"""What can be exported: the chosen features of a run, and nightly tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from twothirds.reports.curation import checked_by_people, effective, read_log
from twothirds.reports.export.content import Export
from twothirds.reports.finished_run import Run
from twothirds.reports.run import SAME, Findings, FoundFeature, RunError, public_source, without_paths
from twothirds.reports.versions import ListedTable, read_table
from twothirds.sources import Dataset, read_metadata
from twothirds.studio.web import plural, usd

ONLY, WITHOUT, WITH = ("interesting", "distinct"), ("doubtful", "divided", "duplicates"), ("doubtful",)


@dataclass(frozen=True)
class Marks:
    """By which features of a run are chosen; those of WITH are left out unless they are named."""

    only: Sequence[str] = ()
    without: Sequence[str] = ()
    with_: Sequence[str] = ()

    def chosen(self, findings: Findings) -> list[FoundFeature]:
        """The features that have all marks of `only` and none of `without`, judged among all of the run."""
        wanted, unwanted = _named(self.only, "--only", ONLY), _named(self.without, "--without", WITHOUT)
        chosen = []
        for feature, (interesting, distinct) in zip(findings.found, findings.marks, strict=True):
            has = {
                "interesting": interesting,
                "distinct": distinct,
                "doubtful": feature.is_doubtful,
                "divided": feature.is_divided,
                "duplicates": feature.twin.startswith(SAME),
            }
            if all(has[mark] for mark in wanted) and not any(has[mark] for mark in unwanted):
                chosen.append(feature)
        return chosen

    @property
    def with_doubtful(self) -> bool:
        return bool(_named(self.with_, "--with", WITH))


def _named(texts: Sequence[str], option: str, marks: Sequence[str]) -> list[str]:
    named = [name.strip() for text in texts for name in text.split(",")]
    for name in named:
        if name not in marks:
            raise RunError(f"{option} {name!r} is no mark of features: choose among {', '.join(marks)}")
    return named


def of_run(run: Run, dataset: Dataset | None = None, marks: Marks = Marks()) -> Export:  # noqa: B008  # it is frozen
    chosen = marks.chosen(run.findings)
    left_out = [] if marks.with_doubtful else [feature for feature in chosen if feature.is_doubtful]
    findings = replace(run.findings, found=[feature for feature in chosen if feature not in left_out])
    summary = run.summary
    changes = {
        "Steered while it ran": _steered(run),
        "Changes by hand": _curation(run),
        "Labels corrected by people": _corrected(findings),
    }
    return Export(
        dataset=summary.dataset.name,
        labels=findings.table,
        provenance=_provenance(run),
        version=f"{summary.run_id} {summary.dataset.digest}",
        examples={example.id: example for example in dataset.examples} if dataset else {},
        metadata=read_metadata(dataset) if dataset else None,
        attributes=findings.attributes,
        findings=findings,
        left_out=left_out,
        changes={heading: lines for heading, lines in changes.items() if lines},
        certificates=[feature.certificate for feature in findings.found if feature.certificate],
        simulated=summary.oracle.kind == "simulated",
    )


def of_table(folder: Path, dataset: Dataset | None = None) -> Export:
    table, listed = read_table(folder), ListedTable.read(folder)
    schema, oracle = table.table_schema, table.table_schema.oracle
    name = dataset.name if dataset else folder.name
    labels = table.table()
    provenance = {
        "data set": f"{name}, {plural(len(labels), 'example')}",
        "table": f"version {schema.version}, finished {listed.finished_at}",
        "oracle": without_paths(f"{oracle.get('kind', '')} {oracle.get('model', '')}".strip()),
        "votes": f"at most {plural(schema.votes, 'vote')} per label, by majority",
        "cost of the last version": usd(listed.cost_usd),
    }
    return Export(
        dataset=name,
        labels=labels,
        provenance=provenance,
        version=f"{folder.name} {schema.version}",
        examples={example.id: example for example in dataset.examples} if dataset else {},
        metadata=read_metadata(dataset) if dataset else None,
        simulated=oracle.get("kind") == "simulated",
    )


def _provenance(run: Run) -> dict[str, str]:
    summary, settings, oracle = run.summary, run.summary.settings, run.summary.oracle
    parameters = without_paths(", ".join(f"{key} {value}" for key, value in oracle.parameters.items()))
    return {
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


def _steered(run: Run) -> list[str]:
    """What people wanted of the discovery, in the order in which it applied that."""
    return [
        f"{command.at[:10]} after {plural(command.after, 'question')}: {command.by} {command.words}"
        + (f" (rejected: {command.rejected})" if command.rejected else "")
        for command in run.summary.steered
    ]


def _curation(run: Run) -> list[str]:
    return [
        f"{entry.at[:10]} {entry.action}: {json.dumps(entry.arguments, ensure_ascii=False)}"
        + (f", by {entry.by}" if entry.by else "")
        for entry in effective(read_log(run.folder))
    ]


def _corrected(findings: Findings) -> list[str]:
    lines: list[Any] = checked_by_people(findings.found).sentences()
    for feature in findings.found:
        if people := sorted({correction.by for correction in feature.corrected.values()}):
            lines.append(f"{feature.name}: {len(feature.corrected):,}, by {', '.join(people)}")
    return lines
