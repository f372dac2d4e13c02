"""Bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tacit.html.charts.plot import (
    WIDTH,
    Html,
    check_lengths,
    legend,
    shortened,
    svg_figure,
    text_at,
    title_of,
)

__all__ = ["bar_chart"]


def bar_chart(
    title: str, labels: Sequence[str], series: Mapping[str, Sequence[float]], form: str = ".0%"
) -> Html:
    """Horizontal bars, one a label and series, each with its value written at its end.

    Parameters
    ----------
    title : str
        What the chart shows.
    labels : sequence of str
        The name of each group of bars.
    series : mapping of str to sequence of float
        The values of each series, one a label, none below zero.
    form : str, default=".0%"
        How a value is written.
    """
    check_lengths("labels", labels, series)
    thick, gap, group_gap, value_room = 18, 3, 12, 62
    left = min(190.0, 16 + 7.6 * max(map(len, labels), default=0))
    most = max((v for values in series.values() for v in values), default=0) or 1
    marks, y = [], 2.0
    for i, label in enumerate(labels):
        middle = y + (len(series) * (thick + gap) - gap) / 2
        marks.append(text_at(left - 8, middle + 5, shortened(label, 24), "end"))
        for s, (name, values) in enumerate(series.items()):
            width = max(values[i] / most * (WIDTH - left - value_room), 1)
            value = format(values[i], form)
            marks.append(
                f'<rect class="bar s{s}" x="{left:.1f}" y="{y:.1f}" width="{width:.1f}" '
                f'height="{thick}" rx="2">{title_of(f"{label}, {name}: {value}")}</rect>'
            )
            marks.append(text_at(left + width + 6, y + 14, value))
            y += thick + gap
        y += group_gap
    keys = (f'<rect class="bar s{s}" width="24" height="10"/>' for s in range(len(series)))
    return svg_figure(title, legend(series, keys), marks, y - group_gap)
