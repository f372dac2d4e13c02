"""Ranges: a figure and the interval around it, one a line."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from tacit.html.charts.plot import (
    BOTTOM,
    WIDTH,
    Axis,
    Html,
    shortened,
    svg_figure,
    text_at,
    title_of,
    width_of,
)

__all__ = ["range_chart"]

_ROW, _TOP, _RIGHT = 24, 4, 26


def range_chart(
    title: str,
    ranges: Mapping[str, tuple[float, float, float]],
    x_label: str,
    form: str = ".0%",
    unsure: Collection[str] = (),
) -> Html:
    """A dot for each figure on a line from the low to the high end of its interval.

    Parameters
    ----------
    title : str
        What the chart shows.
    ranges : mapping of str to (float, float, float)
        The figure of each name, and the low and high ends, none below zero; nan for ends that are
        not known.
    x_label : str
        What the figures are.
    form : str, default=".0%"
        How a figure is written.
    unsure : collection of str, default=()
        Names whose figures say little: grey, and with a question mark.
    """
    if not ranges:
        raise ValueError("ranges is empty; give at least one figure")
    names = {name: shortened(name, 24) + (" ?" if name in unsure else "") for name in ranges}
    left = min(200.0, 16 + max(map(width_of, names.values())))
    known = [v for ends in ranges.values() for v in ends if not math.isnan(v)]
    axis = Axis.over([0.0, *known])
    across = lambda value: left + axis.share(value) * (WIDTH - left - _RIGHT)
    floor = _TOP + _ROW * len(ranges)
    marks = []
    for tick in axis.ticks:
        at = across(tick)
        marks.append(f'<path class="grid" d="M{at:.1f} {_TOP}V{floor}"/>')
        marks.append(text_at(at, floor + 20, format(tick, form), "middle"))
    for i, (name, (value, low, high)) in enumerate(ranges.items()):
        middle, look = _TOP + _ROW * (i + 0.5), "unsure" if name in unsure else "s0"
        marks.append(text_at(left - 8, middle + 5, names[name], "end"))
        told = f"{name}: {value:{form}}"
        if not math.isnan(low):
            told += f", between {low:{form}} and {high:{form}}"
            ends = f"M{across(low):.1f} {middle:.1f}H{across(high):.1f}"
            marks.append(f'<path class="line {look} solid" d="{ends}"/>')
        dot = f'cx="{across(value):.1f}" cy="{middle:.1f}" r="4.5"'
        marks.append(f'<circle class="bar {look}" {dot}>{title_of(told)}</circle>')
    marks.append(text_at((left + WIDTH) / 2, floor + BOTTOM - 4, x_label, "middle"))
    return svg_figure(title, "", marks, floor + BOTTOM)
