"""What all pages share: templates, style, scripts, texts in three languages, drawings, numbers in words. It imports no
other part of the program, and needs no server: reports use it too."""

from twothirds.studio.web.charts import (
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
from twothirds.studio.web.environment import STATIC, environment, render, render_file
from twothirds.studio.web.examples import ExampleTile
from twothirds.studio.web.languages import CATALOGUES, Catalogue, Moment, language_of
from twothirds.studio.web.numbers import duration, percent, plural, unbroken, usd
