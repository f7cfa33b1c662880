"""comparison.json: everything on the page as numbers, each with its interval or the reason why it is not defined."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discovery.statistics import EPSILON
from reports.compare.comparison import OracleComparison
from reports.compare.study import Contender
from reports.run import JsonPart, Number, RunError, replace_file

NAME = "comparison.json"
Parts = list[dict[str, Any]]


class OracleFigures(JsonPart):
    name: str
    people: bool
    identity: dict[str, Any]
    votes_wanted: int
    votes: int
    refused: int
    voters: int
    cost_usd: Number
    paid_usd: Number
    seconds: Number
    stopped: str
    warning: str = ""

    @classmethod
    def of(cls, one: Contender) -> OracleFigures:
        return cls(
            name=one.name,
            people=one.people,
            identity=one.identity,
            votes_wanted=one.wanted,
            votes=one.votes,
            refused=int(one.sheet.refused.sum()),
            voters=len(one.sheet.workers),
            cost_usd=one.usd,
            paid_usd=one.paid_usd,
            seconds=one.seconds,
            stopped=one.stopped,
            **({"warning": one.warning} if one.warning else {}),
        )


class ComparisonSummary(JsonPart):
    """Fields are in the order of the file."""

    settings: dict[str, Any]
    dataset: dict[str, Any]
    partial: bool
    sample: int
    features: list[dict[str, str]]
    features_from: str
    reference: str
    annotators: str
    epsilon: Number
    wanted_accuracy: Number
    seed: int
    draws: int
    oracles: list[OracleFigures]
    agreement: Parts
    agreement_of_all: dict[str, dict[str, Any]]
    quality: Parts
    model_against_people: Parts
    advice: Parts
    same_comparisons: Parts
    own_discoveries: Parts
    matched_features: Parts
    disagreements: int
    methods: str
    versions: dict[str, str]
    command: str
    finished_at: str

    @classmethod
    def of(cls, comparison: OracleComparison, settings: dict[str, Any]) -> ComparisonSummary:
        study = comparison.study
        return cls(
            settings=settings,
            dataset={"name": study.dataset, "digest": study.digest, "examples": study.total},
            partial=study.partial,
            sample=len(study.ids),
            features=[{"name": name, "definition": definition} for name, definition in study.features],
            features_from=study.origin,
            reference=comparison.reference.words,
            annotators=study.annotators,
            epsilon=EPSILON[study.annotators],
            wanted_accuracy=study.accuracy,
            seed=study.seed,
            draws=study.draws,
            oracles=[OracleFigures.of(one) for one in study.contenders],
            agreement=[one.to_json() for one in comparison.pairs],
            agreement_of_all={name: one.to_json() for name, one in comparison.together.items()},
            quality=[one.to_json() for one in comparison.qualities],
            model_against_people=[one.to_json() for one in comparison.versus],
            advice=[one.to_json() for one in comparison.advice],
            same_comparisons=[one.to_json() for one in comparison.same_questions],
            own_discoveries=[one.to_json() for one in comparison.yields],
            matched_features=[one.to_json() for one in comparison.matched],
            disagreements=len(comparison.disagreements),
            methods=comparison.methods,
            versions=study.versions,
            command=study.command,
            finished_at=study.finished_at,
        )

    def write(self, folder: Path) -> None:
        text = json.dumps(self.to_json(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        replace_file(folder / NAME, lambda file: file.write(text))


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
            str(content["dataset"]["name"]),
            int(content["sample"]),
            [str(one["name"]) for one in content["oracles"]],
            len(content["features"]),
            sum(float(one["paid_usd"]) for one in content["oracles"]),
            bool(content["partial"]),
            str(content["finished_at"]),
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
