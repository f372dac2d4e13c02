"""What charts are drawn with: axes and their ticks, text, legends, and the figure around them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

__all__ = [
    "BOTTOM",
    "COLOURS",
    "LINE",
    "TOP",
    "WIDTH",
    "Axis",
    "Html",
    "Plot",
    "Point",
    "check_lengths",
    "leader",
    "legend",
    "shortened",
    "svg_figure",
    "text_at",
    "title_of",
    "width_of",
]

COLOURS = 6  # that the style has; a seventh series begins with the first again
WIDTH = 480  # of a chart, in its own units: 15-unit text stays legible on a 400-pixel screen
TOP, BOTTOM = 10, 46  # of a plot, above and below its axes
LINE = 16  # a line of text is about so high

Point = tuple[float, float]


class Html(str):
    """Markup, as against text: it is put into the page as it is."""


@dataclass(frozen=True)
class Axis:
    """From values to shares of an axis from `low` to `high`."""

    low: float
    high: float
    log: bool
    ticks: list[float]

    @classmethod
    def over(cls, values: Sequence[float], log: bool = False, tight: bool = False) -> Axis:
        """An axis from the tick below the values; if `tight`, just from the least to the most."""
        least, most = min(values), max(values)
        ticks = _log_ticks(least, most) if log else _round_ticks(least, most)
        if not tight:
            return cls(ticks[0], max(ticks[-1], most), log, ticks)
        within = [tick for tick in ticks if least <= tick <= most]
        return cls(least, most, log, within if len(within) > 1 else sorted({least, most}))

    def share(self, value: float) -> float:
        at, low, high = (math.log10(v) if self.log else v for v in (value, self.low, self.high))
        return (at - low) / ((high - low) or 1)


@dataclass(frozen=True)
class Plot:
    """Two axes, and where a value lies between them."""

    x: Axis
    y: Axis
    form: str
    right: float = 14
    height: float = 290

    @property
    def left(self) -> float:
        return 14 + 8 * max(len(format(tick, self.form)) for tick in self.y.ticks)

    def place(self, a: float, b: float) -> Point:
        """Where a point is drawn."""
        across, up = WIDTH - self.left - self.right, self.height - BOTTOM - TOP
        return self.left + self.x.share(a) * across, TOP + (1 - self.y.share(b)) * up

    def marks(self, x_label: str) -> list[str]:
        """The grid, and what is written along the axes."""
        left, right, floor = self.left, WIDTH - self.right, self.height - BOTTOM
        marks = []
        for tick in self.y.ticks:
            up = self.place(self.x.low, tick)[1]
            marks.append(f'<path class="grid" d="M{left} {up:.1f}H{right}"/>')
            marks.append(text_at(left - 8, up + 5, format(tick, self.form), "end"))
        marks.append(f'<path class="grid" d="M{left} {floor}H{right}"/>')
        free = 0.0
        for tick in self.x.ticks:
            text = f"{tick:,.10g}"
            across, half = self.place(tick, self.y.low)[0], 8 * len(text) / 2
            if free <= across - half and across + half <= WIDTH:  # else it would be cut or covered
                marks.append(text_at(across, floor + 20, text, "middle"))
                free = across + half + 6
        marks.append(text_at((left + right) / 2, self.height - 4, x_label, "middle"))
        return marks

    def line(self, name: str, line: list[Point], look: str, x_label: str) -> list[str]:
        """A line, and the dots of its places unless they would hide it."""
        points = [self.place(a, v) for a, v in line]
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
        marks = [f'<polyline class="line {look}" points="{path}">{title_of(name)}</polyline>']
        if len(line) <= 25:
            marks += [
                f'<circle class="bar {look}" cx="{a:.1f}" cy="{b:.1f}" r="3.5">'
                f"{title_of(f'{name}, {x_label} {place:g}: {v:{self.form}}')}</circle>"
                for (a, b), (place, v) in zip(points, line)
            ]
        return marks


def svg_figure(title: str, legend: str, marks: list[str], height: float) -> Html:
    """A chart with its caption and legend."""
    return Html(
        f"<figure><figcaption>{escape(title)}</figcaption>{legend}"
        f'<svg class="chart" viewBox="0 0 {WIDTH} {height:.0f}" role="img">{title_of(title)}'
        f"{''.join(marks)}</svg></figure>"
    )


def legend(names: Collection[str], keys: Iterable[str]) -> str:
    """A key for each name, where there is more than one."""
    items = "".join(
        f'<li><svg viewBox="0 0 24 10" aria-hidden="true">{key}</svg>{escape(name)}</li>'
        for name, key in zip(names, keys)
    )
    return f'<ul class="legend">{items}</ul>' if len(names) > 1 else ""


def title_of(text: str) -> str:
    """What a screen reader says of a mark, and a pointer shows."""
    return f"<title>{escape(text)}</title>"


def text_at(x: float, y: float, text: str, anchor: str = "start", kind: str = "") -> str:
    which = f' class="{kind}"' if kind else ""
    return f'<text{which} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def leader(start: Point, end: Point, colour: str = "") -> str:
    """A thin line between a point and its name."""
    path = f"M{start[0]:.1f} {start[1]:.1f}L{end[0]:.1f} {end[1]:.1f}"
    return f'<path class="leader {colour}" d="{path}"/>'


def width_of(text: str) -> float:
    """About how wide a name is drawn, in wide fonts."""
    return sum(9.5 if letter.isupper() else 7.2 for letter in text)


def shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _round_ticks(low: float, high: float, about: int = 5) -> list[float]:
    """About five multiples of 1, 2 or 5 times a power of ten that enclose [low, high]."""
    rough = (high - low) / about or 1
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(i * step, 12) for i in range(first, max(last, first + 1) + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    """From the last tick below `low` to the last below `high`, two at least.

    Ticks are powers of ten; on a short axis their doubles and fivefolds too.

    >>> _log_ticks(3, 4000), _log_ticks(3, 90)
    ([1.0, 10.0, 100.0, 1000.0], [2.0, 5.0, 10.0, 20.0, 50.0])
    """
    factors = (1, 2, 5) if high < 50 * low else (1,)
    powers = range(math.floor(math.log10(low)), math.floor(math.log10(high)) + 2)
    ticks = [float(f"{m}e{i}") for i in powers for m in factors]
    first = max(i for i, tick in enumerate(ticks) if tick <= low * 1.000001)
    last = max(i for i, tick in enumerate(ticks) if tick <= high * 1.000001)
    return ticks[first : max(last, first + 1) + 1]


def check_lengths(name: str, places: Sequence, series: Mapping[str, Sequence]) -> None:
    for title, values in series.items():
        if len(values) != len(places):
            raise ValueError(
                f"the series {title!r} has {len(values)} values for {len(places)} {name}; "
                "give one for each"
            )
