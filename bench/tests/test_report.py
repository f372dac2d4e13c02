"""The report: toy boards whose best, means and differences are known by hand."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from tacit_bench.report import headline, report, write_headline

NASTY = """<script>alert("x")</script> & 'tags'"""
ABOUT = {"date": "2026-11-16", "python": "3.11.7", "cores": 2, "numpy": "2.3.1"}
COSTS = {"tried": [1.0, 2.0], "tuning s": 3.0, "fit s": 1.5, "peak GiB": 0.5, "device": "cpu"}


class Reader(HTMLParser):
    """The sections and their text, once every element is closed by its own name."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.links, self.sections, self.cells = [], set(), [], {}, []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.links += [value for name, value in attrs if name in ("href", "src")]
        if tag == "section":
            self.section = dict(attrs).get("id", "")
            self.sections[self.section] = []
        if tag == "tr":
            self.cells.append([])
        if tag in ("td", "th"):
            self.cells[-1].append("")
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "section" in self.open:
            self.sections[self.section].append(data)
        if {"td", "th"} & set(self.open):
            self.cells[-1][-1] += data

    def text(self, section):
        return "".join(self.sections[section])


def work(method, p3, data="toy", rate=0.5, seed=0, mechanism="positives"):
    cell = {"data": data, "mechanism": mechanism, "rate": rate, "method": method, "seed": seed}
    if isinstance(p3, str):
        return {"cell": cell, "skipped": p3, "about": ABOUT}
    others = {"P@1": p3 + 10, "P@5": p3 / 2, "R@20 hidden": None}
    return {"cell": cell, "found": {"P@3": p3, **others, **COSTS}, "about": ABOUT}


def fit(method, axis, value, seconds):
    cell = {"what": "fit", "method": method, "axis": axis, "value": value}
    found = {"seconds": seconds, "predict s": 0.1, "peak GiB": 1.0 + value / 1e5, "empty GiB": 0.1}
    return {"cell": cell, "found": found, "about": ABOUT}


def kernel(name, share):
    found = {"GB/s": 5.0, "limit": 10.0, "share of limit": share}
    return {"cell": {"what": "kernel", "name": name}, "found": found, "about": ABOUT}


def paper(p3, auc, **more):
    cell = {"paper": "LEML", "table": "2", "data": "bibtex", "method": "LEML-SQ", "k_over_L": 0.4}
    found = {"top-3 accuracy (%)": p3, "average AUC": auc, "fit s": 1.0, "trials": 1, "model": "m"}
    return {"cell": cell | more, "found": found, "about": ABOUT}


def real(data, method, **found):
    return {"cell": {"data": data, "method": method}, "found": found, "about": ABOUT}


@pytest.fixture
def write(tmp_path):
    def write(**boards):
        for name, rows in boards.items():
            lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
            (tmp_path / f"{name}.jsonl").write_text(lines, encoding="utf-8")
        return tmp_path

    return write


@pytest.fixture
def full(write):
    return write(
        missing=[
            *(work(m, p + r, d, r) for d in "ab" for r in (0.0, 0.5) for m, p in NASTY_AND_MORE),
            work("LEML", 20.0, mechanism="entries", rate=0.2),
            work("LEML", NASTY, rate=0.8),
        ],
        peers=[work("peer", 29.0, d, r) for d in "ab" for r in (0.0, 0.5)],
        real=[
            real(NASTY, "LEML", AUC=0.75, asked=1200, words="no figure"),
            real("b", NASTY, R=1.0),
        ],
        scale=[
            *(fit(NASTY, "n", n, n**2 / 1e6) for n in (1000, 2000, 4000)),
            kernel(NASTY, 81.0),
        ],
        papers=[paper(36.93, 0.8)],
    )


NASTY_AND_MORE = [(NASTY, 30.0), *((f"method {i}", 20.0 + i) for i in range(8))]


def test_the_page_is_balanced_and_neither_runs_nor_fetches_anything(full):
    text = report(full)
    reader = Reader(text)
    assert "script" not in reader.tags
    assert all(link.startswith("#") for link in reader.links)
    assert not re.search(r"url\(|@import|https?:", text)
    assert list(reader.sections) == [
        "",
        "in-short",
        "accuracy-against-missing-rate",
        "accuracy-against-time",
        "what-was-really-missing",
        "scaling",
        "papers",
        "how-this-was-measured",
    ]


def test_names_from_results_are_text_in_every_section(full):
    reader = Reader(report(full))
    for section in reader.sections.keys() - {"", "papers", "how-this-was-measured"}:
        assert NASTY in reader.text(section), section


@pytest.mark.parametrize("boards", [{}, {"missing": [], "scale": []}])
def test_a_board_that_is_absent_or_empty_is_a_sentence_with_its_command(write, boards):
    reader = Reader(report(write(**boards)))
    both = "Not measured: run tacit bench missing, tacit bench peers."
    for section, sentence in {
        "in-short": both,
        "accuracy-against-missing-rate": both,
        "accuracy-against-time": both,
        "what-was-really-missing": "Not measured: run tacit bench real.",
        "scaling": "Not measured: run tacit bench scale.",
        "papers": "Not measured: run tacit bench papers.",
        "how-this-was-measured": both[:-1] + ", tacit bench real, tacit bench scale",
    }.items():
        assert sentence in reader.text(section)
    assert headline(write(**boards)) == both


@pytest.mark.parametrize("alone", ["missing", "peers", "real", "scale", "papers"])
def test_each_board_alone_makes_a_page(full, alone):
    for path in full.glob("*.jsonl"):
        if path.stem != alone:
            path.unlink()
    assert f"tacit bench {alone}" in Reader(report(full)).text("how-this-was-measured")


def test_a_board_on_which_all_was_skipped_makes_a_page_that_says_why(write):
    rows = [work("LEML", "no data here"), work("FaIE", "no data here", rate=0.8)]
    text = Reader(report(write(missing=rows))).text("accuracy-against-missing-rate")
    assert "Not measured: 2 cells, and why" in text
    assert "LEML on toy: no data here" in text


def test_the_headline_sets_the_best_mean_of_ours_beside_the_best_peer(write):
    results = write(
        missing=[
            work("steady", 30.0),
            work("steady", 32.0, seed=1),  # a mean of 31
            work("lucky", 35.0),
            work("lucky", 25.0, seed=1),  # a mean of 30
            work("alone", 12.5, data="small", rate=0.0),
            work("other rate", 90.0, rate=0.2),
            work("other way", 90.0, mechanism="entries"),
        ],
        peers=[work("A|B", 33.5), work("slow", 11.0), work("only peer", 5.0, rate=0.8)],
    )
    header, ruler, *lines = headline(results).splitlines()
    assert header == "| data | hidden | best of ours | P@3 | best peer | P@3 | ahead |"
    assert header.count("|") == ruler.count("|")
    assert lines == [
        r"| toy | 50% | steady | 31.00 | A\|B | 33.50 | −2.50 |",
        "| toy | 80% | – | – | only peer | 5.00 | – |",
        "| small | 0% | alone | 12.50 | – | – | – |",
    ]


def test_what_was_skipped_is_never_the_best(write):
    results = write(
        missing=[work("failed", "stopped after 9 s"), work("LEML", 10.0)],
        peers=[work("broken", "does not install here"), work("peer", 9.0)],
    )
    assert headline(results).splitlines()[2:] == [
        "| toy | 50% | LEML | 10.00 | peer | 9.00 | +1.00 |"
    ]


def test_the_page_has_the_headline_and_the_best_by_the_other_figures_too(write):
    first = work("first", 30.0)
    first["found"] |= {"P@1": 99.0, "P@5": 1.0}
    rows = Reader(
        report(write(missing=[first, work("LEML", 29.0)], peers=[work("peer", 29.5)]))
    ).cells
    assert ["toy", "50%", "+0.50", "first", "30.00", "peer", "29.50"] in rows
    assert ["toy", "50%", "+59.50", "first", "99.00", "peer", "39.50"] in rows
    assert ["toy", "50%", "−0.25", "LEML", "14.50", "peer", "14.75"] in rows


@pytest.mark.parametrize("values", [[30.0, 31.0, 35.0], [30.0, 34.0]])
def test_a_table_has_mean_and_deviation_of_the_seeds_and_no_deviation_of_one(write, values):
    rows = [work("LEML", value, seed=seed) for seed, value in enumerate(values)]
    cells = Reader(report(write(missing=[*rows, work("one", 20.0)]))).cells
    header = next(row for row in cells if "nDCG@3" in row)
    several, one = (next(r for r in cells if r[:2] == [m, "ours"]) for m in ("LEML", "one"))
    p3 = header.index("P@3")
    assert several[p3] == f"{np.mean(values):.2f} ± {np.std(values, ddof=1):.2f}"
    assert one[p3] == "20.00"
    assert one[header.index("R@20 hidden")] == "–"
    assert one[header.index("tuning s")] == "3.00"


def test_points_far_below_the_best_are_in_the_tables_and_not_in_the_charts(write):
    results = write(missing=[work("good", 40.0, rate=0.8), work("floor", 20.0, rate=0.8)])
    reader = Reader(report(results))
    assert "good" in reader.text("accuracy-against-time")
    assert "floor" not in reader.text("accuracy-against-time")
    assert any(row[0] == "floor" for row in reader.cells)


def test_a_line_is_drawn_where_there_is_more_than_one_rate(write):
    rows = [work("Tacit", 40.0, rate=rate) for rate in (0.0, 0.5)]
    page = report(write(missing=[*rows, work("Tacit", 20.0, data="other")]))
    assert "toy: P@3 (%)" in page
    assert "other: P@3 (%)" not in page
    assert "other, 50% of the positives hidden" in page


def test_in_colour_is_who_is_most_often_the_best_of_its_side_however_many_works_it_has(write):
    rates = (0.0, 0.2, 0.5)
    everywhere = [work(name, 35.0, rate=rate) for name in ("x", "y", "z") for rate in rates]
    best = [work(f"best {i}", 40.0, rate=rates[i]) for i in range(3)]
    page = report(
        write(missing=[work("Tacit", 50.0, rate=rate) for rate in rates], peers=everywhere + best)
    )
    chart = page[page.index("toy: P@3 (%)") :].partition("</svg>")[0]
    named = set(re.findall(r"<text[^>]*>([^<]+)</text>", chart))
    assert {"Tacit", "best 0", "best 1", "best 2"} <= named
    assert named.isdisjoint({"x", "y", "z"})


def test_each_way_of_hiding_is_told_of_only_where_it_was_measured(write):
    told = {"positives": "positive training labels hidden", "entries": "Entries observed at random"}
    for way, other in [("positives", "entries"), ("entries", "positives")]:
        results = write(missing=[work("LEML", 10.0, mechanism=way)])
        text = Reader(report(results)).text("accuracy-against-missing-rate")
        assert told[way] in text
        assert told[other] not in text


def test_growth_is_named_with_the_power_of_its_law(write):
    results = write(
        scale=[
            *(fit("square", "n", n, n**2 / 1e6) for n in (1000, 2000, 4000, 8000)),
            *(fit("root", "L", n, 3 * n**0.5) for n in (1000, 4000)),
            kernel("spmm", 81.25),
        ]
    )
    reader = Reader(report(results))
    text = reader.text("scaling")
    assert "square 2.00" in text
    assert "root 0.50" in text
    assert ["spmm", "5.0", "–", "10.0", "81.2", "–"] in reader.cells


def test_real_tables_have_every_figure_of_a_data_set(write):
    rows = [real("a", "m", AUC=0.75, n=1200), real("a", "k", F1=2.5), real("b", "m", F1=0.0123)]
    cells = Reader(report(write(real=rows))).cells
    assert cells[:5] == [
        ["method", "AUC", "n", "F1"],
        ["m", "0.75", "1,200", "–"],
        ["k", "–", "–", "2.50"],
        ["method", "F1"],
        ["m", "0.0123"],
    ]


def test_ours_stands_beside_published_with_a_sign_for_what_it_comes_to(write):
    # LEML's table 2 has 36.53 and 0.9015 for bibtex and 0.4; a point and .005 may be noise.
    reader = Reader(report(write(papers=[paper(36.03, 0.8), paper(99.0, 0.9, quick=True)])))
    differences = ["36.53", "36.03", "−0.50 ≈", "0.9015", "0.8000", "−0.1015 ✗"]
    assert ["bibtex", "LEML-SQ", "0.4", *differences] in reader.cells
    where = "LEML, table 2: bibtex, LEML-SQ, k_over_L = 0.4"
    missed = [row for row in reader.cells if row[0] == where]
    assert [row[1:5] for row in missed] == [["average AUC", "0.9015", "0.8000", "−0.1015 ✗"]]
    assert missed[0][5]
    assert "99.00" not in reader.text("papers")


def test_how_it_was_measured_names_every_version_seed_and_budget(write):
    rows = [work("LEML", 1.0), work("LEML", 2.0, seed=1), work("FaIE", "no")]
    rows[1]["about"] = ABOUT | {"numpy": "2.4.0"}
    cells = {row[0]: row[1:] for row in Reader(report(write(missing=rows))).cells}
    assert cells["numpy"] == ["2.3.1, 2.4.0"]
    assert cells["seeds"] == ["0, 1"]
    assert cells["settings tried"] == ["2"]
    assert cells["cells"] == ["3"]


def test_the_rest_of_a_page_stays_byte_for_byte(write, tmp_path):
    results = write(missing=[work("LEML", 10.0)])
    page = tmp_path / "page.md"
    before, after = "# é\r\n\ttabs \n".encode() + b"\xff", b"\n\r\nend <!-- /headline --> \n\n"
    page.write_bytes(before + b"<!-- headline -->old\n| x |\n<!-- /headline -->" + after)
    for _ in range(2):  # the second time it replaces its own
        write_headline(page, results)
        table = f"<!-- headline -->\n{headline(results)}\n<!-- /headline -->".encode()
        assert page.read_bytes() == before + table + after


@pytest.mark.parametrize(
    "text",
    ["none", "<!-- headline -->", "<!-- /headline -->", "<!-- /headline --><!-- headline -->"],
)
def test_a_page_without_marks_is_one_clear_sentence_and_stays_as_it_is(write, tmp_path, text):
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(
        ValueError, match=r"^--headline '.*page.md' has no marks around a headline; "
    ):
        write_headline(page, write())
    assert page.read_text() == text
