import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.linear_model import Ridge as TheirRidge

from tacit import Labels, load
from tacit.baselines import EASE, Popularity
from tacit.baselines.ease import LabelLinks
from tacit.basics.files import read_arrays, write_arrays
from tacit.metrics import recall_at_k
from tacit.missing import Positives, hide

PLACES = ["memory", "three blocks", "streamed", "disk", "dask"]


def objective(B, Y, reg):
    """(1), entry by entry."""
    return 0.5 * np.sum((Y - Y @ B) ** 2) + 0.5 * reg * np.sum(B**2)


@pytest.mark.parametrize("reg", [0.5, 7.0, 1000.0])
def test_the_links_are_the_closed_form_of_the_paper(toy, reg):
    X, Y, _ = toy
    dense = Y.toarray().astype(float)
    P = np.linalg.inv(dense.T @ dense + reg * np.eye(9))
    wanted = np.eye(9) - P @ np.diag(1 / np.diag(P))
    assert_allclose(EASE(reg).fit(X, Y).model_.B, wanted, atol=1e-12)


def test_each_label_is_scikit_learns_ridge_regression_on_all_others(toy):
    X, Y, _ = toy
    dense, B = Y.toarray().astype(float), EASE(0.7).fit(X, Y).model_.B
    for j in range(9):
        others = np.arange(9) != j
        ridge = TheirRidge(alpha=0.7, fit_intercept=False).fit(dense[:, others], dense[:, j])
        assert_allclose(B[others, j], ridge.coef_, atol=1e-12)
    assert_array_equal(np.diag(B), 0)


def test_no_other_links_without_a_diagonal_have_a_lower_objective(toy):
    X, Y, _ = toy
    dense, off = Y.toarray().astype(float), ~np.eye(9, dtype=bool)
    B = EASE(2.0).fit(X, Y).model_.B

    def laid_out(b):
        links = np.zeros((9, 9))
        links[off] = b
        return links

    slope = lambda b: (dense.T @ (dense @ laid_out(b) - dense) + 2.0 * laid_out(b))[off]
    value = lambda b: objective(laid_out(b), dense, 2.0)
    found = minimize(value, np.zeros(72), jac=slope, method="L-BFGS-B", options={"ftol": 1e-15})
    assert_allclose(objective(B, dense, 2.0), found.fun, rtol=1e-9)
    assert_allclose(B[off], found.x, atol=1e-4)
    assert objective(np.eye(9) * 0.9, dense, 2.0) < objective(B, dense, 2.0)  # why it is kept at 0


def test_completion_adds_up_what_follows_from_each_label_that_was_said(toy):
    X, Y, _ = toy
    model = EASE(2.0).fit(X, Y)
    said = np.flatnonzero(np.diff(Y.indptr))
    scores = (Y @ model.model_.B)[said]
    found = model.complete(X[said], Y[said], k=9)
    assert len(found.row) == np.sum(Y[said].toarray() == 0)
    assert_allclose(found.probability, scores[found.row, found.label].clip(0, 1), atol=1e-12)
    assert (scores < 0).any()


def test_rows_without_a_label_and_new_rows_have_the_rate_of_each_label(toy):
    X, Y, _ = toy
    silent = (0 * Y[:3]).astype(np.int8)
    model, rates = EASE().fit(X, Y), Y.toarray().mean(axis=0)
    assert_allclose(model.predict_proba(X), np.tile(rates, (40, 1)), atol=1e-12)
    assert_array_equal(
        model.predict_proba(X), Popularity().fit(X, Labels.complete(Y)).predict_proba(X)
    )
    for Y_new, fold_in in ((silent, True), (Y[:3], False)):
        found = model.complete(X[:3], Y_new, k=9, fold_in=fold_in)
        assert_allclose(found.probability, rates[found.label], atol=1e-12)


def test_features_are_not_looked_at(toy):
    X, Y, _ = toy
    one, other = (EASE().fit(Z, Y) for Z in (X, np.zeros((40, 1))))
    assert_array_equal(one.model_.B, other.model_.B)
    assert_array_equal(one.complete(X, Y, 3), other.complete(np.zeros((40, 1)), Y, 3))


@pytest.mark.parametrize("where", PLACES)
def test_any_cut_into_blocks_gives_the_identical_links(blocks_of, toy, where):
    X, Y, _ = toy
    whole = EASE(3.0).fit(X, Labels.complete(Y)).model_
    parts = EASE(3.0).fit(blocks_of(X, Labels.complete(Y), where)).model_
    assert_array_equal(parts.B, whole.B)
    assert_array_equal(parts.shares, whole.shares)


def test_a_label_that_nobody_said_tells_nothing_and_is_told_by_none(toy):
    X, Y, _ = toy
    Y = Y.toarray()
    Y[:, 4] = 0
    model = EASE(3.0).fit(X, Y)
    assert_array_equal(model.model_.B[4], 0)
    assert_array_equal(model.model_.B[:, 4], 0)
    assert_array_equal(model.predict_proba(X)[:, 4], 0)


def test_the_larger_the_weight_the_smaller_the_links_and_in_the_end_they_count_who_met(toy):
    X, Y, _ = toy
    links = {reg: EASE(reg).fit(X, Y).model_.B for reg in (0.1, 1, 10, 1e7)}
    sizes = [np.sum(B**2) for B in links.values()]
    assert sizes == sorted(sizes, reverse=True)
    met = (Y.T @ Y).toarray()
    np.fill_diagonal(met, 0)
    assert_allclose(1e7 * links[1e7], met, atol=1e-3)


def test_hidden_labels_are_found_where_labels_go_together():
    rng = np.random.default_rng(0)
    groups = np.eye(6, dtype=bool)[rng.integers(0, 6, 500)]
    truth = np.repeat(groups, 3, axis=1)  # six times three labels that go together
    said, hidden = hide(truth, Positives(0.4), random_state=0)
    some = np.flatnonzero(np.diff(said.positives.indptr))
    X = np.zeros((len(some), 1))
    found = EASE(1.0).fit(X, said[some]).complete(X, said[some], k=2).by_row(len(some), 2)
    assert hidden[some].nnz > 400
    assert recall_at_k(Labels.complete(hidden[some]), found, 2) == 1


def test_float32_stays_float32(toy):
    X, Y, _ = toy
    model = EASE().fit(X.astype(np.float32), Y)
    assert model.model_.B.dtype == model.model_.shares.dtype == np.float32
    assert model.complete(X, Y, 3).probability.dtype == np.float32
    assert_allclose(model.model_.B, EASE().fit(X, Y).model_.B, atol=1e-7)


def test_only_what_was_said_of_a_row_takes_room_for_all_its_labels(toy):
    X, Y, _ = toy
    model = EASE().fit(X, Y)
    assert model.model_.width == 1
    assert model.model_.completion_width == 9
    assert_array_equal(
        model.top_k(X, 4).indices, np.argsort(-model.predict_proba(X), kind="stable")[:, :4]
    )


# ---- files


def test_a_saved_model_completes_alike(toy, tmp_path):
    X, Y, _ = toy
    model = EASE(2.0).fit(X, Y)
    model.save(tmp_path / "model.tacit")
    again = load(tmp_path / "model.tacit")
    assert isinstance(again.model_, LabelLinks)
    for fold_in in ("auto", False):
        wanted = model.complete(X, Y, 3, fold_in=fold_in)
        assert_array_equal(again.complete(X, Y, 3, fold_in=fold_in), wanted)


HOSTILE = {
    "links absent": lambda arrays: arrays.pop("B"),
    "links not square": lambda arrays: arrays.update(B=arrays["B"][:, :-1]),
    "links of fewer labels": lambda arrays: arrays.update(B=arrays["B"][:-1, :-1]),
    "links of integers": lambda arrays: arrays.update(B=arrays["B"].astype(np.int64)),
    "rates absent": lambda arrays: arrays.pop("shares"),
    "rates too few": lambda arrays: arrays.update(shares=arrays["shares"][:-1]),
    "rates in a column": lambda arrays: arrays.update(shares=arrays["shares"][:, None]),
    "rates of half floats": lambda arrays: arrays.update(
        shares=arrays["shares"].astype(np.float16)
    ),
    "rates of another type": lambda arrays: arrays.update(
        shares=arrays["shares"].astype(np.float32)
    ),
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_a_file_that_does_not_hold_together_is_refused(toy, tmp_path, change):
    X, Y, _ = toy
    path = tmp_path / "model.tacit"
    EASE().fit(X, Y).save(path)
    header, arrays = read_arrays(path)
    change(arrays)
    write_arrays(path, header, arrays)
    with pytest.raises(ValueError, match="does not hold a model of this tacit"):
        load(path)


# ---- what is refused


def test_links_beyond_the_limit_are_refused_with_the_alternative(toy, monkeypatch):
    X, Y, _ = toy
    monkeypatch.setattr("tacit.labels.DENSE_LIMIT", 81)
    EASE().fit(X, Y)
    monkeypatch.setattr("tacit.labels.DENSE_LIMIT", 80)
    with pytest.raises(ValueError, match=r"EASE's links between labels would lay out 9 × 9.*LEML"):
        EASE().fit(X, Y)


def test_masked_labels_are_refused_by_name(masked):
    with pytest.raises(ValueError, match="EASE cannot use masked labels, only positive-only or"):
        EASE().fit(*masked)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"reg": 0}, "reg must be a finite number above 0; got 0"),
        ({"threshold": -1}, "threshold must be a finite number of at least 0; got -1"),
        ({"k": 0}, "k must be None or an int of at least 1; got 0"),
    ],
)
def test_a_parameter_out_of_range_is_refused_by_name(toy, params, message):
    X, Y, _ = toy
    with pytest.raises(ValueError, match=f"^EASE: {message}$"):
        EASE(**params).fit(X, Y)
