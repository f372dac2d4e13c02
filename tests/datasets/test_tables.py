"""Tables: CSV, JSON lines and Parquet; against pandas, and damaged files."""

import csv
import gzip
import json
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from tacit import Labels
from tacit.datasets import ReadingWarning, read_table, tags_of, write_table
from tacit.datasets.tables.tags import found, in_words

SUFFIXES = [".csv", ".tsv", ".jsonl", ".csv.gz", ".jsonl.gz", ".parquet"]
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
TAG = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"], exclude_characters="|-"))
ROW = st.fixed_dictionaries(
    {"id": st.integers(0, 99), "title": TEXT, "tags": st.lists(TAG.filter(bool), max_size=3)}
)


@pytest.mark.parametrize("suffix", SUFFIXES)
@settings(max_examples=30, deadline=None)
@given(
    rows=st.lists(ROW, min_size=1, max_size=6, unique_by=lambda row: row["id"]).filter(
        lambda rows: any(row["tags"] for row in rows)
    )
)
def test_a_table_reads_back_what_was_written(rows, suffix, tmp_path_factory):
    path = tmp_path_factory.mktemp("x") / f"table{suffix}"
    write_table(path, rows)
    # One tag a row leaves nothing to find the separator by.
    back = read_table(path, text="title", id="id", separator="|")
    assert back.text == [row["title"] for row in rows]
    assert back.ids == [str(row["id"]) for row in rows]
    assert Labels.from_sets([row["tags"] for row in rows]) == back.Y
    assert back.X is None


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_a_minus_before_a_tag_says_no_to_it(suffix, tmp_path):
    rng = np.random.default_rng(0)
    A = rng.choice([1.0, 0.0, np.nan], (20, 5))
    reviewed = Labels.positive_only(A == 1, no=A == 0, classes=["-", "a b", "c-d", "é", "ünd"])
    path = tmp_path / f"table{suffix}"
    write_table(path, ({"title": "x", "tags": tags} for tags in tags_of(reviewed)))
    back = read_table(path, text="title").Y
    assert back == reviewed
    assert back.noes.nnz == (A == 0).sum()


def test_a_tag_said_yes_and_no_to_is_told(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("title,tags\nx,gtk|cli\ny,cli|gtk|-cli\n")
    with pytest.raises(ValueError, match="line 3, column 'tags': both 'cli' and '-cli'; leave one"):
        read_table(path, text="title")


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_columns_are_read_as_pandas_reads_them(suffix, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((30, 3)), columns=["a", "b", "c"])
    frame["one"], frame["two"] = 'with "quotes",', "and\nlines, é"
    frame.loc[3, "b"] = np.nan
    path = tmp_path / f"table{suffix}"
    if suffix == ".csv":
        frame.to_csv(path, index=False, encoding="utf-8-sig")
    elif suffix == ".jsonl":
        frame.to_json(path, orient="records", lines=True, double_precision=15)
    else:
        frame.to_parquet(path)
    back = read_table(path, labels=None, text=["two", "one"], features=["c", "b"])
    assert_array_equal(back.X, frame[["c", "b"]].to_numpy(np.float32))
    assert back.text == (frame["two"] + " " + frame["one"]).tolist()
    assert back.Y is None
    assert back.ids is None


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["a|b;c", "d"], [["a", "b;c"], ["d"]]),
        (["a; b,c ", ""], [["a", "b,c"], []]),
        (["a b,c,,a b", " "], [["a b", "c"], []]),
        (["a b", "c"], [["a b"], ["c"]]),
    ],
)
def test_of_separators_that_are_as_frequent_the_first_of_bar_semicolon_comma_is_meant(
    cells, expected, tmp_path
):
    path = tmp_path / "table.csv"
    write_table(path, [{"tags": cell, "other": "x"} for cell in cells])
    assert Labels.from_sets(expected) == read_table(path).Y


def test_a_separator_given_is_the_one_used(tmp_path):
    path = tmp_path / "table.jsonl"
    write_table(path, [{"t": "a|b, c"}, {"t": ["d, e"]}, {"t": None}, {"t": 7}])
    read = read_table(path, labels="t", separator=",")
    assert Labels.from_sets([["a|b", "c"], ["d, e"], [], ["7"]]) == read.Y


def test_a_cell_longer_than_the_csv_module_allows_is_read_and_its_limit_left(tmp_path):
    path = tmp_path / "table.csv"
    write_table(path, [{"tags": "a", "text": "x" * 101}])
    before = csv.field_size_limit(100)
    try:
        assert read_table(path, text="text").text == ["x" * 101]
        assert csv.field_size_limit() == 100
    finally:
        csv.field_size_limit(before)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", "id,tags\n1,a\n2\n", "t.csv, line 3: expected 2 cells; got 1"),
        ("t.csv", 'id,tags\n1,"a\nb"\n2,b,c\n', "t.csv, line 4: expected 2 cells; got 3"),
        ("t.csv", 'id,tags\n1,a\n2,"b\n3,c\n', "t.csv, the row that begins in line 3: "),
        ("t.csv", "id,labels\n1,a\n", "t.csv has no column 'tags'; it has id, labels"),
        ("t.csv", "", "t.csv has no column 'tags'; it has none"),
        ("t.csv", ",id\nx,a\n", "t.csv has no column 'tags'; it has id$"),
        ("t.csv", "id,tags\n1,\n", "t.csv has no tag in its column 'tags'"),
        ("t.tsv", "id\ttags\n1\n", "t.tsv, line 2: expected 2 cells; got 1"),
        ("t.jsonl", '{"tags": []}\n\n{"tags": [}\n', "t.jsonl, line 3: expected a JSON object"),
        ("t.jsonl", "[1]\n", r"t.jsonl, line 1: expected a JSON object; got '\[1\]"),
        (
            "t.jsonl",
            '{"tag": []}\n',
            "t.jsonl has no column 'tags'; it has tag; did you mean 'tag'",
        ),
        ("t.jsonl", '{"tags": [["a"]]}\n', "t.jsonl, line 1, column 'tags': expected tags; got"),
        ("t.parquet", "PAR1", "t.parquet is not a whole Parquet file"),
        ("t.csv.gz", "tags\n", "t.csv.gz is not a whole gzip file"),
        ("t.xls", "", "cannot tell the format of t.xls; its name must end in .csv, "),
    ],
)
def test_a_damaged_table_is_one_sentence_that_says_where(name, content, message, tmp_path):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(ValueError, match=f"^{message}"):
        read_table(path)


def test_a_cell_that_is_no_number_is_named(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n3,x\n")
    with pytest.raises(ValueError, match=r"^t.csv, line 3, column 'b': expected a number; got 'x'"):
        read_table(path, labels=None, features=["a", "b"])


def test_a_gzip_file_cut_short_is_one_sentence(tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"tags\n" + b"a\n" * 1000)[:-10])
    with pytest.raises(ValueError, match=r"^t.csv.gz is not a whole gzip file"):
        read_table(path)


def test_rows_with_other_keys_leave_the_old_file_as_it_was(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("old")
    with pytest.raises(ValueError, match="row 1 has the keys"):
        write_table(path, [{"a": 1}, {"b": 2}])
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_numpy_values_are_written_as_numbers(tmp_path):
    row = {"i": np.int64(3), "x": np.float32(0.5), "l": np.array([1, 2])}
    path = tmp_path / "t.jsonl"
    write_table(path, [row])
    assert json.loads(path.read_text()) == {"i": 3, "x": 0.5, "l": [1, 2]}


def test_parquet_without_pyarrow_names_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "t.parquet").write_bytes(b"")
    with pytest.raises(ImportError, match=r"tacit\[parquet\]"):
        read_table(tmp_path / "t.parquet")


FRAME = {
    "title": ["one", "two", "three", None],
    "tags": [["a", "b"], [], None, ["b", "b", " c "]],
    "size": [1.0, None, 2.5, 4.0],
}
SAID = [["a", "b"], [], [], ["b", "c"]]


class Stream:
    """What only gives an Arrow stream, as DuckDB and Hugging Face's datasets do."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
def test_a_data_frame_is_read_as_a_file_is(library):
    if library == "pandas":
        frame = pd.DataFrame(FRAME)
    elif library == "polars":
        frame = pytest.importorskip("polars").DataFrame(FRAME)
    else:
        frame = Stream(pytest.importorskip("pyarrow").table(FRAME))
    table = read_table(frame, text="title", features=["size"])
    assert table.text == ["one", "two", "three", ""]
    assert Labels.from_sets(SAID) == table.Y
    assert_array_equal(table.X[:, 0], [1, np.nan, 2.5, 4])


def test_what_is_no_table_is_told_what_one_is():
    with pytest.raises(ValueError, match=r"a table is a path, a data frame .*; got int$"):
        read_table(3)
    lazy = pytest.importorskip("polars").LazyFrame(FRAME)
    with pytest.raises(ValueError, match=r"collect\(\) it first"):
        read_table(lazy)


WIDE = "title,gtk,cli,GTK\none,1,0,\ntwo,0,,0\nthree,,yes,No\n"


@pytest.mark.parametrize(
    ("noes", "expected"),
    [
        ("none", Labels.positive_only([[0, 1], [0, 0], [1, 0]], classes=["cli", "gtk"])),
        (
            "zeros",
            Labels.masked(
                [[0, 0, 1], [0, 0, 0], [0, 1, 0]],
                [[0, 1, 1], [1, 0, 1], [1, 1, 0]],
                classes=["GTK", "cli", "gtk"],
            ),
        ),
        (
            "all",
            Labels.complete([[0, 0, 1], [0, 0, 0], [0, 1, 0]], classes=["GTK", "cli", "gtk"]),
        ),
    ],
)
def test_what_a_zero_and_a_blank_mean_is_the_users_choice(noes, expected, tmp_path):
    (tmp_path / "t.csv").write_text(WIDE)
    read = read_table(tmp_path / "t.csv", labels=["gtk", "cli", "GTK"], noes=noes).Y
    assert expected == read


def test_without_a_blank_zeros_that_are_noes_leave_nothing_unsaid(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,0\n0,1\n0,0\n")
    read = read_table(tmp_path / "t.csv", labels=["*"], noes="zeros").Y
    assert read == Labels.complete([[1, 0], [0, 1], [0, 0]], classes=["a", "b"])


def test_lines_with_one_id_are_one_row_unless_their_text_differs(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,title,tags\n1,one,a\n2,two,b\n1,one,c\n2,other,d\n1,one,a\n")
    table = read_table(path, text="title", id="id")
    assert (table.ids, table.text) == (["1", "2", "2"], ["one", "two", "other"])
    assert Labels.from_sets([["a", "c"], ["b"], ["d"]]) == table.Y
    assert "1 of 3 rows have an id that was there" in table.reading.notes[0]
    assert ("rows", "3, on 5 lines: those with the same id are one row") in table.reading.facts()


def test_phrases_that_come_again_are_tags_and_no_sentences(tmp_path):
    path = tmp_path / "t.csv"
    phrases = ["regulation of growth", "binding to the wall", "part of a membrane"]
    write_table(path, [{"tags": [phrases[i % 3], phrases[i % 2]]} for i in range(30)])
    assert not read_table(path).reading.doubts


@pytest.mark.parametrize("separator", ["|", ";", ","])
def test_a_column_of_tags_alone_is_not_cut_into_columns(separator, tmp_path):
    path = tmp_path / "t.csv"
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([["tags"]] + [[separator.join("ab")]] * 9)
    assert Labels.from_sets([["a", "b"]] * 9) == read_table(path).Y


def test_rows_of_other_ids_may_have_the_same_text(tmp_path):
    path = tmp_path / "t.csv"
    write_table(
        path, [{"id": i, "title": "abcdefgh"[i % 8], "tags": "xyz"[i % 3]} for i in range(24)]
    )
    with pytest.warns(ReadingWarning, match="a table of one tag a line; give id='title'"):
        read_table(path, text="title")
    assert not read_table(path, text="title", id="id").reading.doubts


def test_small_letters_make_one_of_twins_and_of_accents_written_otherwise(tmp_path):
    path = tmp_path / "t.jsonl"
    write_table(path, [{"tags": ["Deep  Learning", "deep learning", "café", "cafe\u0301"]}])
    assert read_table(path).Y.n_labels == 4
    assert read_table(path, case="lower").Y.classes.tolist() == ["café", "deep learning"]


def test_a_doubt_is_a_warning_that_names_the_parameter(tmp_path):
    path = tmp_path / "t.csv"
    write_table(path, [{"tags": tag} for tag in ["Gtk", "gtk", "CLI", "cli", "X", "x"] * 5])
    with pytest.warns(
        ReadingWarning, match=r"t.csv: 3 labels .* as CLI and cli; give case='lower'"
    ):
        assert read_table(path).Y.n_labels == 6
    assert read_table(path, case="keep").Y.n_labels == 6  # and no doubt: warnings are errors here


TEN = ["red", "blue", "green", "brown", "black", "white", "grey", "pink", "gold", "teal"]


def words(numbers, most):
    return " ".join(f"w{(7 * i) % most}" for i in numbers)


@pytest.mark.parametrize(
    ("cells", "writing"),
    [
        (["machine learning", "deep learning", "machine translation"] * 20, "whole"),
        (["food/bread", "food/cheese", "tool/saw"] * 20, "whole"),
        ([f"the cat {i} sat on a mat and slept" for i in range(60)] + ["a cat"] * 9, "whole"),
        # The same few words in all orders, but there are words of sentences among them, or stops.
        ([f"the {a} is in a {b}" for a in TEN for b in TEN] + [f"a {a}" for a in 2 * TEN], "whole"),
        ([f"{a} {b}." for a in TEN for b in TEN] + [f"{a}." for a in 2 * TEN], "whole"),
        ([f"{a} {b}" for a in TEN for b in TEN] + 2 * TEN, "space"),
        ([f"{a} {b}" for a in TEN for b in TEN], "whole"),  # always two: an adjective and a noun
        # Nearly as many different words as cells: names, unless they come again and again.
        ([words(range(i, i + 4 - i % 2), 80) for i in range(100)], "whole"),
        ([words(range(i, i + 12 - i % 2), 80) for i in range(100)], "space"),
        (["use/edit use/view", "use/view", "use/mail use/view", "use/edit"] * 20, "whole"),
        (["a,b", *["b c d", "c d", "a d", "d", "b d c a", "a c", "b a d", "b c"] * 9], "space"),
        (["a|b, c", "d, e|f"], "|"),
        (["a, b"] * 99 + ["a, b; c"], ","),
        (["['a', 'b']"] * 19 + [""], "list"),
        (["[a] b", "[c]"], "whole"),
    ],
)
def test_how_tags_are_written_is_found_by_what_comes_again(cells, writing):
    assert in_words(found(cells)) == writing


def test_numbers_have_a_decimal_comma_where_the_comma_is_no_delimiter(tmp_path):
    (tmp_path / "t.csv").write_text("a;tags\n1,5;x\n-,25;y\n")
    assert_array_equal(read_table(tmp_path / "t.csv", features=["a"]).X, [[1.5], [-0.25]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delimiter": "ab"}, "the delimiter is one character"),
        ({"encoding": "utf-99"}, "there is no encoding 'utf-99'"),
        ({"encoding": "ascii"}, r"t.csv is not in ascii: it has the bytes b'\\xc3'"),
        ({"format": "doc"}, "the format is one of csv, tsv"),
        ({"separator": ""}, "the separator is empty"),
        ({"case": "upper"}, "case must be 'keep' or 'lower'; got 'upper'"),
        ({"noes": "no"}, "noes must be 'none' or 'zeros' or 'all'; got 'no'"),
        ({"labels": ["x*"]}, r"t.csv has no column 'x\*'"),
        ({"text": "twice"}, "t.csv has more than one column 'twice'"),
    ],
)
def test_an_option_that_cannot_be_is_one_sentence(options, message, tmp_path):
    (tmp_path / "t.csv").write_text("é,tags,twice,twice\n1,x,a,b\n", encoding="utf-8")
    with pytest.raises(ValueError, match=f"^{message}"):
        read_table(tmp_path / "t.csv", **options)


def test_excel_without_openpyxl_names_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    (tmp_path / "t.xlsx").write_bytes(b"")
    with pytest.raises(ImportError, match=r"tacit\[excel\]"):
        read_table(tmp_path / "t.xlsx")


@pytest.mark.parametrize("name", ["t.json", "t.xlsx"])
def test_formats_that_are_only_read_are_refused_for_writing(name, tmp_path):
    with pytest.raises(ValueError, match=r"is only read; write \.csv or \.jsonl"):
        write_table(tmp_path / name, [{"a": 1}])
