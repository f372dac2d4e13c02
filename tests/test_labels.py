"""Laws of Labels: what is said is kept, what is unsaid stays unsaid, and nothing else changes."""

import copy
import io
import pickle

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV, KFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tacit import Labels
from tacit.labels import DENSE_LIMIT, as_labels

law = settings(max_examples=60, deadline=None)  # a busy machine must not break a law
nan = np.nan

Y = np.array([[1, 0, 1, 0], [0, 0, 0, 0], [0, 1, 0, 0]])
KNOWN = np.array([[1, 1, 1, 0], [0, 1, 0, 0], [0, 1, 0, 0]])
NO = np.array([[0, 1, 0, 0], [0, 0, 0, 0], [1, 0, 0, 1]])
NAMES = ["cli", "gtk", "python", "web"]
KINDS = {
    "complete": Labels.complete(Y, classes=NAMES),
    "masked": Labels.masked(Y, KNOWN, classes=NAMES),
    "positive-only": Labels.positive_only(Y, classes=NAMES),
    "reviewed": Labels.positive_only(Y, no=NO, classes=NAMES),
}
ARRAYS = {
    "complete": Y.astype(float),
    "masked": np.array([[1, 0, 1, nan], [nan, 0, nan, nan], [nan, 1, nan, nan]]),
    "positive-only": np.where(Y == 1, 1.0, nan),
    "reviewed": np.where(Y == 1, 1.0, np.where(NO == 1, 0.0, nan)),
}
KIND_OF = {name: "positive-only" if name == "reviewed" else name for name in KINDS}


@pytest.fixture(params=list(KINDS))
def kind(request):
    return request.param


# ---- the three kinds, and positive-only labels that somebody has reviewed


def test_each_kind_says_of_an_unstored_entry_what_it_should(kind):
    labels = KINDS[kind]
    assert labels.kind == KIND_OF[kind]
    assert_array_equal(labels.to_array(), ARRAYS[kind])
    assert_array_equal(np.asarray(labels), ARRAYS[kind])
    assert_array_equal(labels.to_sparse().toarray(), Y)
    assert (labels.shape, labels.n_samples, labels.n_labels, len(labels)) == ((3, 4), 3, 4, 3)


def test_said_is_the_entries_that_are_not_nan(kind):
    said = KINDS[kind].said()
    expected = ~np.isnan(ARRAYS[kind])
    assert_array_equal(np.ones(Y.shape) if said is None else said.toarray(), expected)


def test_labels_can_be_read_under_another_assumption(kind):
    assert KINDS[kind].as_complete() == KINDS["complete"]
    silence_unread = "reviewed" if kind == "reviewed" else "positive-only"
    assert KINDS[kind].as_positive_only() == KINDS[silence_unread]


def test_labels_of_different_kind_names_or_entries_differ():
    complete = KINDS["complete"]
    assert complete != KINDS["positive-only"]
    assert complete != Labels.complete(Y)
    assert complete != Labels.complete(1 - Y, classes=NAMES)
    assert KINDS["masked"] != Labels.masked(Y, np.ones_like(Y), classes=NAMES)
    assert KINDS["reviewed"] != KINDS["positive-only"]
    assert KINDS["reviewed"] != Labels.positive_only(Y, no=NO[::-1] * (1 - Y), classes=NAMES)
    assert KINDS["reviewed"][1:2] == KINDS["positive-only"][1:2], "a row without a no"
    assert Labels.positive_only(Y, no=0 * Y, classes=NAMES) == KINDS["positive-only"]
    assert complete == Labels.complete(sp.csc_matrix(Y), classes=NAMES)
    assert complete != "labels"


@law
@given(st.data())
def test_an_array_of_zero_one_and_nan_survives_the_round_trip(data):
    shape = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 5))
    A = data.draw(arrays(np.float64, shape, elements=st.sampled_from([0.0, 1.0, nan])))
    if np.isnan(A).all():
        with pytest.raises(ValueError, match="every entry of the array is NaN"):
            Labels.from_array(A)
    else:
        labels = Labels.from_array(A)
        assert_array_equal(labels.to_array(), A)
        assert labels.kind == ("masked" if np.isnan(A).any() else "complete")


# ---- constructors


@pytest.mark.parametrize(
    "form",
    [
        Y.tolist(),
        Y.astype(bool),
        Y.astype(np.float32),
        Y.astype(object),
        sp.csr_matrix(Y),
        sp.csc_array(Y),
        sp.coo_array(Y),
        sp.lil_array(Y),
        pd.DataFrame(Y, columns=NAMES),
        pl.DataFrame(Y, schema=NAMES),
        Labels.complete(Y, classes=NAMES),
    ],
    ids=lambda form: f"{type(form).__module__}.{type(form).__name__}",
)
def test_every_form_of_a_zero_one_matrix_gives_the_same_labels(form):
    assert Labels.complete(form, classes=NAMES) == KINDS["complete"]
    assert Labels.positive_only(form, classes=NAMES) == KINDS["positive-only"]
    assert Labels.masked(form, sp.csr_array(KNOWN), classes=NAMES) == KINDS["masked"]
    assert as_labels(form).as_complete().positives.dtype == bool


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": [1, None], "b": [0, 1]}),
        pd.DataFrame({"a": [1, nan], "b": [False, True]}),
        pd.DataFrame({"a": [True, None], "b": [False, True]}),
        pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "b": [0, 1]}),
        pd.DataFrame({"a": pd.array([True, None], dtype="boolean"), "b": [False, True]}),
        pl.DataFrame({"a": [1, None], "b": [0, 1]}),
        pl.DataFrame({"a": [1.0, nan], "b": [0, 1]}),
        pl.DataFrame({"a": [True, None], "b": [False, True]}),
    ],
)
def test_frames_name_the_labels_and_their_empty_cells_are_unsaid(frame):
    labels = Labels.from_array(frame)
    assert labels.kind == "masked"
    assert labels.classes.tolist() == ["a", "b"]
    assert_array_equal(labels.to_array(), [[1, 0], [nan, 1]])


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": [1, 0], "b": [False, True]}),
        pl.DataFrame({"a": [1, 0], "b": [False, True]}),
    ],
)
@pytest.mark.parametrize("make", [Labels.complete, Labels.positive_only, Labels.from_array])
def test_frames_of_numbers_and_booleans_bring_their_names_to_every_constructor(make, frame):
    labels = make(frame)
    assert_array_equal(labels.to_sparse().toarray(), np.eye(2))
    assert labels.classes.tolist() == ["a", "b"]
    assert make(frame, classes=["x", "y"]).classes.tolist() == ["x", "y"]


def test_labels_made_of_labels_keep_their_names():
    assert Labels.complete(KINDS["masked"]) == KINDS["complete"]
    assert Labels.positive_only(KINDS["reviewed"]) == KINDS["reviewed"]


def test_sets_of_names_are_positive_only_unless_told_otherwise():
    sets = [["python", "cli", "cli"], set(), ("gtk",)]
    labels = Labels.from_sets(sets)
    assert labels.kind == "positive-only"
    assert labels.classes.tolist() == ["cli", "gtk", "python"]
    assert_array_equal(labels.to_sparse().toarray(), [[1, 0, 1], [0, 0, 0], [0, 1, 0]])
    assert Labels.from_sets(iter(sets), kind="complete").kind == "complete"
    assert_array_equal(
        Labels.from_sets(sets, ["python", "web", "gtk", "cli"]).to_sparse().toarray(),
        [[1, 0, 0, 1], [0, 0, 0, 0], [0, 0, 1, 0]],
    )


def test_a_plain_matrix_is_read_under_the_kind_asked_for_and_labels_stay_what_they_are(kind):
    assert as_labels(Y).kind == "complete"
    assert as_labels(Y, "positive-only").kind == "positive-only"
    assert as_labels(ARRAYS["masked"], "positive-only").kind == "masked"
    assert as_labels(KINDS[kind], "positive-only") is KINDS[kind]
    assert as_labels([1, 0, 1]).shape == (3, 1)


def test_the_callers_matrix_is_never_changed():
    """Explicit zeros, duplicates and unsorted indices are mended in our copy alone."""
    data, indices, indptr = np.array([1, 0, 1, 1]), np.array([2, 1, 0, 0]), np.array([0, 4, 4])
    for make in sp.csr_array, sp.csr_matrix, sp.csc_array:
        theirs = make((data.copy(), indices.copy(), indptr.copy()), shape=None)
        for labels in (
            Labels.complete(theirs),
            Labels.positive_only(theirs),
            Labels.masked(theirs, theirs),
            as_labels(theirs),
        ):
            assert labels.positives.nnz == 2
            assert labels.positives.has_canonical_format
            assert not np.shares_memory(labels.positives.indices, theirs.indices)
        assert_array_equal(theirs.data, data)
        assert_array_equal(theirs.indices, indices)
        assert_array_equal(theirs.indptr, indptr)


def test_a_dense_array_or_a_frame_is_never_changed():
    A = ARRAYS["masked"].copy()
    frame = pd.DataFrame(A)
    Labels.from_array(A), Labels.from_array(frame)
    assert_array_equal(A, ARRAYS["masked"])
    assert_array_equal(frame.to_numpy(), ARRAYS["masked"])


def test_an_observed_no_survives_what_prunes_stored_zeros():
    labels = copy.deepcopy(KINDS["masked"])
    labels.positives.eliminate_zeros()
    labels.observed.eliminate_zeros()
    assert_array_equal(labels.to_array(), ARRAYS["masked"])


# ---- rows


@pytest.mark.parametrize(
    "rows",
    [
        slice(1, None),
        slice(None, None, -1),
        slice(0, 0),
        np.array([2, 0, 0]),
        np.array([-1]),
        [1, 2],
        np.array([True, False, True]),
        [False, True, True],
        np.zeros(3, bool),
        np.array([], dtype=int),
    ],
    ids=str,
)
def test_rows_slice_as_those_of_the_array_do(kind, rows):
    some = KINDS[kind][rows]
    assert_array_equal(some.to_array(), ARRAYS[kind][rows])
    assert some == KINDS[kind][rows, ...]
    assert some.kind == KIND_OF[kind]
    assert some.classes.tolist() == NAMES
    assert some.positives.has_canonical_format


def test_one_row_is_still_labels(kind):
    for i in 0, np.int64(2), -1:
        assert_array_equal(KINDS[kind][i].to_array(), ARRAYS[kind][[i]])
    assert [len(row) for row in KINDS[kind]] == [1, 1, 1]


def test_labels_do_not_slice_by_columns(kind):
    for columns in 0, np.array([0, 1]), slice(2):
        with pytest.raises(IndexError, match="slice by rows alone"):
            KINDS[kind][:, columns]


# ---- a value


def test_labels_cannot_be_changed(kind):
    labels = KINDS[kind]
    for name in "kind", "positives", "observed", "classes", "noes", "other":
        with pytest.raises(AttributeError, match=f"cannot be changed.* setting {name}"):
            setattr(labels, name, None)
    with pytest.raises(TypeError, match="unhashable"):
        hash(labels)


def test_pickle_joblib_and_copy_give_equal_labels(kind):
    labels = KINDS[kind]
    assert pickle.loads(pickle.dumps(labels)) == labels
    assert copy.deepcopy(labels) == labels
    file = io.BytesIO()
    joblib.dump(labels, file)
    file.seek(0)
    assert joblib.load(file) == labels


def test_the_summary_and_its_html_tell_what_was_said():
    labels = Labels.masked(Y, KNOWN, classes=["<b>", "gtk", "python", "web"])
    facts = labels.summary()
    for fact in (
        "masked (what was not observed is unknown)",
        "3 × 4",
        "3 (25.000%)",
        "7 (58.3%)",
        "mean 1.00, median 1, max 2; 1 rows have none",
        "mean 0.8, median 1, max 1; 1 labels have none",
        "<b> (1), gtk (1), python (1), web (0)",
    ):
        assert fact in facts
    assert [line.split()[-1] for line in facts.splitlines() if line.startswith("said no")] == ["2"]
    html = labels._repr_html_()
    assert "&lt;b&gt; (1)" in html
    assert "<b>" not in html
    assert "58.3%" in html
    assert repr(labels) == "Labels(masked, 3 × 4, 3 of 5 observed said yes)"
    assert repr(KINDS["reviewed"]) == "Labels(positive-only, 3 × 4, 3 said yes, 3 said no)"


@pytest.mark.parametrize(
    ("which", "no", "unsaid"), [("complete", 9, 0), ("positive-only", 0, 9), ("reviewed", 3, 6)]
)
def test_the_summary_counts_silence_as_the_kind_does(which, no, unsaid):
    facts = {line[:22].strip(): line[22:].split()[0] for line in KINDS[which].summary().split("\n")}
    assert (facts["said no"], facts["unsaid"]) == (str(no), str(unsaid))


def test_no_rows_have_a_summary_too(kind):
    assert "0 × 4" in KINDS[kind][:0].summary()


# ---- scikit-learn


class Popularity(BaseEstimator):
    """Scores each label by how often it was said; `power` only gives a search something to do."""

    def __init__(self, power=1.0):
        self.power = power

    def fit(self, X, y):
        assert isinstance(y, Labels)
        assert len(X) == len(y)
        self.kind_, self.rate_ = y.kind, y.positives.sum(axis=0) / len(y)
        return self

    def score(self, X, y):
        assert isinstance(y, Labels)
        return self.power * float(y.positives.sum(axis=1).mean())


def test_labels_split_with_x_row_by_row(kind):
    X = np.arange(3)[:, None]
    _, X_test, y_train, y_test = train_test_split(X, KINDS[kind], test_size=2, random_state=0)
    assert isinstance(y_train, Labels)
    assert_array_equal(y_test.to_array(), ARRAYS[kind][X_test[:, 0]])


def test_labels_are_y_in_a_pipeline_and_a_grid_search(kind):
    many = KINDS[kind][np.arange(30) % 3]
    X = np.random.default_rng(0).normal(size=(30, 2))
    search = GridSearchCV(
        make_pipeline(StandardScaler(), Popularity()),
        {"popularity__power": [1.0, 2.0]},
        cv=KFold(5),
    ).fit(X, many)
    assert search.best_params_ == {"popularity__power": 2.0}
    assert search.best_estimator_[-1].kind_ == KIND_OF[kind]
    assert_array_equal(search.best_estimator_[-1].rate_, np.tile(Y, (10, 1)).mean(axis=0))


# ---- bad input


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Labels.complete([[0, 2]]), "Y must hold 0 and 1; got 2; give only those"),
        (lambda: Labels.positive_only(sp.csr_array([[0.5]])), r"Y must hold 0 and 1; got 0\.5"),
        (
            lambda: Labels.complete([[0, nan]]),
            r"Y must hold 0 and 1; got nan; use Labels\.from",
        ),
        (lambda: Labels.from_array([[0, -1, nan]]), r"Y must hold 0 and 1; got -1\.0"),
        (lambda: Labels.masked(Y, 2 * KNOWN), "observed must hold 0 and 1; got 2"),
        (lambda: Labels.complete([["a"]]), r"Y holds values that are not .* Labels\.from_sets"),
        (lambda: Labels.from_array([["1"]]), "the array holds values that are not numbers"),
        (lambda: Labels.from_array(pd.DataFrame({"a": ["x"]})), "the array holds values that are"),
        (lambda: Labels.complete([1, 0]), r"Y must have rows and columns; got 1 dimension"),
        (lambda: Labels.masked(Y, KNOWN[:2]), r"shape \(2, 4\) but Y has shape \(3, 4\)"),
        (lambda: Labels.masked(Y, 1 - Y), "observed misses 3 entries that Y says yes to"),
        (lambda: Labels.masked(0 * Y, 0 * Y), "observed has no entry"),
        (lambda: Labels.positive_only(0 * Y), "Y says yes to no entry"),
        (lambda: Labels.positive_only(Y, no=Y), "no denies 3 entries that Y says yes to"),
        (lambda: Labels.positive_only(Y, no=NO[:2]), r"no has shape \(2, 4\) but Y has shape"),
        (lambda: Labels.positive_only(Y, no=-NO), "no must hold 0 and 1; got -1"),
        (lambda: Labels.from_array(nan * Y), "every entry of the array is NaN"),
        (lambda: Labels.complete(Y, classes=["a"]), "classes names 1 labels but Y has 4 columns"),
        (lambda: Labels.complete(Y, classes=list("abca")), "classes names 'a' more than once"),
        (lambda: Labels.from_sets([["a"]], ["a", "b", "a"]), "classes names 'a' more than once"),
        (lambda: Labels.from_sets([["a"], ["c"]], ["a"]), "1 names are not in classes, 'c' first"),
        (lambda: Labels.from_sets([["a"], "gtk"]), "row 1 is the string 'gtk'"),
        (lambda: Labels.from_sets([["a", 3]]), "row 0 names a label that is not a string"),
        (lambda: Labels.from_sets([["a"]], kind="masked"), "kind must be .*; got 'masked'"),
    ],
)
def test_bad_input_is_told_in_one_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


def test_too_much_is_never_laid_out_densely():
    n = int(DENSE_LIMIT**0.5) + 1
    labels = Labels.complete(sp.csr_array(([1], ([0], [0])), shape=(n, n)))
    with pytest.raises(ValueError, match=r"Labels.to_array would lay out .* use to_sparse\(\)"):
        labels.to_array()
    assert labels[:10].to_array().shape == (10, n)
