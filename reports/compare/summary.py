"""comparison.json: everything on the page as numbers, each with its interval or the reason why it is not defined."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discovery.statistics import EPSILON
from reports.compare.comparison import OracleComparison
from reports.compare.study import Rater
from reports.run import RunError, replace_file

NAME = "comparison.json"


def write_summary(comparison: OracleComparison, folder: Path, settings: dict[str, Any]) -> None:
    text = json.dumps(comparison_json(comparison, settings), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    replace_file(folder / NAME, lambda file: file.write(text))


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
        "same_comparisons": [same.to_json() for same in comparison.same_questions],
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
