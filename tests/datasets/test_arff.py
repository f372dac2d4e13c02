"""ARFF with an XML list of labels: round trips, SciPy's reader, and damaged files."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse as sp
from scipy.io import arff as scipy_arff

from tacit import Labels
from tacit.datasets import read_arff, write_arff

NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=8)


@settings(max_examples=80, deadline=None)
@given(data=st.data(), sparse=st.booleans(), suffix=st.sampled_from([".arff", ".arff.gz"]))
def test_arff_reads_back_exactly_what_was_written(data, sparse, suffix, tmp_path_factory):
    n, d, n_labels = (data.draw(st.integers(1, 5)) for _ in range(3))
    names = data.draw(st.lists(NAMES, min_size=d + n_labels, max_size=d + n_labels, unique=True))
    value = st.floats(width=32, allow_infinity=False) | st.just(0.0)
    X = np.array(data.draw(st.lists(value, min_size=n * d, max_size=n * d)), np.float32)
    X = X.reshape(n, d) + np.float32(0)  # -0.0 is 0.0 where zeros are left out
    cell = st.sampled_from([0.0, 1.0, np.nan] if data.draw(st.booleans()) else [0.0, 1.0])
    A = np.array(data.draw(st.lists(cell, min_size=n * n_labels, max_size=n * n_labels)))
    A[0] = 1.0  # an array in which nothing is said is no set of labels
    Y = Labels.from_array(A.reshape(n, n_labels), classes=names[d:])
    path = tmp_path_factory.mktemp("x") / f"set{suffix}"
    write_arff(path, sp.csr_array(X) if sparse else X, Y, feature_names=names[:d])
    back = read_arff(path)
    assert sp.issparse(back.X) == sparse
    assert back.X.dtype == np.float32
    assert_array_equal(back.X.toarray() if sparse else back.X, X)
    assert back.Y == Y
    assert_array_equal(back.feature_names, names[:d])


def test_a_dense_file_reads_as_scipy_reads_it(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 3)).astype(np.float32)
    Y = (rng.random((20, 2)) < 0.5).astype(int)
    path = tmp_path / "set.arff"
    write_arff(path, X, Y, feature_names=["a", "b c", "d"])
    table, meta = scipy_arff.loadarff(path)
    assert meta.names() == ["a", "b c", "d", "y0", "y1"]
    assert_array_equal(np.column_stack([table[c] for c in meta.names()[:3]]).astype(np.float32), X)
    assert_array_equal(np.column_stack([table[c] for c in meta.names()[3:]]).astype(int), Y)


HEADER = """% made by hand
@RELATION 'a set: -x'

@attribute 'the size' NUMERIC
@attribute yes {0,1}
@attribute "kind of \\"it\\"" {'a b', c,d}
@attribute count {0,1,2}
@attribute no {0, 1}
@DATA
"""
XML = """<labels xmlns="http://mulan.sourceforge.net/labels">
<label name="no"><label name="yes"></label></label></labels>"""


def made(tmp_path, rows, header=HEADER, xml=XML):
    (tmp_path / "set.xml").write_text(xml)
    path = tmp_path / "set.arff"
    path.write_text(header + rows)
    return path


def test_dense_and_sparse_rows_mean_the_same(tmp_path):
    dense = "1.5, 1, 'a b', 2, 0\n% a comment\n\n0, 0, c, 0, 1\n-2,?,d,?,?\n"
    sparse = "{0 1.5, 1 1, 3 2}\r\n{2 c,4 1}\n{0 -2,1 ?,2 'd',3 ?,4 ?}"
    for rows in (dense, sparse):
        read = read_arff(made(tmp_path, rows))
        X = read.X.toarray() if sp.issparse(read.X) else read.X
        assert_array_equal(X, [[1.5, 0, 0, 2], [0, 1, 0, 0], [-2, 0, 1, np.nan]])
        assert read.feature_names.tolist() == [
            "the size",
            'kind of "it"=c',
            'kind of "it"=d',
            "count",
        ]
        assert read.Y.classes.tolist() == ["yes", "no"]  # the order of the columns
        assert_array_equal(read.Y.to_array(), [[1, 0], [0, 1], [np.nan, np.nan]])


def test_a_nominal_zero_that_is_not_the_first_value_is_not_a_number(tmp_path):
    header = "@relation r\n@attribute f {a,0}\n@attribute y {0,1}\n@data\n"
    read = read_arff(made(tmp_path, "0,1\na,0\n", header=header), labels=["y"])
    assert_array_equal(read.X, [[1], [0]])
    assert read.feature_names.tolist() == ["f=0"]


def test_labels_may_be_given_by_name(tmp_path):
    read = read_arff(made(tmp_path, "1,1,c,0,0\n"), labels=["yes"])
    assert read.Y.classes.tolist() == ["yes"]
    assert read.feature_names.tolist()[-1] == "no"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("1,1,c,0,0\n1,1\n", "line 11: expected 5 values; got 2"),
        ("x,1,c,0,0", "line 10: expected a number that float32 can hold for 'the size'; got 'x'"),
        ("1e99,1,c,0,0", "line 10: expected a number that float32 can hold"),
        ("1,2,c,0,0", r"line 10: expected 0, 1 or \? for the label 'yes'; got '2'"),
        ("1,1,e,0,0", "line 10: expected one of .* got 'e'"),
        ("1,1,'a b,0,0", "line 10: expected a comma or a closing quote"),
        ("{0 1", "line 10: expected a row that ends with }"),
        ("{5 1}", "line 10: expected an attribute below 5 and its value, as 3 1; got '5 1'"),
        ("{1}", "line 10: expected an attribute below 5 and its value"),
        ("{a 1}", "line 10: expected an attribute below 5 and its value"),
        ("{0 1,0 2}", "line 10: expected each attribute once; got 0 twice"),
    ],
)
def test_a_damaged_row_is_named_with_what_was_expected(rows, message, tmp_path):
    with pytest.raises(ValueError, match=f"^set.arff, {message}"):
        read_arff(made(tmp_path, rows))


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (HEADER.replace("@attribute yes {0,1}\n", ""), "set.arff has no attribute 'yes'"),
        (
            HEADER.replace("NUMERIC", "string"),
            "set.arff, line 4: expected numeric, .* got 'string'",
        ),
        (
            HEADER.replace("{0, 1}", "{1,0}"),
            "line 8: expected .0,1. of the label 'no'; got '.1,0.'",
        ),
        (HEADER.replace("@DATA", ""), "set.arff, line 8: expected @data; got the end of the file"),
        (HEADER.replace("@DATA", "what?"), "line 9: expected @attribute NAME TYPE or @data"),
    ],
)
def test_a_damaged_header_is_named_with_what_was_expected(header, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        read_arff(made(tmp_path, "", header=header))


@pytest.mark.parametrize(
    ("xml", "message"),
    [
        (
            '<!DOCTYPE x [<!ENTITY a "b">]>' + XML,
            "set.xml must be UTF-8 and declare no document type",
        ),
        (XML[:-5], "set.xml is not XML"),
        ("<labels/>", "set.xml must list labels"),
        ("<labels><label/></labels>", "set.xml must list labels"),
    ],
)
def test_an_xml_that_lists_no_labels_or_could_do_harm_is_refused(xml, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        read_arff(made(tmp_path, "", xml=xml))


def test_what_arff_cannot_say_is_not_written(tmp_path):
    with pytest.raises(ValueError, match="Y is positive-only"):
        write_arff(tmp_path / "a.arff", np.ones((1, 1)), Labels.from_sets([["a"]]))
    with pytest.raises(ValueError, match="feature_names must be 1 different names"):
        write_arff(tmp_path / "a.arff", np.ones((1, 1)), [[1]], feature_names=["y0"])
    with pytest.raises(ValueError, match="must not hold a line's end"):
        write_arff(tmp_path / "a.arff", np.ones((1, 1)), [[1]], feature_names=["a\nb"])
    assert list(tmp_path.iterdir()) == []
