"""The page: read back with the standard library's parsers."""

import re
from html.parser import HTMLParser
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tacit.html.page import (
    COLOURS,
    bar_chart,
    bullets,
    details,
    facts,
    figure,
    line_chart,
    page,
    range_chart,
    scatter_chart,
    subheading,
    table,
    trend_chart,
)

NASTY = """<script>alert("x")</script> & 'tags'</svg>"""
VOID = {"meta", "br"}


class Reader(HTMLParser):
    """What a browser would see: every element opened, the text, and whether all were closed."""

    def __init__(self, text):
        super().__init__()
        self.seen, self.texts, self.open = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def svg(chart):
    tree = ElementTree.fromstring(f"<div>{chart}</div>")
    return next(e for e in tree.iter("svg") if e.get("role") == "img")


def polylines(chart):
    return [
        np.array([point.split(",") for point in line.get("points").split()], float)
        for line in svg(chart).iter("polyline")
    ]


def test_text_from_outside_never_becomes_markup():
    parts = [
        NASTY,
        table([NASTY], [[NASTY]]),
        facts([(NASTY, NASTY)]),
        bar_chart(NASTY, [NASTY], {NASTY: [1.0], "b": [2.0]}),
        line_chart(NASTY, [1, 2], {NASTY: [1.0, 2.0], "b": [2.0, 3.0]}, NASTY),
        trend_chart(NASTY, [1, 2], {NASTY: [1.0, 2.0]}, NASTY),
        scatter_chart(NASTY, {NASTY: {NASTY: (1.0, 2.0)}, "b": {}}, NASTY),
        range_chart(NASTY, {NASTY: (1.0, 0.5, 2.0)}, NASTY, unsure=[NASTY]),
        table(["a"], [[figure(NASTY)], [figure(NASTY, "bad")]]),
        details(NASTY, [NASTY, subheading(NASTY), bullets([NASTY])]),
    ]
    reader = Reader(page(NASTY, [(NASTY, parts)], contents=True))
    assert not reader.open
    assert "script" not in {tag for tag, _ in reader.seen}
    # whole in: title h1 h2 p th td dt dd; caption, key and title of two charts, one axis and line;
    # trend: caption, title, axis, line; scatter: caption, title, axis, key;
    # range: caption, title, axis;
    # two figures; summary, paragraph, subheading, bullet; a link
    assert reader.texts.count(NASTY) == 16 + 4 + 4 + 3 + 2 + 4 + 1


def test_the_page_fetches_nothing_and_forbids_it():
    chart = bar_chart("a", ["b"], {"c": [1.0]})
    text = page("t", [("h", ["p", chart, table(["x"], [[1]])])], contents=True)
    reader = Reader(text)
    for _, attributes in reader.seen:
        assert not {"src", "srcset", "onload"} & attributes.keys()
        assert attributes.get("href", "#").startswith("#")
    assert not re.search(r"url\(|@import|https?:", text)
    policy = [a["content"] for _, a in reader.seen if "http-equiv" in a]
    assert policy == ["default-src 'none'; style-src 'unsafe-inline'"]
    assert "prefers-color-scheme: dark" in text


def test_charts_side_by_side_share_one_grid():
    chart = bar_chart("a", ["b"], {"c": [1.0]})
    reader = Reader(page("t", [("h", [chart, chart, "between", chart])]))
    assert sum(a.get("class") == "charts" for _, a in reader.seen) == 2
    assert sum(tag == "figure" for tag, _ in reader.seen) == 3


def test_a_table_writes_every_cell_and_sets_numbers_to_the_right():
    tree = ElementTree.fromstring(table(["name", "n", "share"], [["a", 12345, 0.5], ["b", 2, 1.0]]))
    cells = [[(c.text, c.get("class")) for c in row] for row in tree.iter("tr")]
    assert cells == [
        [("name", "short"), ("n", "number"), ("share", "number")],
        [("a", "short"), ("12,345", "number"), ("0.500", "number")],
        [("b", "short"), ("2", "number"), ("1.000", "number")],
    ]
    assert [c.text for c in ElementTree.fromstring(table(["alone"], [])).iter("th")] == ["alone"]


def test_figures_and_what_is_not_there_stand_with_the_numbers_and_long_text_may_wrap():
    rows = [[figure("1 ± 2", "best"), None, "x" * 25], [3, 4.0, ""]]
    tree = ElementTree.fromstring(table(["a", "b", "c"], rows))
    cells = [["".join(c.itertext()) for c in row] for row in tree.iter("tr")]
    assert cells == [["a", "b", "c"], ["1 ± 2", "–", "x" * 25], ["3", "4.000", ""]]
    assert [c.get("class") for c in next(tree.iter("tr"))] == ["number", "number", None]
    assert [(s.get("class"), s.text) for s in tree.iter("span")] == [("best", "1 ± 2")]


def test_links_at_the_top_lead_to_the_sections_in_their_order():
    sections = [("", ["none"]), ("In short", []), ("What & why?", []), ("Ça alors", [])]
    reader = Reader(page("t", sections, contents=True))
    links = [a["href"] for tag, a in reader.seen if tag == "a"]
    assert links == [f"#{a['id']}" for tag, a in reader.seen if tag == "section" and "id" in a]
    assert len(set(links)) == 3
    assert "nav" not in {tag for tag, _ in Reader(page("t", sections)).seen}


def test_what_is_folded_away_is_laid_out_as_a_section_is():
    chart = bar_chart("a", ["b"], {"c": [1.0]})
    reader = Reader(details("more", [chart, chart, "text"]))
    assert not reader.open
    assert [tag for tag, _ in reader.seen][:3] == ["details", "summary", "div"]
    assert sum(a.get("class") == "charts" for _, a in reader.seen) == 1


def test_only_a_table_without_numbers_may_become_a_list_under_its_headings():
    words = ElementTree.fromstring(table(["a", 'b"'], [["1", "2"]]))
    numbers = ElementTree.fromstring(table(["a", "b"], [["1", 2]]))
    assert [t.find("table").get("class") for t in (words, numbers)] == ["words", None]
    assert [c.get("data-name") for c in words.iter("td")] == ["a", 'b"']


def test_a_table_of_many_columns_of_figures_may_become_a_block_for_each_row():
    """On a phone, under headings that each cell carries; few columns stand beside each other."""
    few, many = (
        ElementTree.fromstring(table([*"abcdef"[:n]], [["name", *[0.5] * (n - 1)]])) for n in (4, 5)
    )
    assert [t.find("table").get("class") for t in (few, many)] == [None, "wide"]
    assert [c.get("data-name") for c in many.iter("td")] == [*"abcde"]


def test_bars_are_as_long_as_their_values_and_say_them():
    values = {"one": [0.5, 0.25], "two": [1.0, 0.125]}
    picture = svg(bar_chart("t", ["a", "b"], values, form=".3f"))
    rects = list(picture.iter("rect"))
    widths = np.array([float(r.get("width")) for r in rects]).reshape(2, 2)
    assert_allclose(widths / widths.max(), np.array(list(values.values())).T, atol=1e-3)
    assert [r.find("title").text for r in rects] == [
        "a, one: 0.500",
        "a, two: 1.000",
        "b, one: 0.250",
        "b, two: 0.125",
    ]
    written = [t.text for t in picture.iter("text")]
    assert written == ["a", "0.500", "1.000", "b", "0.250", "0.125"]
    assert picture.find("title").text == "t"


@pytest.mark.parametrize("log", [False, True])
def test_lines_are_an_affine_picture_of_the_data(log):
    x, y = np.array([1, 2, 5, 9]), np.array([[0.3, 7.0, 30.0, 2.0], [1.0, 1.0, 50.0, 900.0]])
    chart = line_chart("t", x, {"a": y[0], "b": y[1]}, "k", form="g", log=log)
    points = np.concatenate(polylines(chart))
    data = np.log10(y) if log else y
    for drawn, true in [(points[:, 0], np.tile(x, 2)), (-points[:, 1], data.ravel())]:
        slope, offset = np.polyfit(true, drawn, 1)
        assert slope > 0
        assert_allclose(slope * true + offset, drawn, atol=0.1)


@pytest.mark.parametrize("log", [False, True])
def test_axis_ticks_stand_where_their_value_would_be_drawn(log):
    values = [1.0, 10.0, 100.0, 1000.0]
    chart = line_chart("t", [0, 10, 20, 30], {"a": values}, "k", form="g", log=log)
    texts = {t.text: t for t in svg(chart).iter("text") if t.get("text-anchor") == "end"}
    for (_, drawn), value in zip(polylines(chart)[0], values):
        if f"{value:g}" in texts:
            assert_allclose(float(texts[f"{value:g}"].get("y")) - 5, drawn, atol=0.11)
    assert f"{values[-1]:g}" in texts
    below = {t.text: float(t.get("x")) for t in svg(chart).iter("text")}
    for (drawn, _), place in zip(polylines(chart)[0], ["0", "10", "20", "30"]):
        assert_allclose(below[place], drawn, atol=0.11)


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("high", [1e-6, 0.03, 0.97, 1.0, 7, 366, 123456.0])
def test_all_that_is_drawn_lies_inside_the_picture(high, log):
    low = high / 1000 if log else 0.0
    chart = line_chart("t", [1, 20], {"a": [low, high], "b": [high / 3, low]}, "k", ",g", log)
    _, _, width, height = map(float, svg(chart).get("viewBox").split())
    ticks = [t for t in svg(chart).iter("text") if t.get("text-anchor") == "end"]
    assert 3 <= len(ticks) <= 8
    # A figure is about 0.57 of the size of its font wide, here 14.
    assert all(len(t.text) * 0.57 * 14 <= float(t.get("x")) for t in ticks)
    assert all(0 <= float(t.get("y")) - 5 <= height for t in ticks)
    for points in polylines(chart):
        assert (points >= 0).all()
        assert (points <= [width, height]).all()


def test_several_series_get_a_legend_and_one_does_not():
    one = line_chart("t", [1, 2], {"a": [1, 2]}, "k")
    two = line_chart("t", [1, 2], {"first": [1, 2], "second": [2, 1]}, "k")
    assert "legend" not in one
    items = ElementTree.fromstring(two).findall("ul/li")
    assert ["".join(item.itertext()) for item in items] == ["first", "second"]


def names(chart):
    """The named boxes of a chart: (text, left, top, right, bottom), as fonts usually set them."""
    found = []
    for t in svg(chart).iter("text"):
        if t.get("class", "").startswith("name"):
            x, y, width = float(t.get("x")), float(t.get("y")), 0.57 * 13 * len(t.text)
            left = x - {"start": 0, "middle": width / 2, "end": width}[t.get("text-anchor")]
            found.append((t.text, left, y - 10, left + width, y + 3))
    return found


def apart(a, b):
    return a[3] <= b[1] or b[3] <= a[1] or a[4] <= b[2] or b[4] <= a[2]


@pytest.mark.parametrize("log", [False, True])
def test_trends_are_an_affine_picture_of_what_is_there(log):
    x = np.array([1, 10, 100, 1000])
    y = np.array([[0.3, 7.0, 30.0, 20.0], [1.0, 1.5, 50.0, 900.0]])
    series = {"a": y[0], "none": [None] * 4, "b": [y[1][0], None, y[1][2], y[1][3]]}
    a, b = polylines(trend_chart("t", x, series, "k", log=log))
    scale = np.log10 if log else np.asarray
    places = scale(np.concatenate([x, x[[0, 2, 3]]]))
    values = scale(np.concatenate([y[0], y[1][[0, 2, 3]]]))
    points = np.concatenate([a, b])
    for drawn, true in [(points[:, 0], places), (-points[:, 1], values)]:
        slope, offset = np.polyfit(true, drawn, 1)
        assert slope > 0
        assert_allclose(slope * true + offset, drawn, atol=0.1)


def test_a_trend_has_the_colour_of_its_place_and_a_faint_one_has_no_name():
    series = {"first": [None, None], "a": [1, 2], "grey": [3, 3]} | {
        f"more {i}": [i, i] for i in range(COLOURS)
    }
    chart = trend_chart("t", [0, 1], series, "k", dashed=["a"], faint=["grey"])
    looks = {p.find("title").text: p.get("class").split() for p in svg(chart).iter("polyline")}
    assert next(iter(looks)) == "grey"  # below all others
    assert looks.pop("grey") == ["line", "faint", "solid"]
    assert looks.pop("a") == ["line", "s1", "dashed"]
    places = {f"more {i}": f"s{(3 + i) % COLOURS}" for i in range(COLOURS)}
    assert looks == {name: ["line", place, "solid"] for name, place in places.items()}
    assert {name for name, *_ in names(chart)} == set(series) - {"first", "grey"}


@pytest.mark.parametrize("n", [1, 5, 30])
def test_names_at_the_ends_of_trends_keep_their_order_and_do_not_touch(n):
    ends = np.random.default_rng(n).normal(50, 1, n)
    series = {f"line {i}": [0, end] for i, end in enumerate(ends)}
    chart = trend_chart("t", [0, 1], series, "k")
    found = sorted(names(chart), key=lambda name: name[2])
    assert [name[0] for name in found] == [f"line {i}" for i in np.argsort(-ends)]
    assert all(above[4] <= below[2] for above, below in pairwise(found))
    _, _, width, height = map(float, svg(chart).get("viewBox").split())
    assert all(
        top >= 0 and bottom <= height and right <= width for _, _, top, right, bottom in found
    )


def cloud(seed, n=16):
    rng = np.random.default_rng(seed)
    some = zip(10 ** rng.uniform(-2, 4, n), 100 - 20 * rng.random(n))
    points = [(f"method {i}", tuple(map(float, point))) for i, point in enumerate(some)]
    return {"ours": dict(points[: n // 2]), "peers": dict(points[n // 2 :])}


def dots(chart, points):
    """Where each point is drawn, from the names that a pointer shows."""
    found = {}
    for mark in svg(chart):
        title = mark.find("title")
        if title is not None and title.text.partition(", ")[0] in points:
            place = mark.get("cx"), mark.get("cy")
            if mark.tag == "path":  # a corner above the middle
                x, y = mark.get("d")[1:].partition("l")[0].split()
                place = x, float(y) + 6
            found[title.text.partition(", ")[0]] = tuple(map(float, place))
    return found


@pytest.mark.parametrize("seed", range(20))
def test_names_of_points_cover_neither_each_other_nor_a_point(seed):
    groups = cloud(seed)
    points = groups["ours"] | groups["peers"]
    chart = scatter_chart("t", groups, "seconds", ".1f")
    found, drawn = names(chart), dots(chart, points)
    assert sorted(name[0] for name in found) == sorted(points)
    for i, name in enumerate(found):
        assert all(apart(name, other) for other in found[i + 1 :])
        assert all(apart(name, ("", x - 4, y - 4, x + 4, y + 4)) for x, y in drawn.values())


@pytest.mark.parametrize("seed", range(5))
def test_the_front_is_the_most_worth_that_each_cost_buys(seed):
    groups = cloud(seed)
    points = groups["ours"] | groups["peers"]
    chart = scatter_chart("t", groups, "seconds", ".1f")
    drawn = dots(chart, points)
    costs, worths = np.array([points[name] for name in drawn]).T
    x, y = np.array(list(drawn.values())).T
    for place, true in [(x, np.log10(costs)), (-y, worths)]:
        slope, offset = np.polyfit(true, place, 1)
        assert slope > 0
        assert_allclose(slope * true + offset, place, atol=0.1)
    path = next(p.get("d") for p in svg(chart).iter("path") if p.get("class") == "front")
    corners = np.array([corner.split() for corner in path[1:].split("L")], float)
    assert_allclose(corners[0, 0], x.min())
    for start, end in pairwise(corners):  # level, or straight up
        assert (start == end).any()
        assert end[0] >= start[0]
        assert end[1] <= start[1]
        middle = (start + end) / 2
        if end[0] > start[0]:
            assert_allclose(middle[1], y[x < middle[0]].min())


def test_ranges_are_an_affine_picture_of_figures_and_their_ends():
    ranges = {"a": (0.5, 0.2, 0.9), "b": (0.1, 0.0, 0.4), "c": (0.3, np.nan, np.nan)}
    picture = svg(range_chart("t", ranges, "k", unsure=["b"]))
    dots = [float(c.get("cx")) for c in picture.iter("circle")]
    lines = [p.get("d") for p in picture.iter("path") if "line" in p.get("class")]
    ends = [float(v) for d in lines for v in re.fullmatch(r"M(.*) .*H(.*)", d).groups()]
    drawn, true = np.array([*dots, *ends]), [0.5, 0.1, 0.3, 0.2, 0.9, 0.0, 0.4]
    slope, offset = np.polyfit(true, drawn, 1)
    assert slope > 0
    assert_allclose(slope * np.array(true) + offset, drawn, atol=0.1)
    texts = [t.text for t in picture.iter("text")]
    assert {"a", "b ?", "c"} < set(texts)
    told = [c.find("title").text for c in picture.iter("circle")]
    assert told == ["a: 50%, between 20% and 90%", "b: 10%, between 0% and 40%", "c: 30%"]


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: table(["a", "b"], [[1]]), "header has 2 cells but a row of rows has 1"),
        (lambda: bar_chart("t", ["a"], {"s": [1, 2]}), "series 's' has 2 values for 1 labels"),
        (lambda: line_chart("t", [1], {"s": []}, "k"), "series 's' has 0 values for 1 x"),
        (lambda: line_chart("t", [], {}, "k"), "series holds no value"),
        (lambda: line_chart("t", [1], {"s": [0]}, "k", log=True), "log needs values above zero"),
        (lambda: trend_chart("t", [1], {"s": [None]}, "k"), "series holds no value"),
        (lambda: trend_chart("t", [1], {"s": [0]}, "k", log=True), "log needs values above zero"),
        (lambda: trend_chart("t", [0], {"s": [1]}, "k", log=True), "log needs x above zero"),
        (lambda: range_chart("t", {}, "k"), "ranges is empty"),
        (lambda: scatter_chart("t", {"g": {}}, "k"), "groups holds no point"),
        (lambda: scatter_chart("t", {"g": {"p": (0, 1)}}, "k"), "groups needs costs above zero"),
    ],
)
def test_what_cannot_be_drawn_is_one_clear_sentence(draw, message):
    with pytest.raises(ValueError, match=message):
        draw()
