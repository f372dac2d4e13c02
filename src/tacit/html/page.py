"""One self-contained HTML page: text, tables and charts, as pure functions.

Nothing is fetched and nothing runs: the styles are in the page, the charts are inline SVG, and a
content security policy forbids the rest. Every function takes plain text and escapes it; what it
returns is `Html`, so text that comes from outside (names, tags) cannot become markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Literal

from tacit.html.charts import (
    COLOURS,
    Html,
    bar_chart,
    line_chart,
    range_chart,
    scatter_chart,
    trend_chart,
)

__all__ = [
    "COLOURS",
    "Html",
    "Tone",
    "bar_chart",
    "bullets",
    "details",
    "facts",
    "figure",
    "line_chart",
    "page",
    "range_chart",
    "scatter_chart",
    "subheading",
    "table",
    "trend_chart",
]


def page(title: str, sections: Iterable[tuple[str, Sequence[str]]], contents: bool = False) -> str:
    """A whole page.

    Parameters
    ----------
    title : str
        The heading of the page.
    sections : iterable of (heading, parts)
        A part is `Html` from a function below, or text, which becomes a paragraph. A heading of ""
        writes none, for the introduction. Charts that follow each other stand side by side where
        there is room.
    contents : bool, default=False
        Whether links to the sections stand at the top.

    Examples
    --------
    >>> "<p>1 &lt; 2</p>" in page("Sums", [("", ["1 < 2"])])
    True
    """
    sections = list(sections)
    body = "\n".join(_section(heading, parts) for heading, parts in sections)
    links = (
        f'<a href="#{_anchor(heading)}">{escape(heading)}</a>' for heading, _ in sections if heading
    )
    body = f"<nav>{' '.join(links)}</nav>\n{body}" if contents else body
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


Value = str | int | float | None


def table(header: Sequence[str], rows: Iterable[Sequence[Value]], form: str = ".3f") -> Html:
    """A table. Numbers stand to the right: whole ones with commas, others written by `form`.

    None is a number that is not there; `figure` makes text stand with the numbers. On a narrow
    screen nothing is cut: a table without numbers becomes a list, each cell after its heading, and
    one of many columns a block for each row, each figure under its heading.
    """
    rows = list(rows)
    for row in rows:
        if len(row) != len(header):
            raise ValueError(f"the header has {len(header)} cells but a row of rows has {len(row)}")
    kinds = [_kind(column) for column in zip(*rows)] or [""] * len(header)

    def line(tag: str, cells: Iterable[Value]) -> str:
        written = (
            f'<{tag} data-name="{escape(name)}"{kind}>{_written(cell, form)}</{tag}>'
            for name, kind, cell in zip(header, kinds, cells)
        )
        return f"<tr>{''.join(written)}</tr>"

    body = "".join(line("td", row) for row in rows)
    form_of = _WORDS if _NUMBER not in kinds else _WIDE if len(header) > _MOST_COLUMNS else ""
    return Html(
        f'<div class="scroll"><table{form_of}>\n'
        f"<thead>{line('th', header)}</thead>\n<tbody>{body}</tbody>\n</table></div>"
    )


Tone = Literal["best", "good", "near", "bad"]


def figure(text: str, tone: Tone | None = None) -> Html:
    """A cell of a table that stands with the numbers, though it is not a plain one.

    `tone` sets it off: bold, or on a green, an amber or a red ground. Colour never says it alone:
    the text itself must tell good from bad, by its sign say.

    >>> figure("−1.2", "bad")
    '<span class="bad">−1.2</span>'
    """
    return Html(f'<span class="{tone}">{escape(text)}</span>' if tone else escape(text))


def subheading(text: str) -> Html:
    """A heading within a section.

    >>> subheading("R&D")
    '<h3>R&amp;D</h3>'
    """
    return Html(f"<h3>{escape(text)}</h3>")


def details(summary: str, parts: Sequence[str]) -> Html:
    """Parts that are folded away under their summary until one opens it.

    >>> print(details("More", ["1 < 2"]))
    <details><summary>More</summary>
    <p>1 &lt; 2</p>
    </details>
    """
    return Html(f"<details><summary>{escape(summary)}</summary>\n{_laid_out(parts)}\n</details>")


def bullets(items: Iterable[str]) -> Html:
    """A list.

    >>> bullets(["1 < 2"])
    '<ul><li>1 &lt; 2</li></ul>'
    """
    return Html(f"<ul>{''.join(f'<li>{escape(item)}</li>' for item in items)}</ul>")


def facts(pairs: Iterable[tuple[str | int, str]]) -> Html:
    """A strip of figures, each with what it counts."""
    items = (
        f"<div><dt>{escape(name)}</dt><dd>{_written(value)}</dd></div>" for value, name in pairs
    )
    return Html(f'<dl class="facts">{"".join(items)}</dl>')


_NUMBER, _SHORT = ' class="number"', ' class="short"'  # columns
_WORDS, _WIDE = ' class="words"', ' class="wide"'  # tables
_MOST_COLUMNS = 4  # of figures, side by side on a phone


def _section(heading: str, parts: Sequence[str]) -> str:
    if not heading:
        return f"<section>\n{_laid_out(parts)}\n</section>"
    title = f"<h2>{escape(heading)}</h2>"
    return f'<section id="{_anchor(heading)}">\n{title}\n{_laid_out(parts)}\n</section>'


def _anchor(heading: str) -> str:
    """What a link to a section names: lower-case letters and dashes."""
    return re.sub(r"\W+", "-", heading.lower())


def _laid_out(parts: Sequence[str]) -> str:
    """Paragraphs and tables run down the page; neighbouring charts share a grid."""
    out, charts = [], []
    for part in [*parts, Html("")]:
        if isinstance(part, Html) and part.startswith("<figure"):
            charts.append(part)
            continue
        if charts:
            out.append(f'<div class="charts">{"".join(charts)}</div>')
            charts = []
        out.append(part if isinstance(part, Html) else f"<p>{escape(part)}</p>")
    return "\n".join(filter(None, out))


def _kind(column: Iterable[Value]) -> str:
    """Numbers, which stand to the right; short text, which is kept on one line; or neither."""
    texts = [cell for cell in column if isinstance(cell, str) and not isinstance(cell, Html)]
    if not texts:
        return _NUMBER
    return _SHORT if max(map(len, texts)) <= 24 else ""


def _written(cell: Value, form: str = ".3f") -> str:
    if cell is None:
        return "–"
    if isinstance(cell, str):
        return cell if isinstance(cell, Html) else escape(cell)
    return format(cell, "," if isinstance(cell, int) else form)


_STYLE = """
:root { --paper: #fff; --ink: #1c2330; --faint: #5b6575; --rule: #dde2ea; --wash: #f4f6f9;
  --c0: #0b6bb3; --c1: #c4500a; --c2: #117a5b; --c3: #8a4fa3; --c4: #8f6a00; --c5: #c22f72;
  --good: #d3efdc; --near: #fdeebc; --bad: #f9d3cb; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14181f; --ink: #e6e9ef; --faint: #a2acbb; --rule: #323a47; --wash: #1d232c;
    --c0: #62b5f0; --c1: #f2a154; --c2: #4fcfa3; --c3: #c99be0; --c4: #d9bb4a; --c5: #f285b5;
    --good: #1d4a33; --near: #55470f; --bad: #642a22; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 68rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.8rem; line-height: 1.2; margin: 0 0 1rem; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .6rem; }
h3 { font-size: 1.05rem; margin: 1.6rem 0 .5rem; }
p, ul { max-width: 44rem; margin: 0 0 1rem; }
.scroll { overflow-x: auto; margin: 0 0 1.25rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .95rem; }
th, td { padding: .4rem .9rem .4rem 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--rule); }
th { color: var(--faint); font-weight: 600; vertical-align: bottom; }
.number { text-align: right; }
td.number, td.short { white-space: nowrap; }
table:not(.words) tr > :first-child { position: sticky; left: 0; background: var(--paper); }
td { overflow-wrap: break-word; }
@media (max-width: 40rem) {
  th, td { padding-right: .5rem; font-size: .85rem; }
  :is(.words, .wide) thead { position: absolute; left: -999rem; }
  .words tr { display: block; padding: .5rem 0; border-bottom: 1px solid var(--rule); }
  .words td { display: block; border: 0; padding: .1rem 0; font-size: .9rem; }
  .words td:first-child { font-weight: 600; }
  .words td + td::before { content: attr(data-name) ": "; color: var(--faint); }
  .wide, .wide tbody { display: block; }
  .wide tr { display: grid; grid-template-columns: repeat(auto-fill, minmax(5.2rem, 1fr));
    gap: .3rem .8rem; padding: .6rem 0; border-bottom: 1px solid var(--rule); }
  .wide tr > td { border: 0; padding: 0; text-align: left; white-space: normal; }
  .wide tr > td:first-child { grid-column: 1 / -1; font-weight: 600; }
  .wide td + td::before { content: attr(data-name); display: block; color: var(--faint);
    font-size: .75rem; line-height: 1.3; } }
nav { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; margin: 0 0 1.25rem; }
a { color: var(--c0); text-underline-offset: .2em; }
details { margin: 0 0 .6rem; }
summary { cursor: pointer; }
details[open] summary { font-weight: 600; margin-bottom: .5rem; }
.best { font-weight: 700; }
.good, .near, .bad { display: inline-block; padding: 0 .4em; border-radius: .25rem;
  print-color-adjust: exact; -webkit-print-color-adjust: exact; }
.good { background: var(--good); } .near { background: var(--near); }
.bad { background: var(--bad); }
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
.chart .name { fill: var(--c, var(--ink)); font-size: 13px;
  paint-order: stroke; stroke: var(--paper); stroke-width: 4px; }
.leader { fill: none; stroke: var(--c, var(--faint)); stroke-width: .8; }
.front { fill: none; stroke: var(--faint); stroke-width: 1.5; stroke-dasharray: 1 3; }
.bar { fill: var(--c); }
.line { fill: none; stroke: var(--c); stroke-width: 2.5; stroke-linejoin: round; }
.s0 { --c: var(--c0); } .s1 { --c: var(--c1); } .s2 { --c: var(--c2); } .s3 { --c: var(--c3); }
.s4 { --c: var(--c4); } .s5 { --c: var(--c5); } .faint { --c: var(--rule); }
.unsure { --c: var(--faint); }
.line.s1 { stroke-dasharray: 8 4; } .line.s2 { stroke-dasharray: 2 4; }
.line.s3 { stroke-dasharray: 10 3 2 3; } .line.solid { stroke-dasharray: none; }
.line.dashed { stroke-dasharray: 7 4; } .line.faint { stroke-width: 1.5; }
"""
