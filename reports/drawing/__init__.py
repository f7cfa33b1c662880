"""SVG and templates."""

from reports.drawing.over_time import stems_over_time, steps_over_time
from reports.drawing.svg import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Series,
    curve,
    data_url,
    element,
    framed,
    grid,
    nice_ticks,
    share_bar,
    short,
)
from reports.drawing.template import ASSETS, FILTERS, percent, plural, render_template, unbroken, usd
