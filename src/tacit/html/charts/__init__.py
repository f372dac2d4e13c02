"""Charts as inline SVG: bars, lines, points and ranges, as pure functions from figures to markup.

Every function takes plain text and escapes it; what it returns is `Html`. Colours and sizes are in
the style of `tacit.html.page`, which puts charts on a page.
"""

from __future__ import annotations

from tacit.html.charts.bars import bar_chart
from tacit.html.charts.lines import line_chart, trend_chart
from tacit.html.charts.plot import COLOURS, Html
from tacit.html.charts.points import scatter_chart
from tacit.html.charts.ranges import range_chart

__all__ = [
    "COLOURS",
    "Html",
    "bar_chart",
    "line_chart",
    "range_chart",
    "scatter_chart",
    "trend_chart",
]
