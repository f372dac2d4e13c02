"""XMLRepo and svmlight text: round trips, scikit-learn's reader, and damaged lines."""

import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse as sp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from tacit import Labels
from tacit.datasets import read_svmlight, read_xmlrepo, rowparser, write_svmlight, write_xmlrepo

FINITE = st.floats(width=32, allow_nan=False, allow_infinity=False)


@st.composite
def pairs(draw):
    """A sparse float32 X, stored zeros and signed zeros included, and a 0/1 Y."""
    n, d, n_labels = (draw(st.integers(low, 6)) for low in (0, 1, 1))
    mask = draw(st.lists(st.booleans(), min_size=n * d, max_size=n * d))
    row, column = np.nonzero(np.reshape(np.array(mask, bool), (n, d)))
    values = draw(st.lists(FINITE, min_size=len(row), max_size=len(row)))
    X = sp.csr_array((np.array(values, np.float32), (row, column)), shape=(n, d))
    Y = draw(st.lists(st.booleans(), min_size=n * n_labels, max_size=n * n_labels))
    return X, np.reshape(np.array(Y, np.int8), (n, n_labels))


def assert_same_matrix(a, b):
    """Bit for bit, so that -0.0 is not 0.0."""
    assert a.shape == b.shape
    assert_array_equal(a.indptr, b.indptr)
    assert_array_equal(a.indices, b.indices)
    assert a.data.dtype == b.data.dtype == np.float32
    assert_array_equal(a.data.view(np.int32), b.data.view(np.int32))


@pytest.mark.parametrize("suffix", [".txt", ".txt.gz"])
@settings(max_examples=60, deadline=None)
@given(pair=pairs())
def test_xmlrepo_reads_back_exactly_what_was_written(pair, suffix, tmp_path_factory):
    X, Y = pair
    path = tmp_path_factory.mktemp("x") / f"set{suffix}"
    write_xmlrepo(path, X, Y)
    back = read_xmlrepo(path)
    assert_same_matrix(back.X, X)
    assert Labels.complete(Y) == back.Y
    assert back.name == "set"


@settings(max_examples=60, deadline=None)
@given(pair=pairs(), zero_based=st.booleans())
def test_svmlight_reads_back_exactly_what_was_written(pair, zero_based, tmp_path_factory):
    X, Y = pair
    path = tmp_path_factory.mktemp("x") / "set.svm"
    write_svmlight(path, X, Y, zero_based=zero_based)
    back = read_svmlight(path, n_features=X.shape[1], n_labels=Y.shape[1], zero_based=zero_based)
    assert_same_matrix(back.X, X)
    assert Labels.complete(Y) == back.Y


DECIMALS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False, max_value=3e38, min_value=-3e38).map(repr),
    st.from_regex(
        r"[+-]?([0-9]{1,25}\.?[0-9]{0,25}|\.[0-9]{1,25})([eE][+-]?[0-5]?[0-9])?", fullmatch=True
    ).filter(lambda text: text.isascii() and abs(float(text)) < 3e38),
)


@settings(max_examples=300, deadline=None)
@given(texts=st.lists(DECIMALS, min_size=1, max_size=20))
def test_a_number_is_read_as_numpy_reads_it(texts, tmp_path_factory):
    path = tmp_path_factory.mktemp("x") / "set.txt"
    path.write_text(f"1 {len(texts)} 1\n0 " + " ".join(f"{j}:{t}" for j, t in enumerate(texts)))
    expected = np.array([np.float32(float(text)) for text in texts])
    assert_array_equal(read_xmlrepo(path).X.data.view(np.int32), expected.view(np.int32))


def test_a_number_next_to_a_tie_between_two_float32_is_read_as_numpy_reads_it(tmp_path):
    # Found by a search: m / 10^e in doubles falls on the other side of the tie than these do.
    normal = "1.048704838524372595e-07 -7.5744476362160648e-06 3.50476228182507549e+27"
    subnormal = "9.108440018111311e-45 2.0318827732709848e-44 -2.1720126197034662e-44 1e-45 7e-46"
    texts = [*normal.split(), *subnormal.split(), "1.000000059604644775390625"]
    path = tmp_path / "set.txt"
    path.write_text(f"1 {len(texts)} 1\n0 " + " ".join(f"{j}:{t}" for j, t in enumerate(texts)))
    expected = np.array([np.float32(float(text)) for text in texts])
    assert_array_equal(read_xmlrepo(path).X.data.view(np.int32), expected.view(np.int32))


def test_a_feature_may_end_one_row_and_begin_the_next(tmp_path):
    path = tmp_path / "set.txt"
    path.write_text("2 4 1\n0 3:1 1:2\n0 3:4\n")  # the first row unsorted, so that rows are sorted
    assert_array_equal(read_xmlrepo(path).X.toarray(), [[0, 2, 0, 1], [0, 0, 0, 4]])


@pytest.mark.parametrize("zero_based", [True, False])
def test_svmlight_agrees_with_scikit_learn_both_ways(zero_based, tmp_path):
    rng = np.random.default_rng(0)
    X = sp.random_array((200, 30), density=0.2, rng=rng).toarray()
    X[0, 0] = X[1, 29] = 0.5  # so that both know the base and the width
    Y = (rng.random((200, 7)) < 0.3).astype(int)
    Y[:, 6] |= Y.sum(axis=1) == 0  # scikit-learn drops a row without anything
    theirs, ours = tmp_path / "theirs.svm", tmp_path / "ours.svm"
    dump_svmlight_file(X, Y, str(theirs), multilabel=True, zero_based=zero_based, comment="hello")
    write_svmlight(ours, X, Y, zero_based=zero_based)
    for path in (theirs, ours):
        expected, tags = load_svmlight_file(
            str(path), multilabel=True, zero_based=zero_based, dtype=np.float32
        )
        read = read_svmlight(path)
        assert_same_matrix(read.X, sp.csr_array(expected))
        assert_array_equal(
            [set(row.indices.tolist()) for row in read.Y.positives],
            [set(map(int, t)) for t in tags],
        )
    assert_array_equal(read_svmlight(theirs).X.toarray(), X.astype(np.float32))


ROWS = b"3 4 5\n0,4 1:0.5 3:-2\n 0:1\n2\n"
EXPECTED_X = [[0, 0.5, 0, -2], [1, 0, 0, 0], [0, 0, 0, 0]]
EXPECTED_Y = [[1, 0, 0, 0, 1], [0, 0, 0, 0, 0], [0, 0, 1, 0, 0]]


@pytest.mark.parametrize(
    "content",
    [
        ROWS,
        ROWS.rstrip(b"\n"),
        ROWS.replace(b"\n", b"\r\n"),
        ROWS + b"\n\n",
        ROWS.replace(b" 0:1", b"0:1"),
        ROWS.replace(b" ", b"\t").replace(b"3\t4\t5", b"3 4 5"),
        ROWS.replace(b"1:0.5 3:-2", b"3:-2.00 1:+.5e0  "),
        ROWS.replace(b"0,4", b"4,0,4"),
    ],
    ids=["plain", "no end", "crlf", "blank end", "no blank", "tabs", "unsorted", "label twice"],
)
def test_the_same_rows_however_they_are_laid_out(content, tmp_path):
    path = tmp_path / "set.txt"
    path.write_bytes(content)
    read = read_xmlrepo(path)
    assert_array_equal(read.X.toarray(), EXPECTED_X)
    assert_array_equal(read.Y.to_array(), EXPECTED_Y)


def test_svmlight_skips_comments_and_empty_lines_but_not_empty_rows(tmp_path):
    path = tmp_path / "set.svm"
    path.write_text("# made by hand\n1 1:2 # a row\n\n \n   # not a row\n0,1#\n")
    read = read_svmlight(path)
    assert_array_equal(read.X.toarray(), [[2], [0], [0]])
    assert_array_equal(read.Y.to_array(), [[0, 1], [0, 0], [1, 1]])


@pytest.mark.parametrize("chunk", [1, 7, 64, 1 << 20])
def test_the_size_of_the_chunks_changes_nothing(chunk, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = sp.random_array((50, 20), density=0.3, rng=rng, dtype=np.float32, format="csr")
    Y = (rng.random((50, 9)) < 0.2).astype(np.int8)
    path = tmp_path / "set.txt"
    write_xmlrepo(path, X, Y)
    monkeypatch.setattr(rowparser, "CHUNK", chunk)
    read = read_xmlrepo(path)
    assert_same_matrix(read.X, X)
    assert Labels.complete(Y) == read.Y


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("x 1:2", "expected a label.*; got 'x 1:2'"),
        ("1, 1:2", "expected a label.*; got ' 1:2'"),
        ("1;2 1:2", "expected a comma, a blank or a colon.*; got ';2 1:2'"),
        ("1.5 1:2", "expected a comma, a blank or a colon.*; got '.5 1:2'"),
        ("-1 1:2", "expected a label.*; got '-1 1:2'"),
        ("1 2 1:2", "expected a feature and its value,.*; got '2 1:2'"),
        ("1 qid:3", "expected a feature and its value,.*; got 'qid:3'"),
        ("1 1:", "expected a number after the colon; got the end of the line"),
        ("1 1:nan", "expected a number after the colon; got 'nan'"),
        ("1 1:-", "expected a number after the colon; got '-'"),
        ("1 1:2e", "expected a number after the colon; got '2e'"),
        ("1 1:2x", "expected a blank after a value; got 'x'"),
        ("1 1:2.3.4", "expected a blank after a value; got '.4'"),
        ("5 1:2", "expected a label below 5; got '5 1:2'"),
        ("1 4:2", "expected a feature below 4; got '4:2'"),
        ("99999999999999999999 1:2", "expected a label below"),
        ("1 1:2 1:3", "expected each feature once; got 1 twice"),
        ("1 1:1e39", "expected values that float32 can hold"),
        ("1 1:2 # no", "expected a feature and its value,.*; got '# no'"),
        ("1 1:2\r3", "expected"),
    ],
)
@pytest.mark.parametrize("before", [0, 40])
def test_a_damaged_line_is_named_with_what_was_expected(
    line, expected, before, tmp_path, monkeypatch
):
    monkeypatch.setattr(rowparser, "CHUNK", 50)  # forty rows before it: in a later chunk
    path = tmp_path / "set.txt"
    path.write_text("\n".join(["100 4 5", *["1,2 0:1 2:3"] * before, line, "0 1:2\n"]), newline="")
    with pytest.raises(ValueError, match=rf"^set.txt, line {before + 2}: {expected}"):
        read_xmlrepo(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "line 1: expected \"n_samples n_features n_labels\".* got ''"),
        ("3 4\n", "line 1: expected"),
        ("3 4 x\n", "line 1: expected"),
        ("1 99999999999 3\n", "line 1: expected fewer than"),
        ("3 4 5\n0 1:1\n", "ends after 1 of the 3 rows"),
        (
            "1 4 5\n0 1:1\n0 1:1\n",
            "line 3: expected the end after the 1 rows that line 1 promises; got '0 1:1'",
        ),
    ],
)
def test_a_header_that_is_not_kept_is_one_sentence(content, message, tmp_path):
    path = tmp_path / "set.txt"
    path.write_text(content)
    with pytest.raises(ValueError, match=message):
        read_xmlrepo(path)


@pytest.mark.parametrize("read", [read_xmlrepo, read_svmlight])
def test_a_gzip_file_cut_short_is_one_sentence(read, tmp_path):
    path = tmp_path / "set.gz"
    path.write_bytes(gzip.compress(b"1000 1 1\n" + b"0 0:1\n" * 1000)[:-10])
    with pytest.raises(ValueError, match=r"^set.gz is not a whole gzip file"):
        read(path)


def test_svmlight_counts_comments_and_empty_lines_when_it_names_a_damaged_one(tmp_path):
    path = tmp_path / "set.svm.gz"
    path.write_bytes(gzip.compress(b"# one\n\n1 1:2\n# four\n1 3:4 3:5\n"))
    with pytest.raises(ValueError, match=r"^set.svm.gz, line 5: expected each feature once"):
        read_svmlight(path)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"zero_based": False}, "has a feature 0"),
        ({"n_features": 3}, "has feature 3, numbered from 0, but n_features is 3"),
        ({"n_features": 3, "zero_based": True}, "line 1: expected a feature below"),
        ({"n_labels": 1}, "line 1: expected a label below"),
    ],
)
def test_svmlight_widths_and_base_are_held_to(given, message, tmp_path):
    path = tmp_path / "set.svm"
    path.write_text("1 0:1 3:1\n")
    with pytest.raises(ValueError, match=message):
        read_svmlight(path, **given)


def test_what_the_format_cannot_say_is_not_written(tmp_path):
    masked = Labels.from_array([[1, np.nan]])
    for write in (write_xmlrepo, write_svmlight):
        with pytest.raises(ValueError, match="Y is masked"):
            write(tmp_path / "a", np.ones((1, 1)), masked)
        reviewed = Labels.positive_only([[1, 0]], no=[[0, 1]])
        with pytest.raises(ValueError, match="cannot say no among silence"):
            write(tmp_path / "a", np.ones((1, 1)), reviewed)
        with pytest.raises(ValueError, match="X holds NaN or infinity"):
            write(tmp_path / "a", np.array([[np.nan]]), [[1]])
        with pytest.raises(ValueError, match="X has 2 rows but Y has 1"):
            write(tmp_path / "a", np.ones((2, 1)), [[1]])
    assert list(tmp_path.iterdir()) == []
