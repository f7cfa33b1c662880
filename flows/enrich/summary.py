"""What an enrichment did: enrich.json, which writes, reads and checks itself, and the same in words; and how the table,
its history and that summary are written."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from twothirds.flows.discover.findings import StopReason
from twothirds.flows.enrich.propose import PROPOSALS, Proposals
from twothirds.flows.enrich.settings import EnrichSettings
from twothirds.flows.enrich.update import ChangeKind, Changes, Enrichment
from twothirds.flows.enrich.values import ValueTable
from twothirds.flows.settings import micro_of
from twothirds.models import MICRO, AnswersPending, Feature, OracleUnavailable, in_usd
from twothirds.reports.analysis import Share, drift_of
from twothirds.reports.run import RunError, SkippedExample, UnusableAnswers, replace_file
from twothirds.reports.versions import (
    SCHEMA,
    SUMMARY,
    Contract,
    NewVersion,
    TableSchema,
    VersionedTable,
    previous_rows,
    schema_of,
    write_history,
    write_refused,
    write_table,
)
from twothirds.studio.web import plural

FAILED, WAITING, CONTRACT = "failed", "waiting", "contract"  # why an enrichment stopped


class EnrichSummary(BaseModel):
    model_config = ConfigDict(frozen=True)

    settings: dict[str, Any]
    oracle: dict[str, Any]
    version: int
    rows: int
    features: list[str]
    new_features: list[str]
    added: int
    changed: int
    renamed: int
    copies: int
    filled: int
    ids: dict[str, list[str]]  # the first few of each kind of change
    unchanged: int
    gone: int
    left_out_count: int
    left_out: list[SkippedExample]  # the first few
    turned_over: dict[str, int]
    drift: list[dict[str, Any]]
    paid_calls: int
    cached_calls: int
    cost_usd: float
    unknown_calls: int
    unknown_usd: float
    predicted_labels: int = 0  # of the whole table, earlier versions included
    corrected_labels: int = 0  # by people, of the whole table
    predictions: list[dict[str, Any]] = []  # of this run, one per group of examples with the same features
    certificates: list[dict[str, Any]] = []  # of this run and of earlier ones, by feature and version
    attributes: dict[str, dict[str, int]] = {}  # how many rows have each value
    stopped_because: str
    partial: bool
    message: str
    seconds: float
    finished_at: str
    unusable: UnusableAnswers
    warnings: list[str] = []
    dropped: int = 0  # rows that are gone, on request
    violations: list[str] = []  # of the contract: the table was not replaced
    history: int = 0  # the version up to which the history is complete
    proposed: list[str] = []  # features that proposals.csv describes

    def to_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json")

    def refused(self, version: int, rows: int, violations: list[str]) -> EnrichSummary:
        """Of a night that has left the table of this version in place."""
        ended = self.stopped_because in (FAILED, WAITING, str(StopReason.UNAVAILABLE))
        why = self.stopped_because if ended else CONTRACT
        update = {"version": version, "rows": rows, "violations": violations, "stopped_because": why}
        return self.model_copy(update=update)

    def with_costs(self, changes: Changes) -> EnrichSummary:
        return self.model_copy(update=_costs(changes))

    def with_proposals(self, proposals: Proposals) -> EnrichSummary:
        """The table is written by then; a budget or a server that ended the questions is why the night stopped."""
        update: dict[str, Any] = {"proposed": [row["name"] for row in proposals.rows]}
        if proposals.stopped_because in (StopReason.BUDGET, StopReason.UNAVAILABLE):
            update |= {"stopped_because": str(proposals.stopped_because), "message": proposals.message}
        return self.model_copy(update=update)

    def figures(self) -> dict[str, float]:
        """For store.metrics."""
        moves = [
            abs(drift["now"] - drift["before"]) for drift in self.drift if None not in (drift["now"], drift["before"])
        ]
        return {
            "unusable_answers_total": self.unusable.total,
            "drift_moved_features": sum(bool(drift["moved"]) for drift in self.drift),
            "drift_largest": round(max(moves, default=0.0), 4),
        }

    def write(self, folder: Path) -> None:
        text = json.dumps(self.to_json(), indent=2, ensure_ascii=False)
        replace_file(folder / SUMMARY, lambda file: file.write(f"{text}\n"))

    @classmethod
    def read(cls, folder: Path) -> EnrichSummary:
        """Raises RunError where it is missing or not what was written."""
        path = folder / SUMMARY
        try:
            return cls.model_validate_json(path.read_bytes())
        except OSError as error:
            raise RunError(f"{path} cannot be read ({error.strerror}): enrich the data set first") from None
        except ValidationError as error:
            where = ".".join(map(str, error.errors()[0]["loc"])) or "JSON"
            raise RunError(f"{path} is damaged ({where}): enrich again, which replaces it") from None

    def lines(self) -> list[str]:
        """The summary in words."""
        counted = {kind: getattr(self, kind.value) for kind in ChangeKind}
        singular = {ChangeKind.COPIED: "copy"}
        changes = ", ".join(
            f"{count:,} {singular.get(kind, kind.value) if count == 1 else kind.value}"
            for kind, count in counted.items()
            if count
        )
        lines = [f"{changes or 'nothing new'}, {self.unchanged:,} unchanged; {plural(self.rows, 'row')}"]
        if self.gone:
            are = "row is" if self.gone == 1 else "rows are"
            end = "dropped" if self.dropped else f"{'its' if self.gone == 1 else 'their'} labels were kept"
            lines.append(f"{self.gone:,} {are} no longer in the data set; {end}")
        if self.left_out:
            first = self.left_out[0]
            lines.append(f"{self.left_out_count:,} skipped, e.g. {first.id}: {first.reason}")
        if self.turned_over:
            worst = sorted(self.turned_over.items(), key=lambda item: -item[1])[:5]
            lines.append("turned over by changed content: " + ", ".join(f"{name} {count}" for name, count in worst))
        if self.new_features and self.version > 1 and not self.settings["backfill"]:
            names = ", ".join(self.new_features)
            lines.append(f"new, and asked of new examples only: {names} (--backfill asks of the old ones too)")
        for drift in self.drift:
            if drift["moved"]:
                shares = f"{drift['before']:.0%} → {drift['now']:.0%}"
                lines.append(f"moved: {drift['feature']} {shares} ({drift['low']:+.0%} to {drift['high']:+.0%})")
        lines += [*self.warnings, *self.unusable.lines(), *self._lines_of_predictions()]
        if self.corrected_labels:
            lines.append(f"{plural(self.corrected_labels, 'label')} as people corrected them")
        lines += [f"not as expected: {line}" for line in self.violations]
        if self.attributes:
            lines.append(f"values by labels: {', '.join(self.attributes)}")
        if self.settings["propose"] and not self.partial:
            lines.append(f"proposed, in {PROPOSALS}: {', '.join(self.proposed) or 'nothing new'}")
        if self.message:
            lines.append(self.message)
        if self.unknown_calls:
            sent = f"{plural(self.unknown_calls, 'request')} sent and never answered"
            lines.append(f"{sent}: at most {in_usd(micro_of(self.unknown_usd), at_most=True)}")
        paid = f"{plural(self.paid_calls, 'question')} asked, {self.cached_calls:,} from the store"
        return [*lines, f"{paid}, {in_usd(micro_of(self.cost_usd))}"]

    def _lines_of_predictions(self) -> list[str]:
        lines = []
        for made in self.predictions:
            if made["too_small"]:
                lines.append(f"{made['examples']:,} examples are too few to predict any: all were asked")
                continue
            share = made["asked_examples"] / made["examples"]
            lines.append(
                f"{made['predicted_labels']:,} labels predicted, {made['asked_labels']:,} asked "
                f"({share:.0%} of the examples)"
            )
        here = [entry for entry in self.certificates if entry["version"] == self.version]
        asked = [entry["feature"] for entry in here if entry["certificate"] is None]
        if asked and not all(prediction["too_small"] for prediction in self.predictions):
            left = sum(prediction.get("left_labels", 0) for prediction in self.predictions)
            use = f"and left out ({left:,} labels; --uncertified ask asks for them)" if left else "and therefore asked"
            lines.append(f"not certified, {use}: " + ", ".join(asked))
        weak = self._below_the_promise([entry for entry in here if entry["certificate"]])
        return [*lines, *weak]

    def _below_the_promise(self, certified: list[dict[str, Any]]) -> list[str]:
        """Features that agree less by their own sample than is promised of all together."""
        low = [
            f"{entry['feature']} {paper['agreement']:.0%} "
            f"({paper['agreement_low']:.0%} to {paper['agreement_high']:.0%})"
            for entry in certified
            if (paper := entry["certificate"])["disagreed"] > (1 - paper["agree"]) * paper["sampled"]
        ]
        return [f"certified together; by its own sample less agrees of: {', '.join(low)}"] if low else []


def summarise(
    settings: EnrichSettings,
    features: list[Feature],
    work: Enrichment,
    before: TableSchema,
    seconds: float,
    values: ValueTable,
) -> EnrichSummary:
    table, changes, names = work.table, work.changes, [feature.name for feature in features]
    columns = [table.table_schema.names.index(name) for name in names]
    before_now = work.before, table.labels[changes.new_content]
    predicted, version = work.predictor.made if work.predictor else [], table.table_schema.version
    shares = [[Share.of(labels[:, column]) for column in columns] for labels in before_now]
    return EnrichSummary(
        settings=settings.model_dump(mode="json"),
        oracle=table.table_schema.oracle,
        version=table.table_schema.version,
        rows=len(table),
        features=names,
        new_features=[name for name in names if name not in before.names],
        **{kind.value: changes.counts[kind] for kind in ChangeKind},
        ids={kind.value: changes.ids[kind] for kind in ChangeKind if changes.ids[kind]},
        unchanged=changes.unchanged,
        gone=changes.gone,
        dropped=len(changes.dropped),
        left_out_count=changes.left_out_count,
        left_out=[SkippedExample(id=left.id, reason=left.reason) for left in changes.left_out],
        turned_over=changes.flips,
        drift=[asdict(drift) | {"moved": drift.moved} for drift in drift_of(names, *shares)],
        **_costs(changes),
        predicted_labels=table.predicted_count,
        corrected_labels=table.corrected_count,
        predictions=[made.to_json() for made in predicted],
        certificates=[
            *table.table_schema.certificates,
            *(c for made in predicted for c in made.certificates(version=version)),
        ],
        attributes={attribute.name: dict(attribute.counts) for attribute in values.attributes},
        stopped_because=_why_stopped(changes),
        partial=not changes.complete,
        message=str(changes.failure or changes.stopped or ""),
        seconds=seconds,
        finished_at=datetime.now(UTC).isoformat(timespec="seconds"),
        unusable=changes.unusable.summary(),
        warnings=[changes.unlike.warning] if changes.unlike.warning else [],
    )


def _costs(changes: Changes) -> dict[str, Any]:
    return {
        "paid_calls": changes.paid_calls,
        "cached_calls": changes.cached_calls,
        "cost_usd": changes.cost / MICRO,
        "unknown_calls": changes.unknown_calls,
        "unknown_usd": changes.unknown / MICRO,
    }


def _why_stopped(changes: Changes) -> str:
    if isinstance(changes.failure, OracleUnavailable):
        return str(StopReason.UNAVAILABLE)
    if changes.failure:
        return FAILED
    if isinstance(changes.stopped, AnswersPending):
        return WAITING
    return str(StopReason.BUDGET) if changes.stopped else "done"


def complete_history(folder: Path, table: VersionedTable) -> int:
    """Write what the history lacks where the last run was killed before it was written; the version up to which it is
    complete then."""
    try:
        written = EnrichSummary.read(folder).history
    except RunError:
        written = 0
    version = table.table_schema.version
    if written < version:
        last = np.flatnonzero(table.versions[: len(table)] == version)
        there = set(table.ids)
        gone = [(name, digest) for name, digest in previous_rows(folder) if name not in there]
        write_history(folder, table, NewVersion(run=None, rows=None, labels=[table.table(last)], gone=gone))
    return version


@dataclass(frozen=True)
class NightOutcome:
    """Of a pass over the data set that began with a table of the table_schema `before`."""

    folder: Path
    work: Enrichment
    before: TableSchema
    contract: Contract
    run_id: str

    def write(self, summary: EnrichSummary, values: ValueTable) -> EnrichSummary:
        """The table where something has changed and the contract holds, and the summary last."""
        table, changes, before = self.work.table, self.work.changes, self.before
        new = self.work.predictor.certificates(table.table_schema.version) if self.work.predictor else []
        table.table_schema = replace(table.table_schema, certificates=(*table.table_schema.certificates, *new))
        written = bool(changes.rows or changes.moved or changes.dropped)
        changed = written or (changes.complete and not before.means_the_same_as(table.table_schema))
        violations = self.contract.violations(table, changes.new_content)
        if violations:
            summary = summary.refused(before.version, len(self.work.before), violations)
        elif not changed:
            summary = summary.model_copy(update={"version": before.version})
        if violations and changed:
            write_refused(self.folder, table)
        elif changed:
            self._replace()
        if not violations:
            values.write(self.folder)
        summary = summary.model_copy(update={"history": summary.version})
        summary.write(self.folder)
        if self.work.predictor is not None and changes.complete and not violations:
            self.work.predictor.save()
        return summary

    def _replace(self) -> None:
        """The history after the table: it never tells of what the table has not."""
        table, changes = self.work.table, self.work.changes
        write_table(self.folder, table)
        schema = json.dumps(schema_of(table), indent=2, ensure_ascii=False)
        replace_file(self.folder / SCHEMA, lambda file: file.write(f"{schema}\n"))
        keeps_labels = table.table_schema.keeps_labels_of(self.before)
        corrected = table.rows_corrected_since(self.before)
        rows = [*changes.rows, *corrected] if keeps_labels else None  # labels of another schema are gone from all rows
        predicted_by = ", ".join(self.work.predictor.used) if self.work.predictor else None
        new = NewVersion(
            run=self.run_id,
            rows=rows,
            labels=changes.labels,
            gone=changes.dropped,
            predicted_by=predicted_by or None,
            moved=changes.moved,
            renamed=changes.counts[ChangeKind.RENAMED],
            copies=changes.counts[ChangeKind.COPIED],
        )
        write_history(self.folder, table, new)
