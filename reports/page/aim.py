"""The section about the target of a discovery: the score on held-out examples, question by question, with controls."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from reports.drawing import Series, curve
from reports.run import RunError, RunSummary, TargetScore

UNGUIDED = "unguided"  # the folder, in that of the run, of a run of the same length that did not heed the target


@dataclass(frozen=True)
class Aim:
    score: TargetScore
    unguided: TargetScore | None
    drawing: Markup


def aim_of(folder: Path, summary: RunSummary) -> Aim | None:
    """None where the run had no target."""
    score = summary.target
    if score is None or not score.curve:
        return None
    unguided = _unguided(folder, score)
    lines = [
        Series("random features", _questions(score.random), score.random, "faint"),
        Series("shuffled target", _questions(score.shuffled), score.shuffled, "faint"),
    ]
    if unguided is not None:
        lines.append(Series("unguided strategy", _questions(unguided.curve), unguided.curve, "other"))
    lines.append(Series("these features", _questions(score.curve), score.curve))
    title = f"{score.measure} on held-out examples against questions"
    return Aim(score, unguided, curve(title, "questions", lines, start=0.5 if score.classes else 0.0))


def lacks_unguided(folder: Path, summary: RunSummary, column: str) -> bool:
    """Whether the run looked for what predicts the column, and has no control of that length which did not."""
    score = summary.target
    if score is None or score.column != column or summary.settings.get("unguided"):
        return False
    unguided = _unguided(folder, score)
    return unguided is None or len(unguided.curve) < len(score.curve)


def _questions(values: list[float]) -> list[int]:
    return list(range(1, len(values) + 1))


def _unguided(folder: Path, score: TargetScore) -> TargetScore | None:
    try:
        other = RunSummary.read(folder / UNGUIDED).target
    except RunError:
        return None
    return other if other is not None and other.column == score.column else None
