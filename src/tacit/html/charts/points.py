"""Points of cost and worth, and where there is room for their names."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from tacit.html.charts.plot import (
    BOTTOM,
    COLOURS,
    LINE,
    WIDTH,
    Axis,
    Html,
    Plot,
    Point,
    leader,
    legend,
    shortened,
    svg_figure,
    text_at,
    title_of,
    width_of,
)

__all__ = ["scatter_chart"]


def scatter_chart(
    title: str,
    groups: Mapping[str, Mapping[str, tuple[float, float]]],
    x_label: str,
    form: str = ".0%",
) -> Html:
    """Points of cost and worth, each named, with the front of those that none beats in both.

    The step line is, at each cost, the most worth that any point has for it. A name that would
    cover another one or a point is moved away, at the end of a thin line; where no room is left,
    the pointer still shows it.

    Parameters
    ----------
    title : str
        What the chart shows; it names the vertical axis too.
    groups : mapping of str to mapping of str to (float, float)
        The points of each group by name: the cost, above zero and on a logarithmic axis, and the
        worth.
    x_label : str
        What the cost is.
    form : str, default=".0%"
        How a worth is written.
    """
    points = [(s, *item) for s, group in enumerate(groups.values()) for item in group.items()]
    if not points:
        raise ValueError("groups holds no point; give at least one group with one point")
    costs, worths = zip(*(point for _, _, point in points))
    if min(costs) <= 0:
        raise ValueError(f"groups needs costs above zero; the least is {min(costs)}")
    # Some room beyond the outermost points: for their names, and to keep them off the frame.
    times, more = 1.5, (max(worths) - min(worths)) / 9 or 1
    plot = Plot(
        Axis.over([min(costs) / times, max(costs) * times], log=True, tight=True),
        Axis.over([min(worths) - more, max(worths) + more], tight=True),
        form=form,
        height=350,
    )
    front = _front(point for _, _, point in points)
    steps = _steps([plot.place(*point) for point in front], WIDTH - plot.right)
    marks = plot.marks(x_label)
    path = "L".join(f"{a:.1f} {b:.1f}" for a, b in steps)
    marks.append(f'<path class="front" d="M{path}"/>')
    # The front is what one looks for: its names take the room nearest to their points.
    points.sort(key=lambda entry: (entry[2] not in front, -entry[2][1]))
    places = [plot.place(*point) for _, _, point in points]
    names = [shortened(name, 24) for _, name, _ in points]
    for (s, _, _), text, place, box in zip(
        points, names, places, _room(plot, names, places, steps)
    ):
        if box:
            marks += [leader(place, box.nearest(place))] if box.is_off(place) else []
            marks.append(_named(text, box, place, f"name s{s % COLOURS}"))
    for (s, name, (cost, worth)), (a, b) in zip(points, places):
        marks.append(_dot(s, a, b, title_of(f"{name}, {x_label} {cost:g}: {worth:{form}}")))
    keys = (_dot(s, 12, 5) for s in range(len(groups)))
    return svg_figure(title, legend(groups, keys), marks, plot.height)


def _front(points: Iterable[Point]) -> list[Point]:
    """The points that are better than every cheaper one, from the cheapest.

    >>> _front([(2.0, 5.0), (1.0, 3.0), (3.0, 4.0), (4.0, 9.0)])
    [(1.0, 3.0), (2.0, 5.0), (4.0, 9.0)]
    """
    front: list[Point] = []
    for cost, worth in sorted(points, key=lambda point: (point[0], -point[1])):
        if not front or worth > front[-1][1]:
            front.append((cost, worth))
    return front


def _steps(front: list[Point], edge: float) -> list[Point]:
    """The corners of the step line through places from left to right, on to the edge."""
    steps = front[:1]
    for a, b in front[1:]:
        steps += [(a, steps[-1][1]), (a, b)]
    return [*steps, (edge, steps[-1][1])]


@dataclass(frozen=True)
class _Box:
    left: float
    top: float
    right: float
    bottom: float

    @classmethod
    def around(cls, a: float, b: float, width: float, height: float) -> _Box:
        return cls(a - width / 2, b - height / 2, a + width / 2, b + height / 2)

    def meets(self, other: _Box) -> bool:
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom

    def is_within(self, other: _Box) -> bool:
        across = other.left <= self.left and self.right <= other.right
        return across and other.top <= self.top and self.bottom <= other.bottom

    def nearest(self, place: Point) -> Point:
        a, b = place
        return min(max(a, self.left), self.right), min(max(b, self.top), self.bottom)

    def is_off(self, place: Point) -> bool:
        """Whether it takes a line to see that the box belongs to the place."""
        return math.dist(place, self.nearest(place)) > 12


def _room(
    plot: Plot, names: list[str], places: list[Point], steps: list[Point]
) -> list[_Box | None]:
    """A box for each name near its place, clear of all places and other names.

    If it can be, a box needs no line to its place or one that meets nothing else on its way,
    and is clear of the steps. A name for which there is no room has no box.
    """
    taken = [_Box.around(a, b, 12, 12) for a, b in places]
    lines = [
        _Box(min(a, c) - 1, min(b, d) - 1, max(a, c) + 1, max(b, d) + 1)
        for (a, b), (c, d) in pairwise(steps)
    ]
    frame = _Box(plot.left, 0, WIDTH, plot.height - BOTTOM)
    found: list[_Box | None] = []
    for name, place in zip(names, places):
        others = [box for box in taken if box.is_off(place)]  # not those it is crowded by

        def cost(box: _Box, place: Point = place, others: list[_Box] = others) -> tuple:
            off = box.is_off(place)
            crosses = off and _crosses(place, box.nearest(place), others)
            return crosses, off, any(map(box.meets, lines))

        around = _boxes_around(*place, width_of(name))
        free = (b for b in around if b.is_within(frame) and not any(map(b.meets, taken)))
        found.append(box := min(free, key=cost, default=None))
        taken += [box] if box else []
    return found


def _boxes_around(a: float, b: float, width: float) -> Iterator[_Box]:
    """Boxes for a name: beside, above and below its point first, then ever farther off."""
    sides = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1))
    for far in range(8, 200, 8):
        for x, y in sides:
            aside = width / 2 + (0 if y else far)
            yield _Box.around(a + x * aside, b - y * (far + LINE / 2), width, LINE)


def _crosses(start: Point, end: Point, boxes: Iterable[_Box]) -> bool:
    """Whether a straight line meets a box, to within a tenth of its length."""
    (a, b), (c, d) = start, end
    along = [_Box.around(a + i / 10 * (c - a), b + i / 10 * (d - b), 1, 1) for i in range(11)]
    return any(box.meets(point) for box in boxes for point in along)


def _named(text: str, box: _Box, place: Point, kind: str) -> str:
    """A name in its box, set towards the place it is of."""
    anchor = "start" if box.left >= place[0] else "end" if box.right <= place[0] else "middle"
    across = {"start": box.left, "end": box.right, "middle": (box.left + box.right) / 2}[anchor]
    return text_at(across, box.bottom - 4, text, anchor, kind)


def _dot(s: int, a: float, b: float, title: str = "") -> str:
    """A point of the group s: round or, in every second group, on its corner."""
    if s % 2:
        path = f"M{a:.1f} {b - 6:.1f}l6 6l-6 6l-6-6z"
        return f'<path class="bar s{s % COLOURS}" d="{path}">{title}</path>'
    return f'<circle class="bar s{s % COLOURS}" cx="{a:.1f}" cy="{b:.1f}" r="5">{title}</circle>'
