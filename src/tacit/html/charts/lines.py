"""Lines: a few with a legend, or many with a name at the end of each."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tacit.html.charts.plot import (
    BOTTOM,
    COLOURS,
    LINE,
    TOP,
    WIDTH,
    Axis,
    Html,
    Plot,
    Point,
    check_lengths,
    leader,
    legend,
    shortened,
    svg_figure,
    text_at,
    width_of,
)

__all__ = ["line_chart", "trend_chart"]


def line_chart(
    title: str,
    x: Sequence[float],
    series: Mapping[str, Sequence[float]],
    x_label: str,
    form: str = ".0%",
    log: bool = False,
) -> Html:
    """A few lines over x, told apart by colour and by dash.

    Parameters
    ----------
    title : str
        What the chart shows; it names the vertical axis too.
    x : sequence of float
        The places, rising.
    series : mapping of str to sequence of float
        The values of each line, one a place.
    x_label : str
        What x is.
    form : str, default=".0%"
        How a value is written.
    log : bool, default=False
        Whether the vertical axis is logarithmic, with values above zero; else it begins at zero.
    """
    lines = _lines(x, series, log)
    values = [v for line in lines.values() for _, v in line]
    plot = Plot(
        Axis.over(x, tight=True), Axis.over(values if log else [0, *values], log), form=form
    )
    marks = plot.marks(x_label)
    for s, (name, line) in enumerate(lines.items()):
        marks += plot.line(name, line, f"s{s % COLOURS}", x_label)
    keys = (f'<path class="line s{s % COLOURS}" d="M0 5H24"/>' for s in range(len(series)))
    return svg_figure(title, legend(series, keys), marks, plot.height)


def trend_chart(
    title: str,
    x: Sequence[float],
    series: Mapping[str, Sequence[float | None]],
    x_label: str,
    form: str = ".0f",
    log: bool = False,
    dashed: Collection[str] = (),
    faint: Collection[str] = (),
) -> Html:
    """Many lines over x, each named where it ends.

    Parameters
    ----------
    title, x, x_label, form
        As for `line_chart`.
    series : mapping of str to sequence of float
        The values of each line, one a place, None where there is none. A line has the colour of
        its place in the mapping, so that charts with the same names in the same order agree.
    log : bool, default=False
        Whether both axes are logarithmic; places and values are then above zero.
    dashed : collection of str, default=()
        Lines with a dash.
    faint : collection of str, default=()
        Lines in grey and without a name: what the others stand out from.
    """
    lines = {name: line for name, line in _lines(x, series, log).items() if line}
    if log and x[0] <= 0:
        raise ValueError(f"log needs x above zero; it begins with {x[0]}")
    colours = {name: f"s{s % COLOURS}" for s, name in enumerate(series)}
    colours |= dict.fromkeys(faint, "faint")
    named = {name: shortened(name, 22) for name in lines if name not in faint}
    plot = Plot(
        Axis.over(x, log, tight=True),
        Axis.over([v for line in lines.values() for _, v in line], log, tight=log),
        form=form,
        right=22 + max(map(width_of, named.values()), default=0),
        height=max(290, TOP + BOTTOM + LINE * len(named)),
    )
    marks = plot.marks(x_label)
    for name in sorted(lines, key=lambda name: name not in faint):
        dash = "dashed" if name in dashed else "solid"
        marks += plot.line(name, lines[name], f"{colours[name]} {dash}", x_label)
    finish = [plot.place(*lines[name][-1]) for name in named]
    heights = _spread([b for _, b in finish], LINE, TOP, plot.height - BOTTOM)
    edge = WIDTH - plot.right + 12
    for (name, text), last, up in zip(named.items(), finish, heights):
        marks.append(leader(last, (edge, up), colours[name]))
        marks.append(text_at(edge + 3, up + 5, text, kind=f"name {colours[name]}"))
    return svg_figure(title, "", marks, plot.height)


def _lines(
    x: Sequence[float], series: Mapping[str, Sequence[float | None]], log: bool
) -> dict[str, list[Point]]:
    """The points of each line, once it is certain that they can be drawn."""
    check_lengths("x", x, series)
    lines = {
        name: [(a, v) for a, v in zip(x, values) if v is not None]
        for name, values in series.items()
    }
    values = [v for line in lines.values() for _, v in line]
    if not values:
        raise ValueError("series holds no value; give at least one line with one place")
    if log and min(values) <= 0:
        raise ValueError(f"log needs values above zero; the least is {min(values)}")
    return lines


def _spread(heights: Sequence[float], gap: float, top: float, bottom: float) -> list[float]:
    """Heights moved as little as a sweep down and one up need to stand `gap` apart.

    >>> _spread([50, 48, 10], gap=16, top=0, bottom=60)
    [60.0, 44.0, 10.0]
    """
    order = sorted(range(len(heights)), key=heights.__getitem__)
    spread = [float(h) for h in heights]
    least, most = top, float(bottom)
    for i in order:
        spread[i] = max(spread[i], least)
        least = spread[i] + gap
    for i in reversed(order):
        spread[i] = min(spread[i], most)
        most = spread[i] - gap
    return spread
