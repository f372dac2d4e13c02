"""The page: read back with the standard library's parsers."""

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tacit.cli.page import bar_chart, facts, line_chart, page, table

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
    ]
    reader = Reader(page(NASTY, [(NASTY, parts)]))
    assert not reader.open
    assert "script" not in {tag for tag, _ in reader.seen}
    # whole in: title h1 h2 p th td dt dd; caption, key and title of two charts; one axis
    assert reader.texts.count(NASTY) == 15


def test_the_page_fetches_nothing_and_forbids_it():
    chart = bar_chart("a", ["b"], {"c": [1.0]})
    text = page("t", [("h", ["p", chart, table(["x"], [[1]])])])
    reader = Reader(text)
    for _, attributes in reader.seen:
        assert not {"src", "href", "srcset", "onload"} & attributes.keys()
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
        [("name", None), ("n", "number"), ("share", "number")],
        [("a", None), ("12,345", "number"), ("0.500", "number")],
        [("b", None), ("2", "number"), ("1.000", "number")],
    ]
    assert [c.text for c in ElementTree.fromstring(table(["alone"], [])).iter("th")] == ["alone"]


def test_only_a_table_without_numbers_may_become_a_list_under_its_headings():
    words = ElementTree.fromstring(table(["a", 'b"'], [["1", "2"]]))
    numbers = ElementTree.fromstring(table(["a", "b"], [["1", 2]]))
    assert [t.find("table").get("class") for t in (words, numbers)] == ["words", None]
    assert [c.get("data-name") for c in words.iter("td")] == ["a", 'b"']


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


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: table(["a", "b"], [[1]]), "header has 2 cells but a row of rows has 1"),
        (lambda: bar_chart("t", ["a"], {"s": [1, 2]}), "series 's' has 2 values for 1 labels"),
        (lambda: line_chart("t", [1], {"s": []}, "k"), "series 's' has 0 values for 1 x"),
        (lambda: line_chart("t", [], {}, "k"), "series holds no value"),
        (lambda: line_chart("t", [1], {"s": [0]}, "k", log=True), "log needs values above zero"),
    ],
)
def test_what_cannot_be_drawn_is_one_clear_sentence(draw, message):
    with pytest.raises(ValueError, match=message):
        draw()
