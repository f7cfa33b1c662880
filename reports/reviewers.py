"""The answers of a review: as CSV, and what they say about the reviewers and the features."""

from __future__ import annotations

import csv
import io
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery import UNKNOWN, majority_labels
from twothirds.discovery.statistics import FEWEST_WORKERS, dawid_skene, krippendorff_alpha, why_not
from twothirds.reports.run import defuse, quoting_of

COLUMNS = (
    *("id", "question", "queue", "kind", "feature", "definition", "examples", "purpose", "state", "by"),
    *("verdict", "name", "name_definition", "chosen", "reason", "seconds", "cost_usd", "answered_at"),
)


def csv_lines(records: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The header and one line per answer, also of those that were late, skipped or withdrawn."""
    yield _line(COLUMNS)
    for row in records:
        cells = _cells(row)
        yield _line(cells[column] for column in COLUMNS)


def _cells(row: Mapping[str, Any]) -> dict[str, Any]:
    question, answer = row["question"], row["answer"] or {}
    name, definition = question.get("feature", ("", ""))
    when = datetime.fromtimestamp(row["answered_at"], UTC).isoformat(timespec="seconds") if row["answered_at"] else ""
    return {
        **{column: row[column] for column in ("id", "queue", "kind", "purpose", "state", "by")},
        "question": row["item"],
        "feature": name,
        "definition": definition,
        "examples": " ".join(row["ids"]),
        "verdict": answer.get("verdict", ""),
        "name": answer.get("name", ""),
        "name_definition": answer.get("definition", ""),
        "chosen": " ".join(str(place + 1) for place in answer.get("shown", ())),
        "reason": answer.get("skipped", ""),
        "seconds": round(row["seconds"], 1),
        "cost_usd": row["cost"] / 1_000_000,
        "answered_at": when,
    }


def _line(cells: Iterable[Any]) -> str:
    written = io.StringIO()
    row = [_storable(defuse(cell)) for cell in cells]
    csv.writer(written, lineterminator="\n", quoting=quoting_of(row)).writerow(row)
    return written.getvalue()


def _storable(cell: Any) -> Any:
    return cell.encode("utf-8", "replace").decode("utf-8") if isinstance(cell, str) else cell


Record = Mapping[str, Any]
SIGNIFICANT = 0.001  # probability of a row of equal answers below which it is reported


@dataclass(frozen=True)
class QualityTerms:
    pass_mark: float = 0.8  # share of attention checks that a reviewer must pass
    fewest_checks: int = 3
    fewest_answers: int = 12
    fastest_label: float = 0.7  # seconds in which an example can be looked at
    fastest_comparison: float = 3.0


@dataclass(frozen=True)
class Remark:
    """What is to be said about a reviewer or a feature; the page has the words, in the reader's language."""

    kind: str
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Reviewer:
    name: str
    answers: int = 0
    skipped: int = 0
    withdrawn: int = 0
    cost: int = 0
    label_seconds: list[float] = field(default_factory=list)
    comparison_seconds: list[float] = field(default_factory=list)
    agreed: list[bool] = field(default_factory=list)  # with the majority of the others
    checks: list[bool] = field(default_factory=list)  # passed
    repeats: list[bool] = field(default_factory=list)  # the same as the first time
    warnings: list[Remark] = field(default_factory=list)

    @property
    def seconds(self) -> float | None:
        """Median time per answer."""
        every = self.label_seconds + self.comparison_seconds
        return statistics.median(every) if every else None

    @property
    def agreement(self) -> float | None:
        return _share(self.agreed)

    @property
    def checks_passed(self) -> float | None:
        return _share(self.checks)

    @property
    def consistency(self) -> float | None:
        return _share(self.repeats)


@dataclass(frozen=True)
class ReviewedFeature:
    name: str
    examples: int
    votes: int
    alpha: float  # Krippendorff's, NaN where there is nothing to compare
    differing: int | None  # labels on which Dawid and Skene's estimate differs from the majority
    why_not: Remark | None  # why there is no such estimate


@dataclass(frozen=True)
class ReviewerQuality:
    reviewers: list[Reviewer]
    features: list[ReviewedFeature]
    answers: int
    last_hour: int


def quality_of(
    records: Iterable[Record], consensus: Mapping[int, str], terms: QualityTerms | None = None, *, now: float = 0.0
) -> ReviewerQuality:
    """`consensus` is what all votes on an item say where they agree: a check that has no expected answer of its own is
    judged by it."""
    rows = [row for row in records if row["purpose"] != "ruling"]  # who rules on labels is no reviewer
    counting = [row for row in rows if row["state"] == "given" and row["purpose"] == "vote"]
    labels = [row for row in counting if row["kind"] == "label"]
    reviewers = _counted(rows)
    _judge_checks(reviewers, rows, consensus)
    _compare_with_others(reviewers, labels)
    for reviewer in reviewers.values():
        reviewer.warnings += _warnings(reviewer, labels, terms or QualityTerms())
    return ReviewerQuality(
        reviewers=sorted(reviewers.values(), key=lambda reviewer: reviewer.name),
        features=_features(labels),
        answers=len(counting),
        last_hour=sum(row["answered_at"] > now - 3600 for row in counting),
    )


def _counted(rows: Iterable[Record]) -> dict[str, Reviewer]:
    reviewers: dict[str, Reviewer] = {}
    for row in rows:
        reviewer = reviewers.setdefault(row["by"], Reviewer(row["by"]))
        reviewer.skipped += row["state"] == "skipped"
        reviewer.withdrawn += row["state"] == "withdrawn"
        if row["state"] == "given" and row["purpose"] == "vote":
            reviewer.answers += 1
            reviewer.cost += row["cost"]
            times = reviewer.label_seconds if row["kind"] == "label" else reviewer.comparison_seconds
            times.append(row["seconds"])
    return reviewers


def _judge_checks(reviewers: Mapping[str, Reviewer], rows: Iterable[Record], consensus: Mapping[int, str]) -> None:
    first = {(row["by"], row["item"]): row for row in rows if row["purpose"] == "vote" and row["answer"]}
    for row in rows:
        if row["state"] != "given" or row["purpose"] == "vote":
            continue
        verdict, reviewer = row["answer"].get("verdict"), reviewers[row["by"]]
        if row["purpose"] == "check":
            known = row["expected"] or consensus.get(row["item"])
            if known is not None:
                reviewer.checks.append(verdict == known)
        elif (row["by"], row["item"]) in first:
            reviewer.repeats.append(verdict == first[row["by"], row["item"]]["answer"].get("verdict"))


def _compare_with_others(reviewers: Mapping[str, Reviewer], labels: Iterable[Record]) -> None:
    verdicts: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for row in labels:
        verdicts[row["item"]].append((row["by"], 1 if row["answer"]["verdict"] == "yes" else -1))
    for votes in verdicts.values():
        total = sum(side for _, side in votes)
        for by, side in votes:
            if total != side:  # the others are not equally divided
                reviewers[by].agreed.append((total - side) * side > 0)


def _warnings(reviewer: Reviewer, labels: Iterable[Record], terms: QualityTerms) -> Iterable[Remark]:
    for times, fastest, kind in (
        (reviewer.label_seconds, terms.fastest_label, "labels fast"),
        (reviewer.comparison_seconds, terms.fastest_comparison, "compares fast"),
    ):
        if len(times) >= terms.fewest_answers and statistics.median(times) < fastest:
            yield Remark(kind, {"seconds": round(statistics.median(times), 1)})
    if len(reviewer.checks) >= terms.fewest_checks and (reviewer.checks_passed or 0.0) < terms.pass_mark:
        yield Remark("checks", {"passed": sum(reviewer.checks), "checks": len(reviewer.checks)})
    if same := _always_the_same(reviewer.name, labels, terms):
        yield Remark(f"always {same}")


def _always_the_same(name: str, labels: Iterable[Record], terms: QualityTerms) -> str:
    """ "yes" or "no" where a row of equal answers is too unlikely, given others' answers on the same examples."""
    mine = {row["item"]: row["answer"]["verdict"] for row in labels if row["by"] == name}
    verdicts = set(mine.values())
    if len(mine) < terms.fewest_answers or len(verdicts) > 1:
        return ""
    (verdict,) = verdicts
    others = [row["answer"]["verdict"] for row in labels if row["by"] != name and row["item"] in mine]
    rate = (sum(other == verdict for other in others) + 1) / (len(others) + 2)
    return verdict if others and rate ** len(mine) < SIGNIFICANT else ""


def _features(labels: Iterable[Record]) -> list[ReviewedFeature]:
    of_feature: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for row in labels:
        of_feature[row["question"]["feature"][0], row["question"]["feature"][1]].append(row)
    return [_feature(name, rows) for (name, _), rows in of_feature.items()]


def _feature(name: str, rows: list[Record]) -> ReviewedFeature:
    votes = vote_matrix(rows)
    reason = None
    differing = None
    if why_not(votes):
        workers = int((votes != UNKNOWN).any(0).sum())
        few = workers < FEWEST_WORKERS
        reason = Remark("few workers", {"n": workers, "fewest": FEWEST_WORKERS}) if few else Remark("single votes")
    else:
        majority = majority_labels((votes == 1).sum(1), (votes == 0).sum(1))
        estimate = dawid_skene(votes).labels
        differing = int(((estimate != majority) & (majority != UNKNOWN)).sum())
    return ReviewedFeature(name, len(votes), len(rows), krippendorff_alpha(votes), differing, reason)


def vote_matrix(rows: Iterable[Record]) -> NDArray[np.int8]:
    """Examples × people: 1, 0 or UNKNOWN."""
    listed = list(rows)
    items = {item: place for place, item in enumerate(dict.fromkeys(row["item"] for row in listed))}
    people = {by: place for place, by in enumerate(dict.fromkeys(row["by"] for row in listed))}
    votes = np.full((len(items), len(people)), UNKNOWN, np.int8)
    for row in listed:
        votes[items[row["item"]], people[row["by"]]] = row["answer"]["verdict"] == "yes"
    return votes


def _share(values: list[bool]) -> float | None:
    return sum(values) / len(values) if values else None
