"""compare.html: one file that says who was compared, how far they agree, who is right, and whom to ask."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from twothirds.discovery.statistics import EPSILON, Calibration, Estimate, Setting, frontier
from twothirds.reports.compare.advice import Advice, Versus
from twothirds.reports.compare.comparison import Disagreement, OracleComparison
from twothirds.reports.compare.labels import DAWID_SKENE, MAJORITY, ONE_VOTE, PairAgreement, Quality
from twothirds.reports.compare.study import Rater
from twothirds.reports.compare.verdict import verdict_of
from twothirds.reports.page import MIME, cut, script_json, thumbnails
from twothirds.sources import Dataset
from twothirds.studio.web import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    element,
    framed,
    grid,
    nice_ticks,
    render_file,
    unbroken,
)

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
    most = max((bucket.examples for bucket in found.bins), default=1)
    for bucket in found.bins:
        x, y = place(bucket.predicted, bucket.true)
        label = f"said {bucket.predicted:.0%}, true {bucket.true:.0%} of {bucket.examples}"
        radius = 2.5 + 6 * (bucket.examples / most) ** 0.5
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
    lows = [estimate.low for quality in qualities for estimate in quality.accuracy.overall.values() if estimate.low]
    return math.floor(10 * min(lows, default=0.0)) / 10


def votes_plot(qualities: list[Quality]) -> Markup | str:
    lines = [
        ShareCurve(quality.name, list(quality.curve.items()), STYLES[number % len(STYLES)])
        for number, quality in enumerate(qualities)
        if quality.curve
    ]
    return shares_plot("How often labels are right, by votes", "votes per label", lines) if lines else ""


def cost_plot(comparison: OracleComparison) -> Markup | str:
    """A dot for each oracle whose labels can be scored: what its votes cost, and how often its majority is right."""
    scored = zip(comparison.study.raters, comparison.qualities, STYLES * len(comparison.qualities), strict=False)
    lines = [
        ShareCurve(rater.name, [(1000 * rater.usd_per_vote, right)], style, joined=False)
        for rater, quality, style in scored
        if (right := quality.accuracy.overall[MAJORITY].value) is not None
    ]
    return shares_plot("How often labels are right, by cost", "USD per 1,000 votes", lines) if lines else ""


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
    return {"frontier": [(setting, _in_words(setting)) for setting in frontier(advice.settings)], "kinds": kinds}


def _in_words(setting: Setting) -> str:
    if setting.threshold is not None and setting.kind == "uncertainty":
        return f"{setting.who}: P(yes) between {setting.threshold / 2:.2f} and {1 - setting.threshold / 2:.2f}"
    return setting.who


def g_plot(comparison: OracleComparison) -> Markup | str:
    lines = [
        ShareCurve(own.name, [(query, 1 - value) for query, value in enumerate(own.g_curve, start=1)], style)
        for own, style in zip(comparison.yields, STYLES * len(comparison.yields), strict=False)
        if own.g_curve
    ]
    return shares_plot("Coverage (1 − g) by questions", "questions", lines) if lines else ""


MOST_CARDS = 1_200  # disagreements in the page; the table beside it has all
FEWEST_CARDS = 12  # of each feature, if there are so many
TEXT_LIMIT = 600
MAX_LISTED_TRIPLES = 12
COUNTED = {ONE_VOTE: "one vote", MAJORITY: "majority of all votes", DAWID_SKENE: "Dawid–Skene"}
SCORES = ("precision", "recall", "specificity", "Brier score", "errors in common")


def render_comparison(comparison: OracleComparison, dataset: Dataset) -> str:
    study = comparison.study
    carried = carried_disagreements(comparison.disagreements, len(study.features))
    rows = sorted({disagreement.row for disagreement in carried})
    by_id = {example.id: example for example in dataset.examples}
    examples = [by_id.get(study.ids[row]) for row in rows]
    pictures = thumbnails(examples)
    context = {
        "comparison": comparison,
        "study": study,
        "verdict": verdict_of(comparison),
        "epsilon": EPSILON[study.annotators],
        "tables": [_table(comparison, pair) for pair in comparison.pairs],
        "ways": [_ways(quality) for quality in comparison.qualities],
        "blind": comparison.reference.without_looking,
        "least": least(comparison.qualities),
        "styles": STYLES,
        "cost_plot": cost_plot(comparison),
        "votes_plot": votes_plot(comparison.qualities),
        "calibrations": [
            (
                quality,
                calibration_plot(f"Calibration of {quality.name}", quality.calibration),
                _knows_nothing(quality, comparison),
            )
            for quality in comparison.qualities
        ],
        "advice": [(advised, advice_plot(advised), settings_in_words(advised)) for advised in comparison.advice],
        "shares": [(against, _share_rows(comparison, against)) for against in comparison.versus],
        "g_plot": g_plot(comparison),
        "triples": _triples(comparison),
        "answered": [_answered(oracle) for oracle in study.raters if oracle.compared],
        "carried": len(carried),
        "truth_known": study.truth is not None,
        "pictured": any(pictures),
        "data": script_json(_data(comparison, carried, rows, examples)),
        "pictures": script_json(pictures if any(pictures) else []),
    }
    styles = ("tokens.css", "browser.css", "report.css", "compare.css")
    return render_file("compare/page.html", context, styles, ("elements.js", "compare.js"))


def carried_disagreements(found: list[Disagreement], features: int) -> list[Disagreement]:
    """The surest of every feature, so that no feature crowds out another."""
    if len(found) <= MOST_CARDS:
        return found
    limit = max(FEWEST_CARDS, MOST_CARDS // max(features, 1))
    counts = Counter[int]()
    carried: list[Disagreement] = []
    for disagreement in found:
        if counts[disagreement.feature] < limit and len(carried) < MOST_CARDS:
            counts[disagreement.feature] += 1
            carried.append(disagreement)
    return carried


def _data(
    comparison: OracleComparison, carried: list[Disagreement], rows: list[int], examples: Iterable[Any]
) -> dict[str, Any]:
    place_of = {row: place for place, row in enumerate(rows)}
    texts = [cut(example.text, TEXT_LIMIT) if example and example.text else "" for example in examples]
    study = comparison.study
    return {
        "ids": [study.ids[row] for row in rows],
        "texts": texts if any(texts) else None,
        "features": study.names,
        "oracles": [oracle.name for oracle in study.raters],
        "mime": MIME,
        "cards": [
            [
                disagreement.feature,
                place_of[disagreement.row],
                list(disagreement.labels),
                [list(votes) for votes in disagreement.votes],
                disagreement.truth,
            ]
            for disagreement in carried
        ],
    }


def _table(comparison: OracleComparison, pair: PairAgreement) -> dict[str, Any]:
    """One row per feature; a cell is its column, the estimate, and how it is written: share, number or signed."""
    a, b = pair.a, pair.b
    versus = next((against for against in comparison.versus if {against.model, against.people} == {a, b}), None)
    names = [oracle.name for oracle in comparison.study.raters]
    first, second = names.index(a), names.index(b)
    counts = Counter(
        disagreement.feature
        for disagreement in comparison.disagreements
        if {disagreement.labels[first], disagreement.labels[second]} == {0, 1}
    )
    rows = []
    for place, (name, definition) in enumerate(comparison.study.features):
        rows.append(
            {
                "place": place,
                "name": name,
                "definition": definition,
                "cells": _cells(pair.by_feature[place], comparison, (a, b), place),
                "verdict": _replaces(versus.test_each[place] if versus else None),
                "disagreements": counts[place],
            }
        )
    overall = _cells(pair.overall, comparison, (a, b), None)
    return {
        "a": a,
        "b": b,
        "versus": versus,
        "rows": rows,
        "overall": overall,
        "overall_verdict": _replaces(versus.test if versus else None),
        "columns": [name for name, _, _ in overall],
    }


def _cells(
    found: dict[str, Estimate], comparison: OracleComparison, pair: tuple[str, str], place: int | None
) -> list[tuple[str, Estimate, str]]:
    cells = [
        ("agreement", found["raw agreement"], "share"),
        ("kappa", found["Cohen's kappa"], "number"),
        ("alpha", found["Krippendorff's alpha"], "number"),
        ("agree on yes", found["positive agreement"], "share"),
        ("agree on no", found["negative agreement"], "share"),
        ("says yes", found["prevalence"], "share"),
        ("bias", found["bias"], "signed"),
    ]
    for quality in comparison.qualities:
        right = quality.right.overall if place is None else quality.right.by_feature[place]
        if quality.name in pair and right["accuracy"].defined:
            cells.append((f"{_short(quality.name, comparison)} right", right["accuracy"], "share"))
    reference = comparison.reference
    if cells[-1][0].endswith(" right"):
        blind = reference.without_looking if place is None else reference.right_without_looking[place]
        if blind is not None:
            cells.append(("without looking", Estimate(blind), "share"))
    return cells


def _knows_nothing(quality: Quality, comparison: OracleComparison) -> bool:
    """Well calibrated is also who gives each feature's share of yes as the probability of every example."""
    brier, blind = quality.right.overall["Brier score"].value, comparison.reference.brier_without_looking
    return brier is not None and blind is not None and brier >= blind > 0


def _short(name: str, comparison: OracleComparison) -> str:
    """What a column is headed by: people and model, where there is one of each."""
    people = comparison.study.people
    if people is None or len(comparison.study.raters) != 2:
        return name
    return "people" if name == people.name else "model"


def _replaces(test: Any) -> tuple[str, str, str]:
    """What the alternative annotator test says, its style, and the figures behind it."""
    if test is None:
        return "", "", ""
    if test.passes is None:
        return f"not defined: {test.reason}", "undefined", ""
    figures = f"ω {test.winning_rate:.2f}, ρ {test.advantage:.2f}"
    return ("may replace", "good", figures) if test.passes else ("may not", "bad", figures)


def _ways(quality: Quality) -> dict[str, Any]:
    return {
        "quality": quality,
        "rows": [(COUNTED[way], estimate) for way, estimate in quality.accuracy.overall.items()],
        "scores": [(name, quality.right.overall[name]) for name in SCORES],
        "among": list(quality.among.overall.items()),
    }


def _share_rows(comparison: OracleComparison, versus: Versus) -> list[dict[str, Any]]:
    return [
        {"name": name, "found": versus.shares[place], "known": versus.known[place] if versus.known else None}
        for place, name in enumerate(comparison.study.names)
    ]


def _answered(oracle: Rater) -> str:
    """How many of the questions it answered by a feature, by NONE, and not in a way that can be used."""
    verdicts = [answer.verdict for answer in oracle.compared]
    named, none = verdicts.count("feature"), verdicts.count("none")
    return f"{oracle.name}: {named} named, {none} found nothing, {len(verdicts) - named - none} unusable"


def _triples(comparison: OracleComparison) -> list[dict[str, Any]]:
    """What each oracle said to the first questions."""
    study = comparison.study
    return [
        {
            "examples": [study.ids[row] for row in asked.examples],
            "without": [study.ids[row] for row in asked.without],
            "answers": [oracle.compared[number].name or oracle.compared[number].verdict for oracle in study.raters],
        }
        for number, asked in enumerate(study.asked[:MAX_LISTED_TRIPLES])
        if all(rater.compared for rater in study.raters)
    ]
