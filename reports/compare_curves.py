"""The curves of a comparison, drawn from what was worked out."""

from __future__ import annotations

import math
from typing import Any

from markupsafe import Markup

from discovery.escalation import Setting, frontier
from reports.compare_advice import Advice
from reports.compare_labels import Quality
from reports.compare_plots import Line, shares_plot
from reports.comparison import Comparison

STYLES = ("main", "no", "soft", "bad")  # of the oracles, in their order
PLOT_STYLES = {"model": "main", "people": "no", "uncertainty": "soft", "disagreement": "bad"}
KINDS = {
    "model": "model alone",
    "people": "people alone",
    "uncertainty": "people where the model is in doubt",
    "disagreement": "people where two differ",
}


def least(qualities: list[Quality]) -> float:
    """Where a common scale of all shares begins: a tenth."""
    lows = [
        one.low for quality in qualities for one in (quality.single, quality.majority, quality.consensus) if one.low
    ]
    return math.floor(10 * min(lows, default=0.0)) / 10


def votes_plot(qualities: list[Quality]) -> Markup | str:
    lines = [
        Line(quality.name, list(quality.curve.items()), STYLES[number % len(STYLES)])
        for number, quality in enumerate(qualities)
        if quality.curve
    ]
    return shares_plot("How often labels are right, by votes", "votes per label", lines) if lines else ""


def advice_plot(one: Advice) -> Markup | str:
    if not one.settings:
        return ""
    lines = []
    for kind, style in PLOT_STYLES.items():
        chosen = [setting for setting in one.settings if setting.kind == kind]
        if kind in ("uncertainty", "disagreement"):
            chosen = frontier(chosen)
        points = sorted((1000 * setting.cost, setting.accuracy) for setting in chosen)
        if points:
            lines.append(Line(KINDS[kind], points, style))
    return shares_plot("How often labels are right, by cost", "USD per 1,000 labels", lines, one.wanted)


def settings_told(one: Advice) -> dict[str, Any]:
    kinds = [KINDS[kind] for kind in PLOT_STYLES if any(setting.kind == kind for setting in one.settings)]
    return {"frontier": [(setting, _in_words(setting)) for setting in one.frontier], "kinds": kinds}


def _in_words(setting: Setting) -> str:
    if setting.threshold is not None and setting.kind == "uncertainty":
        return f"{setting.who}: P(yes) between {setting.threshold / 2:.2f} and {1 - setting.threshold / 2:.2f}"
    return setting.who


def g_plot(comparison: Comparison) -> Markup | str:
    lines = [
        Line(one.name, [(query, 1 - value) for query, value in enumerate(one.g_curve, start=1)], style)
        for one, style in zip(comparison.yields, STYLES * len(comparison.yields), strict=False)
        if one.g_curve
    ]
    return shares_plot("Coverage (1 − g) by questions", "questions", lines) if lines else ""
