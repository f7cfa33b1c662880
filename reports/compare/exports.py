"""What a comparison leaves behind: the page, comparison.json, and tables that other programs read."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from twothirds.discovery import NOBODY, UNKNOWN
from twothirds.discovery.statistics import EPSILON, Estimate
from twothirds.reports.compare.comparison import OracleComparison
from twothirds.reports.compare.labels import DAWID_SKENE, MAJORITY, ONE_VOTE
from twothirds.reports.compare.study import Rater
from twothirds.reports.run import RunError, defuse, replace_file
from twothirds.sources import Dataset

NAME = "comparison.json"


def comparison_json(comparison: OracleComparison, settings: dict[str, Any]) -> dict[str, Any]:
    """In the order of the file."""
    study = comparison.study
    return {
        "settings": settings,
        "dataset": {"name": study.dataset, "digest": study.digest, "examples": study.total},
        "partial": study.partial,
        "sample": len(study.ids),
        "features": [{"name": name, "definition": definition} for name, definition in study.features],
        "features_from": study.origin,
        "reference": comparison.reference.words,
        "annotators": study.annotators,
        "epsilon": EPSILON[study.annotators],
        "wanted_accuracy": study.accuracy,
        "seed": study.seed,
        "draws": study.draws,
        "oracles": [_oracle(oracle) for oracle in study.raters],
        "agreement": [pair.to_json() for pair in comparison.pairs],
        "agreement_of_all": {name: estimate.to_json() for name, estimate in comparison.together.items()},
        "quality": [quality.to_json() for quality in comparison.qualities],
        "model_against_people": [versus.to_json() for versus in comparison.versus],
        "advice": [advice.to_json() for advice in comparison.advice],
        "same_comparisons": [asdict(same) for same in comparison.same_questions],
        "own_discoveries": [found.to_json() for found in comparison.yields],
        "matched_features": [matched.to_json() for matched in comparison.matched],
        "disagreements": len(comparison.disagreements),
        "methods": comparison.methods,
        "versions": study.versions,
        "command": study.command,
        "finished_at": study.finished_at,
    }


def _oracle(oracle: Rater) -> dict[str, Any]:
    return {
        "name": oracle.name,
        "people": oracle.people,
        "identity": oracle.identity,
        "votes_wanted": oracle.wanted,
        "votes": oracle.votes,
        "refused": int(oracle.sheet.refused.sum()),
        "voters": len(oracle.sheet.workers),
        "cost_usd": oracle.usd,
        "paid_usd": oracle.paid_usd,
        "seconds": oracle.seconds,
        "stopped": oracle.stopped,
        **({"warning": oracle.warning} if oracle.warning else {}),
    }


@dataclass(frozen=True)
class ListedComparison:
    """What a list says of a comparison."""

    dataset: str
    examples: int
    oracles: list[str]
    features: int
    usd: float
    partial: bool
    finished_at: str


def read_listed(folder: Path) -> ListedComparison:
    """Raises RunError where there is none that can be read."""
    try:
        content = json.loads((folder / NAME).read_bytes())
        return ListedComparison(
            dataset=str(content["dataset"]["name"]),
            examples=int(content["sample"]),
            oracles=[str(oracle["name"]) for oracle in content["oracles"]],
            features=len(content["features"]),
            usd=sum(float(oracle["paid_usd"]) for oracle in content["oracles"]),
            partial=bool(content["partial"]),
            finished_at=str(content["finished_at"]),
        )
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        raise RunError(f"{folder / NAME} cannot be read: compare again") from None


def read_settings(folder: Path) -> dict[str, Any]:
    """Of the comparison that a folder holds; empty if it holds none that can be read."""
    try:
        content = json.loads((folder / NAME).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    settings = content.get("settings") if isinstance(content, dict) else None
    return settings if isinstance(settings, dict) else {}


STATISTICS_COLUMNS = ("feature", "oracle", "against", "statistic", "value", "low", "high", "note")
SHARES_COLUMNS = ("feature", "model", "people", "estimate", "value", "low", "high", "note")
VOTES_COLUMNS = ("example", "feature", "worker", "label")
COUNTED = {
    ONE_VOTE: "accuracy of one vote",
    MAJORITY: "accuracy of the majority",
    DAWID_SKENE: "accuracy of Dawid-Skene",
}
OVERALL = ""  # as the feature of a row about all features
Row = tuple[Any, ...]


def write_comparison(comparison: OracleComparison, folder: Path, dataset: Dataset, settings: dict[str, Any]) -> Path:
    """Write everything; returns the page."""
    from twothirds.reports.compare.page import render_comparison

    _table(folder / "agreement.csv", STATISTICS_COLUMNS, _statistics(comparison))
    _table(folder / "shares.csv", SHARES_COLUMNS, _shares(comparison))
    per_oracle = [f"{oracle.name} {column}" for oracle in comparison.study.raters for column in ("label", "yes", "no")]
    columns = ("feature", "example", "truth", *per_oracle)
    _table(folder / "disagreements.csv", columns, _disagreements(comparison))
    for place in range(len(comparison.study.raters)):
        _table(folder / f"votes-{place + 1}.csv", VOTES_COLUMNS, _votes(comparison, place))
    text = json.dumps(comparison_json(comparison, settings), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    replace_file(folder / NAME, lambda file: file.write(text))
    page = folder / "compare.html"
    replace_file(page, lambda file: file.write(render_comparison(comparison, dataset)))
    return page


def summary_rows(comparison: OracleComparison) -> list[dict[str, Any]]:
    """One row per oracle: what it is, how right it is, and what it cost."""
    rows = []
    for rater, quality in zip(comparison.study.raters, comparison.qualities, strict=True):
        test = next((versus.test for versus in comparison.versus if versus.model == rater.name), None)
        rows.append(
            {
                "oracle": rater.name,
                "stands for": rater.stands_for,
                "votes": rater.votes,
                "missing": rater.wanted - rater.votes,
                "single vote": share_or_reason(quality.accuracy.overall[ONE_VOTE]),
                "majority": share_or_reason(quality.accuracy.overall[MAJORITY]),
                "Dawid-Skene": share_or_reason(quality.accuracy.overall[DAWID_SKENE]),
                "may replace a person": _verdict(test) if test else "–",
                "USD": round(rater.usd, 4),
            }
        )
    return rows


def share_or_reason(estimate: Estimate) -> str:
    """A share, or that it is not defined and why."""
    return f"not defined: {estimate.reason}" if estimate.value is None else f"{100 * estimate.value:.1f} %"


def _verdict(test: Any) -> str:
    if test.passes is None:
        return f"not defined: {test.reason}"
    return f"{'yes' if test.passes else 'no'} (winning rate {test.winning_rate:.2f})"


def _statistics(comparison: OracleComparison) -> Iterator[Row]:
    names = [OVERALL, *comparison.study.names]
    reference = comparison.reference.words
    for pair in comparison.pairs:
        for feature, found in zip(names, [pair.overall, *pair.by_feature], strict=True):
            yield from _rows(feature, pair.a, pair.b, found)
    for quality in comparison.qualities:
        for against, statistics in (("its own votes", quality.among), (reference, quality.right)):
            for feature, found in zip(names, [statistics.overall, *statistics.by_feature], strict=True):
                yield from _rows(feature, quality.name, against, found)
        for way, written in COUNTED.items():
            for feature, found in zip(names, [quality.accuracy.overall, *quality.accuracy.by_feature], strict=True):
                yield from _rows(feature, quality.name, reference, {written: found[way]})
    for versus in comparison.versus:
        for feature, test in zip(names, [versus.test, *versus.test_each], strict=True):
            for name, value in (("winning rate", test.winning_rate), ("advantage probability", test.advantage)):
                yield feature, versus.model, versus.people, name, value, None, None, test.reason


def _rows(feature: str, oracle: str, against: str, found: dict[str, Estimate]) -> Iterator[Row]:
    for name, estimate in found.items():
        yield feature, oracle, against, name, estimate.value, estimate.low, estimate.high, estimate.reason


def _shares(comparison: OracleComparison) -> Iterator[Row]:
    for versus in comparison.versus:
        for place, (feature, found) in enumerate(zip(comparison.study.names, versus.shares, strict=True)):
            shares = {"corrected": found.corrected, "people alone": found.people, "model alone": found.model}
            if versus.known:
                shares["people on everything"] = versus.known[place]
            shares["people's labels saved"] = found.saved
            yield from _rows(feature, versus.model, versus.people, shares)


def _disagreements(comparison: OracleComparison) -> Iterator[Row]:
    study = comparison.study
    for disagreement in comparison.disagreements:
        cells: list[Any] = [study.names[disagreement.feature], study.ids[disagreement.row], _label(disagreement.truth)]
        for label, (yes, no, _) in zip(disagreement.labels, disagreement.votes, strict=True):
            cells += [_label(label), yes, no]
        yield tuple(cells)


def _votes(comparison: OracleComparison, place: int) -> Iterator[Row]:
    """In the form that the oracle recorded:FILE reads, so that a comparison can be repeated without its oracles."""
    study = comparison.study
    sheet = study.raters[place].sheet
    workers = sheet.workers
    for feature, name in enumerate(study.names):
        for row, example in enumerate(study.ids):
            for vote, value in enumerate(sheet.votes[feature, row].tolist()):
                if value != UNKNOWN:
                    who = int(sheet.who[feature, row, vote]) if sheet.named else vote
                    yield example, name, workers[who] if who != NOBODY else "nobody", value


def _label(value: int) -> int | None:
    return None if value == UNKNOWN else value


def _table(path: Path, columns: Iterable[str], rows: Iterable[Row]) -> None:
    def write(file: IO[Any]) -> None:
        writer = csv.writer(file)
        writer.writerow([defuse(name) for name in columns])
        for row in rows:
            writer.writerow([defuse(cell) for cell in row])

    replace_file(path, write)
