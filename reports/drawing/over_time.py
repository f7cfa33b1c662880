"""Sums of money over time: steps that grow, and a stem for each payment."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from markupsafe import Markup

from reports.drawing.svg import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    Place,
    Series,
    element,
    framed,
    grid,
    nice_ticks,
    steps,
)

WIDE = 900
DATES = 6  # along the axis, at most
DAY = 86_400.0


def steps_over_time(title: str, series: Sequence[Series]) -> Markup:
    """`x` of each are seconds since 1970 and grow; what a step reaches holds until now, which is the last `x`."""
    start, end = _span(series)
    place, ticks = _scale(series, start, end)
    return framed(
        title,
        "",
        [
            grid(place, [], ticks, False, width=WIDE),
            _dates(place, start, end),
            *(steps(place, line, (line.x[0], 0.0), end) for line in series if len(line.x)),
        ],
        width=WIDE,
    )


def stems_over_time(title: str, series: Sequence[Series]) -> Markup:
    """One stem for each value, named by its series."""
    start, end = _span(series)
    place, ticks = _scale(series, start, end)
    stems = [
        element(
            "line",
            element("title", line.name),
            x1=at[0],
            x2=at[0],
            y1=place(start, 0)[1],
            y2=at[1],
            class_=f"stem {line.style}",
        )
        for line in series
        for x, y in zip(line.x, line.y, strict=True)
        for at in [place(x, y)]
    ]
    return framed(title, "", [grid(place, [], ticks, False, width=WIDE), _dates(place, start, end), *stems], width=WIDE)


def _span(series: Sequence[Series]) -> tuple[float, float]:
    """A single moment gets some room on both sides."""
    every = [x for line in series for x in line.x] or [0.0]
    start, end = min(every), max(every)
    return (start, end) if end - start > 1 else (start - DAY / 2, end + DAY / 2)


def _scale(series: Sequence[Series], start: float, end: float) -> tuple[Place, list[float]]:
    ticks = nice_ticks(max([value for line in series for value in line.y], default=0.0) or 1.0, beyond=True)

    def place(x: float, y: float) -> tuple[float, float]:
        along = (x - start) / (end - start)
        return (LEFT + (WIDE - LEFT - RIGHT) * along, TOP + (HEIGHT - TOP - BOTTOM) * (1 - y / ticks[-1]))

    return place, ticks


def _dates(place: Place, start: float, end: float) -> Markup:
    """Days in UTC, with the hour where they are few and the year where they are many."""
    written = "%d %b %H:%M" if end - start < 3 * DAY else "%d %b" if end - start < 300 * DAY else "%b %Y"
    at = [start + (end - start) * number / (DATES - 1) for number in range(DATES)]
    anchors = ["start", *["middle"] * (DATES - 2), "end"]
    texts = [
        element(
            "text",
            datetime.fromtimestamp(x, UTC).strftime(written),
            x=place(x, 0)[0],
            y=HEIGHT - BOTTOM + 17,
            class_="tick",
            text_anchor=anchor,
        )
        for x, anchor in zip(at, anchors, strict=True)
    ]
    return element("g", *texts)
