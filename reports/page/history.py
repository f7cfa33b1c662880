"""How a discovery went, question by question: features, g and money, what one more feature would take, and how well the
features predict a target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeVar

from markupsafe import Markup

from twothirds.reports.run import KNOWN, MICRO, Findings, RunError, RunFolder, RunSummary, TargetScore
from twothirds.studio.web import Series, curve, data_url

Number = TypeVar("Number", int, float)

UNGUIDED = "unguided"  # the folder, in that of the run, of a run of the same length that did not apply the target
RECENT_QUESTIONS = 10  # from which the present rate is estimated


@dataclass(frozen=True)
class RunHistory:
    """One value per question asked; money is what the run booked for the answers."""

    features: list[int]
    counting: list[int]  # of these, interesting and distinct
    g: list[float]
    usd: list[float]
    g_start: float = 1.0  # before the first question
    unusable: Sequence[int] = ()  # answers so far that were refused or unreadable


def history_of(run: RunFolder, findings: Findings) -> RunHistory:
    table = run.found_features
    found = table[table["question"] != KNOWN]
    marks = found[["interesting", "distinct", "consistent"]].astype(bool).all(axis=1)
    counts = dict(zip(found["name"], marks, strict=True))
    seen: set[str] = set()
    new, counting, costs = [], [], []
    for asked in findings.comparisons:
        named = [answer.feature for answer in asked.by_feature if answer.feature is not None]
        first = [name for name in named if name in counts and name not in seen]
        seen.update(first)
        new.append(len(first))
        counting.append(sum(bool(counts[name]) for name in first))
        costs.append(asked.cost + sum(findings.label_costs.get(name, 0) for name in first))
    curve = run.summary.g_curve
    if len(curve) < len(new):
        had = f"g_curve has {len(curve)} values for {len(new)} comparisons"
        raise RunError(f"{run.folder / 'run.json'} does not fit answers.jsonl ({had}): run discover again")
    return RunHistory(
        features=list(accumulate(new)),
        counting=list(accumulate(counting)),
        g=[float(value) for value in curve[: len(new)]],
        usd=[total / MICRO for total in accumulate(costs)],
        g_start=float(run.summary.given.g) if run.summary.given else 1.0,
        unusable=list(accumulate(asked.feature is None and asked.verdict != "none" for asked in findings.comparisons)),
    )


def outlook_of(history: RunHistory, recent: int = RECENT_QUESTIONS) -> dict[str, float | None] | None:
    """What the last questions brought, and at that rate the next feature, None where they brought nothing. None before
    anything was asked."""
    asked = len(history.features)
    if not asked:
        return None
    last = min(recent, asked)
    features = _gain(history.features, last)
    return {
        "questions": last,
        "features": features,
        "counting": _gain(history.counting, last),
        "unusable": _gain(history.unusable, last) if history.unusable else 0,  # answers that could not be used
        "questions_each": last / features if features else None,
        "usd_each": _gain(history.usd, last) / features if features else None,
    }


def curves_of(history: RunHistory) -> list[tuple[str, Markup]]:
    """Titles and drawings: against questions and, where answers cost something, against dollars."""
    asked = list(range(1, len(history.features) + 1))
    if not asked:
        return []

    def curves(x: list[Any], label: str) -> list[tuple[str, Markup]]:
        lines = [Series("all features", x, history.features, "faint")]
        lines.append(Series("interesting and distinct", x, history.counting))
        return [
            (f"Features against {label}", curve(f"Features found against {label}", label, lines)),
            (
                f"g against {label}",
                curve(f"g against {label}", label, [Series("g", x, history.g)], start=history.g_start),
            ),
        ]

    return curves(asked, "questions") + (curves(history.usd, "US dollars") if history.usd[-1] > 0 else [])


def picture_of(run: RunFolder, findings: Findings) -> str:
    """The curves against questions as a data URL, for pages that are not ours."""
    drawings = curves_of(history_of(run, findings))[:2]
    return data_url(drawings) if drawings else ""


def _gain(totals: Sequence[Number], last: int) -> Number:
    return totals[-1] - (totals[-last - 1] if last < len(totals) else 0)


def aim_of(folder: Path, summary: RunSummary) -> dict[str, Any] | None:
    """How well the features predict the target, question by question; None where the run had no target."""
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
    drawing = curve(title, "questions", lines, start=0.5 if score.classes else 0.0)
    return {"score": score, "unguided": unguided, "drawing": drawing}


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
