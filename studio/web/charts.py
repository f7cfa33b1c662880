"""Small drawings as SVG elements: colours come from the page's style sheet, and every text is escaped."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from markupsafe import Markup, escape

Place = Callable[[float, float], tuple[float, float]]  # from values to the drawing

WIDTH, HEIGHT = 440, 230
LEFT, RIGHT, TOP, BOTTOM = 46, 14, 14, 40
TICKS = 4
WIDE = 900  # of drawings over time
DATES = 6  # along the axis, at most
DAY = 86_400.0


@dataclass(frozen=True)
class Series:
    name: str
    x: Sequence[float]
    y: Sequence[float]
    style: str = "main"  # a class of the style sheet


def element(name: str, *children: Markup | str, **attributes: object) -> Markup:
    """`class_` is class and `stroke_width` is stroke-width; texts among the children are escaped."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(short(value))}"' for key, value in attributes.items()
    )
    inside = "".join(map(escape, children))
    return Markup(f"<{name}{written}>{inside}</{name}>")  # noqa: S704 - what comes from outside is escaped above


def curve(title: str, x_label: str, series: Sequence[Series], *, percent: bool = False, start: float = 0.0) -> Markup:
    """Steps over questions or dollars; the axis of values begins at 0. `start` is the value before the first step."""
    x_max = max((max(line.x, default=0.0) for line in series), default=0.0) or 1.0
    y_max = max([start, *(value for line in series for value in line.y)]) or 1.0
    y_ticks, x_ticks = nice_ticks(y_max, beyond=True), nice_ticks(x_max)
    y_top = y_ticks[-1]

    def place(x: float, y: float) -> tuple[float, float]:
        return (LEFT + (WIDTH - LEFT - RIGHT) * x / x_max, TOP + (HEIGHT - TOP - BOTTOM) * (1 - y / y_top))

    drawn = [grid(place, x_ticks, y_ticks, percent), *(steps(place, line, (0.0, start)) for line in series)]
    return framed(title, x_label, drawn)


def framed(title: str, x_label: str, drawn: Sequence[Markup], *, width: float = WIDTH, style: str = "curve") -> Markup:
    """A whole drawing, with the label of the axis below it."""
    label = element("text", x_label, x=(LEFT + width - RIGHT) / 2, y=HEIGHT - 6, class_="axis", text_anchor="middle")
    box = f"0 0 {width} {HEIGHT}"
    return element("svg", element("title", title), *drawn, label, viewBox=box, role="img", class_=style)


def nice_ticks(top: float, *, beyond: bool = False) -> list[float]:
    """0 and a few round steps up to `top`, or to the first step that is not below it."""
    step = 10 ** math.floor(math.log10(top / TICKS)) if top > 0 else 1.0
    step = next(step * factor for factor in (1, 2, 2.5, 5, 10, 20) if top / (step * factor) <= TICKS + 0.5)
    last = math.ceil(top / step - 1e-9) if beyond else math.floor(top / step + 1e-9)
    return [step * number for number in range(last + 1)]


def share_bar(yes: int, no: int, unknown: int) -> Markup:
    """Of all examples, those that have a feature, those that lack it, and those whose label is unknown."""
    total = max(yes + no + unknown, 1)
    drawn, x = [], 0.0
    for count, style in ((yes, "yes"), (no, "no"), (unknown, "unknown")):
        width = 100 * count / total
        if count:
            drawn.append(element("rect", x=x, y=0, width=width, height=6, class_=style))
        x += width
    label = f"{yes} have it, {no} lack it" + (f", {unknown} unknown" if unknown else "")
    return element(
        "svg",
        element("title", label),
        *drawn,
        viewBox="0 0 100 6",
        preserveAspectRatio="none",
        role="img",
        class_="share",
    )


def interval_bar(low: float, middle: float, high: float, *, least: float, most: float) -> Markup:
    """An estimate with its interval on a common scale, with a line at 0 where the scale has one."""
    span = (most - least) or 1.0

    def at(value: float) -> float:
        return 100 * (min(max(value, least), most) - least) / span

    drawn = [element("rect", x=at(low), y=3.5, width=max(at(high) - at(low), 0.5), height=1, class_="range")]
    if least < 0 < most:
        drawn.insert(0, element("rect", x=at(0) - 0.15, y=0, width=0.3, height=8, class_="zero"))
    drawn.append(element("rect", x=at(middle) - 0.8, y=1.5, width=1.6, height=5, class_="middle"))
    return element(
        "svg", *drawn, viewBox="0 0 100 8", preserveAspectRatio="none", class_="interval", aria_hidden="true"
    )


def grid(
    place: Place, x_ticks: Sequence[float], y_ticks: Sequence[float], percent: bool, *, width: float = WIDTH
) -> Markup:
    """Lines and labels of both axes."""
    drawn = []
    for value in y_ticks:
        _, y = place(0, value)
        drawn.append(element("line", x1=LEFT, x2=width - RIGHT, y1=y, y2=y, class_="grid"))
        text = f"{100 * value:g}\N{NO-BREAK SPACE}%" if percent else _number(value)
        drawn.append(element("text", text, x=LEFT - 7, y=y + 4, class_="tick", text_anchor="end"))
    for value in x_ticks:
        x, _ = place(value, 0)
        drawn.append(element("text", _number(value), x=x, y=HEIGHT - BOTTOM + 17, class_="tick", text_anchor="middle"))
    return element("g", *drawn)


def steps(place: Place, line: Series, start: tuple[float, float], end: float | None = None) -> Markup:
    """From `start` on each value holds until the next, and the last one until `end`."""
    points, before = [place(*start)], start[1]
    for x, y in zip(line.x, line.y, strict=True):
        points += [place(x, before), place(x, y)]
        before = y
    points += [] if end is None else [place(end, before)]
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return element("path", element("title", line.name), d=path, class_=f"line {line.style}")


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def short(value: object) -> object:
    """Numbers with two digits after the point at most."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value


def data_url(drawings: Sequence[tuple[str, Markup]]) -> str:
    """Titles and drawings side by side as one picture with its own colours."""
    style = (
        ".grid{stroke:#ddd}.line{fill:none;stroke:#0d7a70;stroke-width:2}.line.faint{stroke:#777;stroke-dasharray:3 3}"
        ".tick,.axis,.caption{fill:#555;font:11px sans-serif}.caption{font-size:14px}"
    )
    head, step = 24, WIDTH + 20
    placed: list[Markup] = []
    for number, (title, drawing) in enumerate(drawings):
        placed.append(element("text", title, x=number * step + LEFT, y=17, class_="caption"))
        placed.append(element("svg", drawing, x=number * step, y=head, width=WIDTH, height=HEIGHT))
    width, height = len(drawings) * step, HEIGHT + head
    picture = element(
        "svg",
        element("style", style),
        element("rect", width=width, height=height, fill="#fff"),
        *placed,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
    )
    return "data:image/svg+xml;base64," + base64.b64encode(picture.encode()).decode()


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


def sparkline(title: str, values: Sequence[float], most: int, style: str = "main") -> Markup:
    """How something grew or fell, question by question of `most`, without axes."""
    top = max(values, default=0.0) or 1.0
    step = 100 / max(most - 1, len(values) - 1, 1)
    path = "M" + "L".join(f"{step * at:.1f} {22 - 20 * value / top:.1f}" for at, value in enumerate(values))
    drawn = element("path", d=path, class_=f"line {style}") if values else ""
    return element(
        "svg",
        element("title", title),
        drawn,
        viewBox="0 0 100 24",
        preserveAspectRatio="none",
        role="img",
        class_="spark",
    )


def expected_bar(likely: float, most: float, limit: float) -> Markup:
    """A price from likely to at most, and the budget as a line across it."""
    top = max(most, limit) * 1.05 or 1.0
    drawn = [
        element("rect", x=0, y=12, width=100, height=10, class_="base"),
        element("rect", x=0, y=12, width=100 * most / top, height=10, class_="range"),
        element("rect", x=0, y=12, width=100 * likely / top, height=10, class_="likely"),
    ]
    if limit:
        drawn.append(element("line", x1=100 * limit / top, x2=100 * limit / top, y1=4, y2=30, class_="limit"))
    name = element("title", "The likely price, the highest, and the budget")
    return element("svg", name, *drawn, viewBox="0 0 100 34", preserveAspectRatio="none", role="img", class_="expected")
