"""Line plots as SVG, the same bytes for the same figures on every run."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from twothirds.discovery.statistics import Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#1b6ca8", "#d1495b", "#3a7d44", "#8d6a9f", "#b9770e", "#444444")  # told apart in grey and by most eyes
STYLE: dict[Any, Any] = {
    "svg.hashsalt": "twothirds",
    "svg.fonttype": "none",  # text stays text: small files, searchable
    "font.family": "sans-serif",
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}
LEGEND_WIDTH, SYMBOL_WIDTH = 56, 6  # of a panel and of the line before a name, in letters


@dataclass(frozen=True)
class PlotLine:
    """A curve; `low` and `high` are its confidence band."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    dashed: bool = False

    @classmethod
    def of_estimates(cls, name: str, x: Sequence[float], estimates: Sequence[Interval]) -> PlotLine:
        low, high = [estimate.low for estimate in estimates], [estimate.high for estimate in estimates]
        return cls(name, x, [estimate.value for estimate in estimates], low, high)


@dataclass(frozen=True)
class PlotPanel:
    title: str
    x_label: str
    y_label: str
    lines: Sequence[PlotLine]
    log_x: bool = False
    log_y: bool = False
    level: float | None = None  # a horizontal line to compare with
    y_range: tuple[float, float] | None = None


@dataclass(frozen=True)
class Plot:
    panels: Sequence[PlotPanel]
    alt: str  # what the picture shows, for those who cannot see it
    columns: int = 3


def svg_of(plot: Plot) -> str:
    """The plot as an SVG document without date, machine or random identifiers."""
    import matplotlib
    from matplotlib.figure import Figure

    columns = min(plot.columns, len(plot.panels))
    rows = -(-len(plot.panels) // columns)
    names = list(dict.fromkeys(line.name for panel in plot.panels for line in panel.lines))
    colours = {name: COLOURS[number % len(COLOURS)] for number, name in enumerate(names)}
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(3.4 * columns + 0.8, 2.8 * rows + 0.6), layout="constrained")
        axes = list(figure.subplots(rows, columns, squeeze=False).flat)
        for axis, panel in zip(axes, plot.panels, strict=False):
            _draw(axis, panel, colours)
        for axis in axes[len(plot.panels) :]:
            axis.set_axis_off()
        _add_legend(figure, axes, columns)
        written = io.StringIO()
        figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None, "Title": plot.alt})
    return "\n".join(line.rstrip() for line in written.getvalue().splitlines()) + "\n"


def _draw(axis: Axes, panel: PlotPanel, colours: dict[str, str]) -> None:
    for line in panel.lines:
        colour = colours[line.name]
        axis.plot(line.x, line.y, label=line.name, color=colour, linestyle="--" if line.dashed else "-")
        if line.low is not None and line.high is not None:
            axis.fill_between(line.x, line.low, line.high, color=colour, alpha=0.18, linewidth=0)
    if panel.level is not None:
        axis.axhline(panel.level, color="#888888", linewidth=0.8, linestyle=":")
    if panel.y_range is not None:
        axis.set_ylim(*panel.y_range)
    _scale(axis, panel)
    axis.set_title(panel.title)
    axis.set_xlabel(panel.x_label)
    axis.set_ylabel(panel.y_label)


def _scale(axis: Axes, panel: PlotPanel) -> None:
    """Logarithmic axes with plain numbers: along x at the data, along y at the powers of ten."""
    from matplotlib.ticker import NullFormatter, StrMethodFormatter

    if panel.log_x:
        axis.set_xscale("log")
        axis.set_xticks(sorted({x for line in panel.lines for x in line.x}))
        axis.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.xaxis.set_minor_formatter(NullFormatter())
    if panel.log_y:
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
        axis.yaxis.set_minor_formatter(NullFormatter())


def _add_legend(figure: Figure, axes: Sequence[Axes], columns: int) -> None:
    """Two names to a panel's width, or one where that would not fit: matplotlib cuts off what is too wide."""
    handles = {name: handle for axis in axes for handle, name in zip(*axis.get_legend_handles_labels(), strict=True)}
    if len(handles) > 1:
        fitting = columns * LEGEND_WIDTH // (max(map(len, handles)) + SYMBOL_WIDTH)
        per_row = max(1, min(2 * columns, fitting, len(handles)))
        figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=per_row)
