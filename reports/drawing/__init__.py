"""SVG and templates."""

from twothirds.reports.drawing.svg import (
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
    stems_over_time,
    steps_over_time,
)
from twothirds.reports.drawing.template import (
    ASSETS,
    FILTERS,
    duration,
    percent,
    plural,
    render_template,
    unbroken,
    usd,
)
