import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.neighbors import NearestNeighbors

import tacit.models.nearest_rows as neighbours
from tacit import Labels, load
from tacit.baselines import Neighbours
from tacit.baselines.neighbours import NearestRows
from tacit.basics.files import read_arrays, write_arrays
from tacit.blocks import MemoryBlocks, Rows
from tacit.models import Model

FORMS = {"sparse": sp.csr_array, "dense": lambda X: X.toarray()}
PLACES = ["memory", "three blocks", "streamed", "disk", "dask"]


@pytest.fixture
def signed():
    """Rows that point to each other and away from each other, none of them alike."""
    rng = np.random.default_rng(3)
    X = sp.random_array(
        (50, 12), density=0.5, rng=rng, data_sampler=rng.standard_normal, format="csr"
    )
    observed = rng.random((50, 6)) < 0.3
    observed[:, 4] = False  # a label that nobody looked at
    return X, (rng.random((50, 6)) < 0.5) & observed, observed


def votes(C, k):
    """(1), row by row."""
    w = np.zeros_like(C)
    for i, row in enumerate(C):
        near = np.argsort(-row, kind="stable")[:k]
        w[i, near] = np.maximum(row[near], 0)
    return w


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("k", [1, 4, 15])
def test_scores_are_the_votes_of_scikit_learns_neighbours_weighted_by_their_cosine(toy, form, k):
    X, Y, _ = toy  # row 5 is empty
    distance, near = NearestNeighbors(n_neighbors=k, metric="cosine").fit(X[10:]).kneighbors(X)
    w = np.maximum(1 - distance, 0) * (1 - distance > 1e-12)
    total = w.sum(axis=1, keepdims=True)
    wanted = np.einsum("ij,ijl->il", w, Y.toarray()[10:][near]) / np.where(total > 0, total, 1)
    model = Neighbours(k).fit(form(X[10:]), Y[10:])
    assert_allclose(model.decision_function(form(X)), wanted, atol=1e-12)
    assert_array_equal(model.decision_function(form(X))[5], 0)
    assert (wanted[:5] > 0).any()


@pytest.mark.parametrize("k", [3, 20, 1000])
def test_rows_that_point_away_have_no_vote(signed, k):
    X, Y, _ = signed
    w = votes(cosine_similarity(X), k)
    wanted = w @ Y / w.sum(axis=1, keepdims=True)
    assert (cosine_similarity(X) < 0).any()
    assert_allclose(Neighbours(k).fit(X, Y).decision_function(X), wanted, atol=1e-12)


@pytest.mark.parametrize("k", [2, 6, 1000])
def test_of_masked_labels_only_those_who_know_have_a_vote(signed, k):
    X, Y, observed = signed
    w = votes(cosine_similarity(X), k)
    wanted, unheard = np.zeros(Y.shape), 0
    for i, j in np.ndindex(*Y.shape):
        told = w[i] @ observed[:, j]
        unheard += told == 0
        known = max(observed[:, j].sum(), 1)
        wanted[i, j] = w[i] @ Y[:, j] / told if told > 0 else Y[:, j].sum() / known
    model = Neighbours(k).fit(X, Labels.masked(Y, observed))
    assert unheard > (50 if k < 20 else 0)
    assert_allclose(model.decision_function(X), wanted, atol=1e-12)
    rates = Y.sum(axis=0) / np.maximum(observed.sum(axis=0), 1)
    assert_allclose(model.decision_function(0 * X[:1])[0], rates)  # nothing is near


def test_where_everything_is_known_a_mask_changes_nothing(toy):
    X, Y, _ = toy
    some = np.flatnonzero(np.diff(X.indptr))
    masked = Labels.masked(Y, np.ones(Y.shape))
    scores = Neighbours(4).fit(X, masked).decision_function(X[some])
    assert_allclose(scores, Neighbours(4).fit(X, Y).decision_function(X[some]), atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_of_equal_rows_the_earlier_vote(form, dtype):
    rng = np.random.default_rng(0)
    kind = rng.permutation(np.repeat(np.arange(13), 79))
    X = form(sp.csr_array((rng.random((13, 37)) - 0.3)[kind].astype(dtype)))
    Y = rng.random((len(kind), 3)) < 0.5
    wanted = np.array([Y[kind == c][:50].mean(axis=0) for c in range(13)])
    model = Neighbours(50).fit(X, Y)
    for rows in (slice(1), slice(7), slice(None)):  # BLAS rounds by how many there are
        assert_allclose(model.decision_function(X[rows]), wanted[kind[rows]], rtol=1e-4)


@pytest.mark.parametrize("labels", ["complete", "masked"])
def test_sparse_and_dense_rows_vote_alike_on_rows_of_either_form(signed, labels):
    X, Y, observed = signed
    labels = Labels.complete(Y) if labels == "complete" else Labels.masked(Y, observed)
    wanted = Neighbours(4).fit(X, labels).decision_function(X)
    for fitted, new in ((X.toarray(), X.toarray()), (X, X.toarray()), (X.toarray(), X)):
        found = Neighbours(4).fit(fitted, labels).decision_function(new)
        assert_allclose(found, wanted, atol=1e-12)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("where", PLACES)
def test_the_model_is_the_rows_wherever_they_are(blocks_of, masked, where, form):
    X, labels = masked
    one = Neighbours(4).fit(form(X), labels).model_
    found = Neighbours(4).fit(blocks_of(form(X), labels, where)).model_
    for name, array in one.arrays().items():
        assert_array_equal(found.arrays()[name], array)


def test_rows_stay_as_they_came_in_the_model_and_in_its_file(masked):
    X, labels = masked
    arrays = Neighbours().fit(X, labels).model_.arrays()
    assert arrays["X_data"].size == X.nnz
    assert arrays["Y_indices"].size == labels.positives.nnz
    assert arrays["known_indices"].size == labels.observed.nnz
    assert not any(array.ndim > 1 for array in arrays.values())
    assert Neighbours().fit(X.toarray(), labels).model_.arrays()["X"].shape == X.shape


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_few_cosines_are_laid_out_at_a_time_to_the_same_scores(signed, form, monkeypatch):
    X, Y, observed = signed
    labels = Labels.masked(Y, observed)
    wanted = Neighbours(4).fit(X, labels).decision_function(X)
    laid_out, cosines = [], NearestRows._cosines

    def counted(self, part):
        found = cosines(self, part)
        laid_out.append(found.size)
        return found

    monkeypatch.setattr(NearestRows, "_cosines", counted)
    monkeypatch.setattr(neighbours, "_COSINES", 160)
    model = Neighbours(4).fit(form(X), labels)
    assert_allclose(model.decision_function(form(X)), wanted, atol=1e-12)
    assert max(laid_out) == 150  # three rows of fifty
    assert sum(laid_out) == 50 * 50
    laid_out.clear()
    monkeypatch.setattr(neighbours, "_COSINES", 1)
    assert_allclose(model.decision_function(form(X)), wanted, atol=1e-12)
    assert max(laid_out) == 50  # one row, at the least


def test_without_normalize_inner_products_vote(signed):
    X, Y, _ = signed
    w = votes((X @ X.T).toarray(), 4)
    wanted = w @ Y / w.sum(axis=1, keepdims=True)
    model = Neighbours(4, normalize=None).fit(X, Y)
    assert_allclose(model.decision_function(X), wanted, atol=1e-12)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_float32_stays_float32_in_rows_votes_and_scores(masked, form):
    X, labels = masked
    model = Neighbours(4).fit(form(X.astype(np.float32)), labels)
    kept = [array for array in model.model_.arrays().values() if array.dtype.kind == "f"]
    assert [array.dtype for array in kept] == [np.float32]
    assert model.model_.Y.dtype == model.model_.known.dtype == np.float32
    assert model.predict_proba(X).dtype == np.float32


def test_the_probability_is_the_score_where_rounding_has_not_left_the_unit_interval(signed):
    X, Y, _ = signed
    model = Neighbours(1).fit(X, Y)  # one row says yes or no
    assert_allclose(np.unique(model.predict_proba(X)), [0, 1])
    assert_array_equal(model.model_.probability(np.array([-1e-9, 0.3, 1 + 1e-9])), [0, 0.3, 1])


def test_a_row_of_the_fit_is_its_own_nearest(signed):
    X, Y, _ = signed
    assert_allclose(Neighbours(1).fit(X, Y).predict(X).toarray(), Y)


def test_labels_that_neighbours_have_are_completed_first():
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 5, 300)
    X = np.eye(5)[kind] + 0.1 * rng.random((300, 5))
    truth = np.eye(5, dtype=bool)[kind]
    said = truth & (rng.random(truth.shape) < 0.5)
    found = Neighbours(30).fit(X, said).complete(X, said, k=1)
    silent = np.flatnonzero(~said.any(axis=1))
    best = found.label[np.isin(found.row, silent)]
    assert_array_equal(best, kind[found.row[np.isin(found.row, silent)]])


# ---- files


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("kind", Neighbours.label_kinds)
def test_a_saved_model_votes_alike(toy, form, kind, tmp_path):
    X, Y, observed = toy
    labels = {
        "positive-only": lambda: Labels.positive_only(Y),
        "complete": lambda: Labels.complete(Y),
        "masked": lambda: Labels.masked(Y * observed, observed),
    }[kind]()
    model = Neighbours(4).fit(form(X), labels)
    model.save(tmp_path / "model.tacit")
    again = load(tmp_path / "model.tacit")
    assert isinstance(again.model_, NearestRows)
    assert isinstance(again.model_, Model)
    assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert_array_equal(again.complete(X, labels, 3), model.complete(X, labels, 3))


def test_rows_without_a_feature_or_a_label_are_saved_too(tmp_path):
    X, Y = sp.csr_array((3, 2)), Labels.complete(np.zeros((3, 2)))
    model = Neighbours().fit(X, Y)
    model.save(tmp_path / "model.tacit")
    assert_array_equal(load(tmp_path / "model.tacit").decision_function(X), np.zeros((3, 2)))


def array(name, change):
    return lambda header, arrays: arrays.update({name: change(arrays[name].copy())})


def entry(name, where, value):
    def change(old):
        old[where] = value
        return old

    return array(name, change)


def number(**values):
    return lambda header, arrays: header["model"].update(values)


def empty(header, arrays):
    """No rows at all."""
    for name in list(arrays):
        arrays[name] = np.zeros(1, np.int64) if name.endswith("indptr") else arrays[name][:0]


HOSTILE = {
    "a feature too large": entry("X_indices", 0, 10**6),
    "a feature below 0": entry("X_indices", 0, -1),
    "features of floats": array("X_indices", lambda a: a.astype(np.float64)),
    "features too few": array("X_indices", lambda a: a[:-1]),
    "features absent": lambda header, arrays: arrays.pop("X_indices"),
    "a label too large": entry("Y_indices", 0, 10**6),
    "a label below 0": entry("Y_indices", 0, -1),
    "labels absent": lambda header, arrays: arrays.pop("Y_indices"),
    "a known label too large": entry("known_indices", 0, 9),
    "known labels absent": lambda header, arrays: arrays.pop("known_indptr"),
    "a yes that is unknown": lambda header, arrays: arrays.update(
        known_indices=arrays["known_indices"][:0], known_indptr=0 * arrays["known_indptr"]
    ),
    "a pointer that falls": entry("X_indptr", 1, 10**6),
    "a pointer below 0": entry("Y_indptr", -1, -1),
    "a pointer too short": array("Y_indptr", lambda a: a[:-1]),
    "a pointer of floats": array("X_indptr", lambda a: a.astype(np.float64)),
    "a pointer of two dimensions": array("X_indptr", lambda a: a[:, None]),
    "an empty pointer": array("X_indptr", lambda a: a[:0]),
    "no rows": empty,
    "values of half floats": array("X_data", lambda a: a.astype(np.float16)),
    "values too few": array("X_data", lambda a: a[:-1]),
    "values absent": lambda header, arrays: arrays.pop("X_data"),
    "no neighbour": number(n_neighbors=0),
    "half a neighbour": number(n_neighbors=0.5),
    "neighbours true": number(n_neighbors=True),
    "neighbours absent": lambda header, arrays: header["model"].pop("n_neighbors"),
    "masked a word": number(masked="no"),
    "another kind": number(kind="LowRank"),
}
HOSTILE_DENSE = {
    "rows too narrow": array("X", lambda a: a[:, :-1]),
    "rows too few": array("X", lambda a: a[:-1]),
    "rows of integers": array("X", lambda a: a.astype(np.int64)),
    "rows of one dimension": array("X", lambda a: a[0]),
}


@pytest.mark.parametrize(
    ("form", "change"),
    [
        pytest.param(FORMS[form], change, id=name)
        for cases, form in ((HOSTILE, "sparse"), (HOSTILE_DENSE, "dense"))
        for name, change in cases.items()
    ],
)
def test_a_file_that_does_not_hold_together_is_refused(masked, tmp_path, form, change):
    X, labels = masked
    path = tmp_path / "model.tacit"
    Neighbours(4).fit(form(X), labels).save(path)
    load(path)
    header, arrays = read_arrays(path)
    change(header, arrays)
    write_arrays(path, header, arrays)
    with pytest.raises(ValueError, match="does not hold a model of this tacit"):
        load(path)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_rows_of_a_file_that_are_no_numbers_are_not_followed_out_of_bounds(toy, form, value):
    X, Y, _ = toy
    model = Neighbours(4).fit(form(X), Y)
    header, arrays = model.contents()
    name = "X_data" if "X_data" in arrays else "X"
    arrays[name] = np.full_like(arrays[name], value)
    again = Neighbours(4).restore(header, arrays)
    with np.errstate(all="ignore"):
        votes = again.model_._votes(next(again._blocks(X, 9)))
    assert votes.indices.min() >= 0
    assert votes.indices.max() < 40


# ---- what is refused


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_neighbors": 0}, "n_neighbors must be an int of at least 1; got 0"),
        ({"n_neighbors": 2.0}, r"n_neighbors must be an int of at least 1; got 2\.0"),
        ({"normalize": "l1"}, "normalize must be one of 'auto', 'l2', None; got 'l1'"),
        ({"k": 0}, "k must be None or an int of at least 1; got 0"),
    ],
)
def test_a_parameter_out_of_range_is_refused_by_name(toy, params, message):
    X, Y, _ = toy
    with pytest.raises(ValueError, match=f"^Neighbours: {message}$"):
        Neighbours(**params).fit(X, Y)


def test_a_plain_matrix_is_read_as_positive_only(toy):
    X, Y, _ = toy
    assert Neighbours().fit(X, Y).labels_kind_ == "positive-only"
    rows = MemoryBlocks.from_rows(Rows(X, Labels.complete(Y)))
    assert Neighbours().fit(rows).labels_kind_ == "complete"
