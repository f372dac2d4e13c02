"""One self-contained HTML page: text, tables and charts, as pure functions.

Nothing is fetched and nothing runs: the styles are in the page, the charts are inline SVG, and a
content security policy forbids the rest. Every function takes plain text and escapes it; what it
returns is `Html`, so text that comes from outside (names, tags) cannot become markup.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape

__all__ = ["Html", "bar_chart", "facts", "line_chart", "page", "table"]


class Html(str):
    """Markup, as against text: it is put into the page as it is."""


def page(title: str, sections: Iterable[tuple[str, Sequence[str]]]) -> str:
    """A whole page.

    Parameters
    ----------
    title : str
        The heading of the page.
    sections : iterable of (heading, parts)
        A part is `Html` from a function below, or text, which becomes a paragraph. A heading of ""
        writes none, for the introduction. Charts that follow each other stand side by side where
        there is room.

    Examples
    --------
    >>> "<p>1 &lt; 2</p>" in page("Sums", [("", ["1 < 2"])])
    True
    """
    body = "\n".join(_section(heading, parts) for heading, parts in sections)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<main>
<h1>{escape(title)}</h1>
{body}
</main>
</body>
</html>
"""


def table(
    header: Sequence[str], rows: Iterable[Sequence[str | int | float]], form: str = ".3f"
) -> Html:
    """A table. Numbers stand to the right: whole ones with commas, others written by `form`.

    On a narrow screen a table without numbers becomes a list, each cell under its heading.
    """
    rows = list(rows)
    for row in rows:
        if len(row) != len(header):
            raise ValueError(f"the header has {len(header)} cells but a row of rows has {len(row)}")
    numeric = [all(not isinstance(cell, str) for cell in column) for column in zip(*rows)]
    numeric = numeric or [False] * len(header)

    def line(tag: str, cells: Iterable[str | int | float]) -> str:
        written = (
            f'<{tag} data-name="{escape(name)}"{_NUMBER if right else ""}>'
            f"{escape(_written(cell, form))}</{tag}>"
            for name, right, cell in zip(header, numeric, cells)
        )
        return f"<tr>{''.join(written)}</tr>"

    body = "".join(line("td", row) for row in rows)
    return Html(
        f'<div class="scroll"><table{"" if any(numeric) else _WORDS}>\n'
        f"<thead>{line('th', header)}</thead>\n<tbody>{body}</tbody>\n</table></div>"
    )


def facts(pairs: Iterable[tuple[str | int, str]]) -> Html:
    """A strip of figures, each with what it counts."""
    items = (
        f"<div><dt>{escape(name)}</dt><dd>{escape(_written(value))}</dd></div>"
        for value, name in pairs
    )
    return Html(f'<dl class="facts">{"".join(items)}</dl>')


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
    _check_lengths("labels", labels, series)
    thick, gap, group_gap, value_room = 18, 3, 12, 62
    left = min(190.0, 16 + 7.6 * max(map(len, labels), default=0))
    most = max((v for values in series.values() for v in values), default=0) or 1
    marks, y = [], 2.0
    for i, label in enumerate(labels):
        middle = y + (len(series) * (thick + gap) - gap) / 2
        marks.append(_text(left - 8, middle + 5, _shortened(label, 24), "end"))
        for s, (name, values) in enumerate(series.items()):
            width = max(values[i] / most * (_WIDTH - left - value_room), 1)
            value = format(values[i], form)
            marks.append(
                f'<rect class="bar s{s}" x="{left:.1f}" y="{y:.1f}" width="{width:.1f}" '
                f'height="{thick}" rx="2">{_title(f"{label}, {name}: {value}")}</rect>'
            )
            marks.append(_text(left + width + 6, y + 14, value))
            y += thick + gap
        y += group_gap
    return _figure(
        title, series, marks, y - group_gap, '<rect class="bar s{}" width="24" height="10"/>'
    )


def line_chart(
    title: str,
    x: Sequence[float],
    series: Mapping[str, Sequence[float]],
    x_label: str,
    form: str = ".0%",
    log: bool = False,
) -> Html:
    """Lines over x, told apart by colour and by dash.

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
        Whether the vertical axis is logarithmic; the values are then above zero.
    """
    _check_lengths("x", x, series)
    values = [v for line in series.values() for v in line]
    if not values:
        raise ValueError("series holds no value; give at least one line with one place")
    if log and min(values) <= 0:
        raise ValueError(f"log needs values above zero; the least is {min(values)}")
    y_ticks = _powers(min(values), max(values)) if log else _round_ticks(0, max(values) or 1)
    low, high = y_ticks[0], max(y_ticks[-1], *values)
    x_ticks = [tick for tick in _round_ticks(x[0], x[-1]) if x[0] <= tick <= x[-1]]
    left = 14 + 8 * max(len(format(tick, form)) for tick in y_ticks)
    right, top, bottom, height = 14, 10, 46, 290
    scale = math.log10 if log else float

    def across(value: float) -> float:
        return left + (value - x[0]) / ((x[-1] - x[0]) or 1) * (_WIDTH - left - right)

    def up(value: float) -> float:
        share = (scale(value) - scale(low)) / (scale(high) - scale(low))
        return height - bottom - share * (height - bottom - top)

    marks = []
    for tick in y_ticks:
        marks.append(f'<path class="grid" d="M{left} {up(tick):.1f}H{_WIDTH - right}"/>')
        marks.append(_text(left - 8, up(tick) + 5, format(tick, form), "end"))
    for tick in x_ticks:
        marks.append(_text(across(tick), height - bottom + 20, f"{tick:,g}", "middle"))
    marks.append(_text((left + _WIDTH - right) / 2, height - 4, x_label, "middle"))
    for s, (name, line) in enumerate(series.items()):
        points = [(across(a), up(v)) for a, v in zip(x, line)]
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
        marks.append(f'<polyline class="line s{s}" points="{path}"/>')
        if len(x) <= 25:  # more dots than that hide the line
            marks += [
                f'<circle class="bar s{s}" cx="{a:.1f}" cy="{b:.1f}" r="3.5">'
                f"{_title(f'{name}, {x_label} {place:g}: {v:{form}}')}</circle>"
                for (a, b), place, v in zip(points, x, line)
            ]
    return _figure(title, series, marks, height, '<path class="line s{}" d="M0 5H24"/>')


_NUMBER, _WORDS = ' class="number"', ' class="words"'
_WIDTH = 480  # of a chart, in its own units: 15-unit text stays legible on a 400-pixel screen


def _section(heading: str, parts: Sequence[str]) -> str:
    """Paragraphs and tables run down the page; neighbouring figures share a grid."""
    out, figures = [], []
    for part in [*parts, Html("")]:
        if isinstance(part, Html) and part.startswith("<figure"):
            figures.append(part)
            continue
        if figures:
            out.append(f'<div class="charts">{"".join(figures)}</div>')
            figures = []
        out.append(part if isinstance(part, Html) else f"<p>{escape(part)}</p>")
    title = f"<h2>{escape(heading)}</h2>" if heading else ""
    return "\n".join(["<section>", title, *out, "</section>"])


def _figure(
    title: str, series: Mapping[str, Sequence[float]], marks: list[str], height: float, key: str
) -> Html:
    """A chart with its caption, and a legend where there is more than one series."""
    keys = "".join(
        f'<li><svg viewBox="0 0 24 10" aria-hidden="true">{key.format(s)}</svg>{escape(name)}</li>'
        for s, name in enumerate(series)
    )
    legend = f'<ul class="legend">{keys}</ul>' if len(series) > 1 else ""
    return Html(
        f"<figure><figcaption>{escape(title)}</figcaption>{legend}"
        f'<svg class="chart" viewBox="0 0 {_WIDTH} {height:.0f}" role="img">{_title(title)}'
        f"{''.join(marks)}</svg></figure>"
    )


def _title(text: str) -> str:
    """What a screen reader says of a mark, and a pointer shows."""
    return f"<title>{escape(text)}</title>"


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _written(cell: str | int | float, form: str = ".3f") -> str:
    return cell if isinstance(cell, str) else format(cell, "," if isinstance(cell, int) else form)


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _round_ticks(low: float, high: float, about: int = 5) -> list[float]:
    """About five multiples of 1, 2 or 5 times a power of ten that enclose [low, high]."""
    rough = (high - low) / about or 1
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(i * step, 12) for i in range(first, max(last, first + 1) + 1)]


def _powers(low: float, high: float) -> list[float]:
    """The powers of ten from the last below `low` to the last below `high`, two at least."""
    first, last = math.floor(math.log10(low)), math.floor(math.log10(high))
    return [10.0**i for i in range(first, max(last, first + 1) + 1)]


def _check_lengths(name: str, places: Sequence, series: Mapping[str, Sequence[float]]) -> None:
    for title, values in series.items():
        if len(values) != len(places):
            raise ValueError(
                f"the series {title!r} has {len(values)} values for {len(places)} {name}; "
                "give one for each"
            )


_STYLE = """
:root { --paper: #fff; --ink: #1c2330; --faint: #5b6575; --rule: #dde2ea; --wash: #f4f6f9;
  --c0: #0b6bb3; --c1: #c4500a; --c2: #117a5b; --c3: #8a4fa3; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14181f; --ink: #e6e9ef; --faint: #a2acbb; --rule: #323a47; --wash: #1d232c;
    --c0: #62b5f0; --c1: #f2a154; --c2: #4fcfa3; --c3: #c99be0; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 68rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.8rem; line-height: 1.2; margin: 0 0 1rem; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .6rem; }
p { max-width: 44rem; margin: 0 0 1rem; }
.scroll { overflow-x: auto; margin: 0 0 1.25rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .95rem; }
th, td { padding: .4rem .9rem .4rem 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--rule); }
th { color: var(--faint); font-weight: 600; vertical-align: bottom; }
.number { text-align: right; white-space: nowrap; }
td { overflow-wrap: break-word; }
@media (max-width: 40rem) {
  th, td { padding-right: .6rem; font-size: .9rem; }
  .words thead { position: absolute; left: -999rem; }
  .words tr { display: block; padding: .5rem 0; border-bottom: 1px solid var(--rule); }
  .words td { display: block; border: 0; padding: .1rem 0; }
  .words td:first-child { font-weight: 600; }
  .words td + td::before { content: attr(data-name) ": "; color: var(--faint); } }
.facts { display: flex; flex-wrap: wrap; gap: .75rem; margin: 0 0 1.25rem; }
.facts div { background: var(--wash); border-radius: .5rem; padding: .6rem 1rem;
  display: flex; flex-direction: column-reverse; }
.facts dd { margin: 0; font-size: 1.4rem; font-weight: 650; line-height: 1.25; }
.facts dt { color: var(--faint); font-size: .85rem; }
.charts { display: grid; gap: 1.5rem 2.5rem; margin: 0 0 1.25rem;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 24rem), 1fr)); }
figure { margin: 0; }
figcaption { font-weight: 600; margin-bottom: .4rem; }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; margin: 0 0 .5rem; padding: 0;
  list-style: none; font-size: .9rem; color: var(--faint); }
.legend svg { width: 24px; height: 10px; margin-right: .4rem; }
.chart { display: block; width: 100%; height: auto; }
.chart text { fill: var(--ink); font-size: 14px; }
.grid { stroke: var(--rule); }
.bar { fill: var(--c); }
.line { fill: none; stroke: var(--c); stroke-width: 2.5; stroke-linejoin: round; }
.s0 { --c: var(--c0); } .s1 { --c: var(--c1); } .s2 { --c: var(--c2); } .s3 { --c: var(--c3); }
.line.s1 { stroke-dasharray: 8 4; } .line.s2 { stroke-dasharray: 2 4; }
.line.s3 { stroke-dasharray: 10 3 2 3; }
"""
