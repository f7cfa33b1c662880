"""Which features go together: correlations over the examples, ordered so that neighbours are alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

from twothirds.discovery import correlations
from twothirds.studio.web import element, short

CELL = 16
WHITE_BELOW = 0.05  # weaker correlations are not drawn
LISTED_FROM = 0.4  # stronger correlations are listed below the drawing
MAX_LISTED_PAIRS = 12


@dataclass(frozen=True)
class CorrelatedPair:
    a: int
    b: int
    correlation: float


def related(matrix: NDArray[np.int8]) -> NDArray[np.float64]:
    """Features × features."""
    table = correlations(matrix, matrix)
    np.fill_diagonal(table, 1.0)
    return table


def strongest(table: NDArray[np.float64]) -> list[CorrelatedPair]:
    a, b = np.triu_indices(len(table), 1)
    pairs = [CorrelatedPair(int(i), int(j), float(table[i, j])) for i, j in zip(a, b, strict=True)]
    strong = [pair for pair in pairs if abs(pair.correlation) >= LISTED_FROM]
    return sorted(strong, key=lambda pair: -abs(pair.correlation))[:MAX_LISTED_PAIRS]


def ordered(table: NDArray[np.float64]) -> list[int]:
    """A chain in which each feature is followed by the one left that is most like it."""
    left = list(range(len(table)))
    chain: list[int] = []
    while left:
        last = table[chain[-1]] if chain else np.abs(table).sum(axis=0)
        chain.append(left.pop(int(np.argmax([last[place] for place in left]))))
    return chain


def heat_map(table: NDArray[np.float64], names: Sequence[str]) -> Markup:
    """Rows are named; columns carry the number under which the feature was discovered."""
    order = ordered(table)
    label = 8 + min(max((len(name) for name in names), default=0), 26) * 6.2
    size = CELL * len(order)
    drawn: list[Markup] = []
    shown = [escape(name) for name in names]
    for row, a in enumerate(order):
        y = 18 + CELL * row
        text = names[a] if len(names[a]) <= 26 else names[a][:25] + "…"
        drawn.append(element("text", text, x=label - 6, y=y + 11.5, class_="tick", text_anchor="end"))
        drawn.append(
            element(
                "text", str(a + 1), x=label + CELL * row + CELL / 2, y=12, class_="tick place", text_anchor="middle"
            )
        )
        drawn += _cells(table[a].tolist(), a, order, shown, label, y)
    box = element("rect", x=label, y=18, width=size, height=size, class_="frame")
    return element(
        "svg",
        element("title", "Correlation between features"),
        box,
        *drawn,
        viewBox=f"0 0 {label + size + 4:.0f} {size + 24}",
        width=f"{label + size + 4:.0f}",
        role="img",
        class_="heat",
    )


def _cells(row: list[float], a: int, order: list[int], names: list[Markup], left: float, y: float) -> Iterator[Markup]:
    """One row, written without `element`: there are thousands of them in a drawing."""
    side, top = CELL - 1, short(y + 0.5)
    for column, b in enumerate(order):
        value = 1.0 if a == b else row[b]
        if abs(value) < WHITE_BELOW:
            continue
        style = "self" if a == b else "together" if value > 0 else "apart"
        title = "" if a == b else f"<title>{names[a]} × {names[b]}: {value:+.2f}</title>"
        place = f'x="{short(left + CELL * column + 0.5)}" y="{top}" width="{side}" height="{side}"'
        opacity = short(round(min(1.0, abs(value) ** 0.7), 2))
        yield Markup(f'<rect {place} class="{style}" fill-opacity="{opacity}">{title}</rect>')  # noqa: S704 - escaped
