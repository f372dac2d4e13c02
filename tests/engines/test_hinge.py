"""Dual coordinate descent for the squared hinge, against LIBLINEAR and the route of Newton."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.svm import LinearSVC

from tacit.baselines import BinaryRelevance
from tacit.blocks import MemoryBlocks, Rows
from tacit.engines import hinge
from tacit.labels import Labels


def problem(n=300, d=80, n_labels=6, seed=0):
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=0.1, rng=rng, format="csr")
    Z = X @ rng.standard_normal((d, n_labels)) + 0.3 * rng.standard_normal((n, n_labels))
    return X, Labels.complete(np.quantile(Z, 0.8, axis=0) < Z)


def model(**params):
    start = dict(loss="squared_hinge", reg=0.3, tol=1e-12, normalize=None, fit_intercept=False)
    return BinaryRelevance(**start | params)


@pytest.fixture
def by_newton(monkeypatch):
    """What the other route finds."""

    def fit(X, Y, **params):
        with monkeypatch.context() as patched:
            patched.setattr(
                "tacit.baselines.binary_relevance.suits_dual_descent", lambda blocks: False
            )
            return model(**params).fit(X, Y)

    return fit


@pytest.mark.parametrize("reg", [0.01, 0.3, 10.0])
def test_in_float64_it_is_the_reference_of_liblinear(reg):
    X, Y = problem()
    ours = model(reg=reg).fit(X, Y)
    for j in range(Y.n_labels):
        theirs = LinearSVC(
            C=1 / (2 * reg), dual=False, fit_intercept=False, tol=1e-12, max_iter=10_000
        )
        wanted = theirs.fit(X, Y.to_array()[:, j]).coef_[0]
        assert_allclose(ours.model_.W[:, j], wanted, atol=1e-5 * np.abs(wanted).max())


@pytest.mark.parametrize("masked", [False, True])
def test_newton_finds_the_same_and_no_less(by_newton, masked):
    X, Y = problem()
    if masked:
        seen = np.random.default_rng(1).random(Y.shape) < 0.6
        seen[:, 2] = False  # a label that nobody looked at
        Y = Labels.masked(Y.to_array() * seen, seen)
    ours, theirs = model().fit(X, Y), by_newton(X, Y)
    assert_allclose(ours.model_.W, theirs.model_.W, atol=1e-5)
    assert_allclose(ours.history_[-1], theirs.history_[-1], rtol=1e-10)


@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-5])
def test_the_objective_is_within_tol_of_its_minimum_and_no_better_than_asked(tol):
    X, Y = problem()
    least, found = (model(reg=0.01, tol=t).fit(X, Y).history_[-1] for t in (1e-12, tol))
    assert least <= found <= (1 + tol) * least


def test_blocks_and_float32_give_the_same():
    X, Y = problem()
    wanted = model().fit(X, Y).model_.W
    blocks = MemoryBlocks.from_rows(Rows(X, Y), 3)
    assert_array_equal(model().fit(blocks).model_.W, wanted)
    single = model(tol=1e-6).fit(X.astype(np.float32), Y).model_.W
    assert single.dtype == np.float32
    assert_allclose(single, wanted, atol=1e-3)


def test_newton_goes_on_where_the_epochs_are_not_enough(monkeypatch):
    X, Y = problem()
    wanted = model().fit(X, Y).model_.W
    monkeypatch.setattr(hinge, "_EPOCHS", 1)
    short = model().fit(X, Y)
    assert len(short.history_) > 1
    assert_allclose(short.model_.W, wanted, atol=1e-5)


def test_dense_features_shards_and_other_devices_go_by_newton(tmp_path, blocks_of, monkeypatch):
    X, Y = problem(60, 10)
    monkeypatch.setattr(hinge, "hinge_weights", None)
    monkeypatch.setattr("tacit.baselines.binary_relevance.hinge_weights", None)
    model(tol=1e-4).fit(X.toarray(), Y)
    model(tol=1e-4).fit(blocks_of(X, Y, "disk"))
    with pytest.raises(TypeError):
        model(tol=1e-4).fit(X, Y)
