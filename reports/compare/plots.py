"""The drawings of a comparison: accuracy by votes and by cost, coverage by questions, and calibration."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from discovery.statistics import Calibration, Setting, frontier
from reports.compare.advice import Advice
from reports.compare.comparison import OracleComparison
from reports.compare.labels import Quality
from reports.drawing import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, element, framed, grid, nice_ticks, unbroken

PERCENT_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25)


@dataclass(frozen=True)
class ShareCurve:
    name: str
    points: Sequence[tuple[float, float]]  # the second is a share
    style: str = "main"
    joined: bool = True


def shares_plot(title: str, x_label: str, lines: Sequence[ShareCurve], wanted: float | None = None) -> Markup:
    """Shares over a number that begins at 0; the axis of shares begins where it must and ends at 100 %."""
    values = [y for line in lines for _, y in line.points] or [0.0]
    least = min([*values, wanted] if wanted is not None else values)
    step = next((step for step in PERCENT_STEPS if (1 - least) / step <= 5), 0.25)
    bottom = max(0.0, 1 - step * -(-(1 - least) // step))
    x_max = max((x for line in lines for x, _ in line.points), default=0.0) or 1.0

    def place(x: float, y: float) -> tuple[float, float]:
        across = LEFT + (WIDTH - LEFT - RIGHT) * x / x_max
        return across, TOP + (HEIGHT - TOP - BOTTOM) * (1 - y) / ((1 - bottom) or 1.0)

    y_ticks = [1 - number * step for number in range(round((1 - bottom) / step) + 1)]
    drawn = [grid(place, nice_ticks(x_max), y_ticks, percent=True)]
    if wanted is not None:
        _, down = place(0, wanted)
        drawn.append(element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=down, y2=down, class_="wanted"))
    drawn += [_drawn(line, [place(*point) for point in line.points]) for line in lines]
    return framed(title, x_label, drawn)


def calibration_plot(title: str, found: Calibration) -> Markup:
    """What was said against what was true; the diagonal is honesty, and a dot's size tells how many examples."""
    side = HEIGHT - TOP - BOTTOM

    def place(x: float, y: float) -> tuple[float, float]:
        return LEFT + side * x, TOP + side * (1 - y)

    (x1, y1), (x2, y2) = place(0, 0), place(1, 1)
    drawn = [
        element("rect", x=x1, y=y2, width=x2 - x1, height=y1 - y2, class_="frame"),
        element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_="grid"),
    ]
    for share in (0.0, 0.5, 1.0):
        x, y = place(share, share)
        drawn.append(
            element("text", unbroken(f"{100 * share:g} %"), x=LEFT - 7, y=y + 4, class_="tick", text_anchor="end")
        )
        drawn.append(
            element("text", unbroken(f"{100 * share:g} %"), x=x, y=y1 + 17, class_="tick", text_anchor="middle")
        )
    most = max((one.examples for one in found.bins), default=1)
    for one in found.bins:
        x, y = place(one.predicted, one.true)
        label = f"said {one.predicted:.0%}, true {one.true:.0%} of {one.examples}"
        radius = 2.5 + 6 * (one.examples / most) ** 0.5
        drawn.append(element("circle", element("title", label), cx=x, cy=y, r=radius, class_="dot"))
    return framed(title, "said", drawn, width=LEFT + side + 20, style="curve square")


def _drawn(line: ShareCurve, points: Sequence[tuple[float, float]]) -> Markup:
    drawn = []
    if line.joined and len(points) > 1:
        path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        drawn.append(element("path", element("title", line.name), d=path, class_=f"line {line.style}"))
    for (x, y), (cost, share) in zip(points, line.points, strict=True):
        label = f"{line.name}: {share:.1%} at {cost:g}"
        drawn.append(element("circle", element("title", label), cx=x, cy=y, r=3.0, class_=f"dot {line.style}"))
    return element("g", *drawn)


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
        ShareCurve(quality.name, list(quality.curve.items()), STYLES[number % len(STYLES)])
        for number, quality in enumerate(qualities)
        if quality.curve
    ]
    return shares_plot("How often labels are right, by votes", "votes per label", lines) if lines else ""


def advice_plot(advice: Advice) -> Markup | str:
    if not advice.settings:
        return ""
    lines = []
    for kind, style in PLOT_STYLES.items():
        chosen = [setting for setting in advice.settings if setting.kind == kind]
        if kind in ("uncertainty", "disagreement"):
            chosen = frontier(chosen)
        points = sorted((1000 * setting.cost, setting.accuracy) for setting in chosen)
        if points:
            lines.append(ShareCurve(KINDS[kind], points, style))
    return shares_plot("How often labels are right, by cost", "USD per 1,000 labels", lines, advice.wanted)


def settings_in_words(advice: Advice) -> dict[str, Any]:
    kinds = [KINDS[kind] for kind in PLOT_STYLES if any(setting.kind == kind for setting in advice.settings)]
    return {"frontier": [(setting, _in_words(setting)) for setting in advice.frontier], "kinds": kinds}


def _in_words(setting: Setting) -> str:
    if setting.threshold is not None and setting.kind == "uncertainty":
        return f"{setting.who}: P(yes) between {setting.threshold / 2:.2f} and {1 - setting.threshold / 2:.2f}"
    return setting.who


def g_plot(comparison: OracleComparison) -> Markup | str:
    lines = [
        ShareCurve(one.name, [(query, 1 - value) for query, value in enumerate(one.g_curve, start=1)], style)
        for one, style in zip(comparison.yields, STYLES * len(comparison.yields), strict=False)
        if one.g_curve
    ]
    return shares_plot("Coverage (1 − g) by questions", "questions", lines) if lines else ""
