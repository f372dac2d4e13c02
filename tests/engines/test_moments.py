"""Moments: the Gram triple, formed or asked for by passes, against dense NumPy."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import PLACES
from numpy.testing import assert_allclose

import tacit.engines.moments
from tacit.backends import get_backend
from tacit.backends.block import Placement, place
from tacit.engines.moments import Moments, Products
from tacit.labels import Labels


def placed(blocks, backend, intercept=True):
    return blocks.map(place, Placement(backend, "float64", None, intercept))


def dense(X, Y, intercept=True):
    X = X.toarray() if sp.issparse(X) else X
    return (np.hstack([X, np.ones((len(X), 1))]) if intercept else X), Y.toarray().astype(float)


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_sums_are_the_dense_products(backend, blocks_of, toy, sparse, intercept):
    X, Y, _ = toy
    X = X if sparse else X.toarray()
    moments = Moments.of(
        placed(blocks_of(X, Labels.complete(Y), "three blocks"), backend, intercept)
    )
    X, Y = dense(X, Y, intercept)
    wanted = dict(x_sum=X.sum(0), y_sum=Y.sum(0), xx=X.T @ X, xy=X.T @ Y, yy=Y.T @ Y)
    for name, value in wanted.items():
        assert_allclose(backend.to_numpy(getattr(moments, name)), value, atol=1e-12, err_msg=name)
    assert (moments.n, moments.n_positives) == (40, Y.sum())


def with_beside(block):
    """The squares of the features stand beside them."""
    squares = block.X.scipy().toarray() ** 2
    return replace(block, more=(block.backend.asarray(squares),))


def test_features_that_stand_beside_others_are_in_the_sums(backend, blocks_of, toy):
    X, Y, _ = toy
    blocks = placed(blocks_of(X, Labels.complete(Y), "three blocks"), backend).map(with_beside)
    moments = Moments.of(blocks)
    X, Y = dense(X, Y)
    X = np.hstack([X, X**2])
    for name, value in dict(x_sum=X.sum(0), xx=X.T @ X, xy=X.T @ Y).items():
        assert_allclose(backend.to_numpy(getattr(moments, name)), value, atol=1e-12, err_msg=name)


def test_float32_features_are_summed_in_float64(backend, blocks_of):
    X = sp.csr_array(np.full((3000, 1), 0.1, np.float32))
    blocks = blocks_of(X, Labels.complete(X > 0), "memory")
    moments = Moments.of(blocks.map(place, Placement(backend, "float32", None, False)))
    exact = 3000 * float(np.float32(0.1)) ** 2
    assert_allclose(backend.to_numpy(moments.xx), exact, rtol=1e-12)


def test_subtracting_a_fold_is_leaving_it_out(blocks_of, toy):
    X, Y, _ = toy
    of = lambda rows: Moments.of(
        placed(blocks_of(X[rows], Labels.complete(Y)[rows], "memory"), get_backend("cpu"))
    )
    fold, rest = np.arange(0, 40, 4), np.setdiff1d(np.arange(40), np.arange(0, 40, 4))
    got, wanted = of(np.arange(40)) - of(fold), of(rest)
    for name in ("n", "x_sum", "y_sum", "xx", "xy", "yy"):
        assert_allclose(getattr(got, name), getattr(wanted, name), atol=1e-10, err_msg=name)
    again = got + of(fold)
    assert_allclose(again.xx, of(np.arange(40)).xx, atol=1e-10)


def test_centred_sums_are_those_of_the_rows_less_their_means(backend, blocks_of, toy):
    """Without the constant feature, and of a fold left out too: its means are its own."""
    X, Y, _ = toy
    of = lambda rows: Moments.of(
        placed(blocks_of(X[rows], Labels.complete(Y)[rows], "three blocks"), backend)
    )
    whole, fold, rest = (
        np.arange(40),
        np.arange(0, 40, 4),
        np.setdiff1d(np.arange(40), range(0, 40, 4)),
    )
    for moments, rows in ((of(whole), whole), (of(whole) - of(fold), rest)):
        A, B = (part[rows] - part[rows].mean(0) for part in dense(X, Y, intercept=False))
        wanted = dict(x_sum=np.zeros(12), y_sum=np.zeros(9), xx=A.T @ A, xy=A.T @ B, yy=B.T @ B)
        for name, value in wanted.items():
            got = backend.to_numpy(getattr(moments.centred(), name))
            assert_allclose(got, value, atol=1e-12, err_msg=name)
        assert moments.centred().n == len(rows)


def test_what_was_left_out_is_left_out_of_the_centred_sums(blocks_of, toy):
    X, Y, _ = toy
    rows = placed(blocks_of(X, Labels.complete(Y), "memory"), get_backend("cpu"))
    part, whole = (
        Moments.of(rows, cross=False, label_gram=False).centred(),
        Moments.of(rows).centred(),
    )
    assert part.xy is part.yy is None
    assert_allclose(part.xx, whole.xx)


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("route", ["moments", "products"])
def test_both_routes_answer_as_dense_numpy_does(device, blocks_of, toy, where, route):
    backend = get_backend(device)
    X, Y, _ = toy
    rows = placed(blocks_of(X, Labels.complete(Y), where), backend)
    equations = Moments.of(rows) if route == "moments" else Products(rows, 1e-12, 200)
    X, Y = dense(X, Y)
    rng = np.random.default_rng(0)
    W, H = rng.standard_normal((13, 4)), rng.standard_normal((9, 4))
    B, m = rng.standard_normal((13, 4)), np.array([2.0, 1.0, 0.5, 0.0])
    to, back = backend.asarray, backend.to_numpy
    assert_allclose(back(equations.cross(to(H))), X.T @ Y @ H, atol=1e-10)
    YtA, AtA = equations.statistics(to(W))
    assert_allclose(back(YtA), Y.T @ X @ W, atol=1e-10)
    assert_allclose(back(AtA), W.T @ X.T @ X @ W, atol=1e-10)
    solved = back(equations.solve(to(B), to(m), 0.3))
    assert_allclose(X.T @ X @ solved * m + 0.3 * solved, B, atol=1e-8)
    assert equations.n_positives == Y.sum()


def test_ridge_is_scikit_learns(blocks_of, toy):
    from sklearn.linear_model import Ridge

    X, Y, _ = toy
    moments = Moments.of(placed(blocks_of(X, Labels.complete(Y), "memory"), get_backend("cpu")))
    X, Y = dense(X, Y)
    wanted = Ridge(alpha=0.7, fit_intercept=False).fit(X, Y).coef_.T
    assert_allclose(moments.ridge(0.7), wanted, atol=1e-10)


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("sparse", [True, False])
def test_products_know_the_diagonal_and_the_cross_moments(backend, blocks_of, toy, where, sparse):
    X, Y, _ = toy
    X = X if sparse else X.toarray()
    products = Products(placed(blocks_of(X, Labels.complete(Y), where), backend), 1e-10, 100)
    X, Y = dense(X, Y)
    assert_allclose(backend.to_numpy(products.squares), (X * X).sum(0), atol=1e-12)
    assert_allclose(backend.to_numpy(products.xy), X.T @ Y, atol=1e-12)


def test_a_product_some_columns_at_a_time_is_the_same(monkeypatch, backend, blocks_of, toy):
    X, Y, _ = toy
    products = Products(placed(blocks_of(X, Labels.complete(Y), "memory"), backend), 1e-12, 200)
    whole = backend.to_numpy(products.regress(products.xy, 0.7))
    monkeypatch.setattr(tacit.engines.moments, "_LAID_OUT", 2 * X.shape[0])  # two of nine columns
    assert_allclose(backend.to_numpy(products.regress(products.xy, 0.7)), whole, atol=1e-10)


def test_the_diagonal_saves_steps_where_features_differ_in_scale(monkeypatch, blocks_of):
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.standard_normal((200, 30)) * np.geomspace(1, 100, 30))
    Y = Labels.complete(sp.csr_array(rng.random((200, 4)) < 0.3))
    products = Products(placed(blocks_of(X, Y, "memory"), get_backend("cpu")), 1e-6, 1000)
    solve, steps = tacit.engines.moments.cg, []

    def counted(*args, **options):
        found = solve(*args, **options)
        steps.append(found.n_products)
        return found

    monkeypatch.setattr(tacit.engines.moments, "cg", counted)
    W = products.regress(products.xy, 1.0)
    plain = lambda *args, **options: counted(*args, **options | {"precondition": None})
    monkeypatch.setattr(tacit.engines.moments, "cg", plain)
    again = products.regress(products.xy, 1.0)
    assert_allclose(W, again, atol=1e-4)
    assert 2 * steps[0] < steps[1]


def test_moments_of_rotated_features(blocks_of, toy):
    X, Y, _ = toy
    moments = Moments.of(placed(blocks_of(X, Labels.complete(Y), "memory"), get_backend("cpu")))
    R = np.random.default_rng(0).standard_normal(moments.xx.shape)
    found = moments.rotated(R)
    A, B = dense(X, Y)
    assert_allclose(found.xx, (A @ R).T @ (A @ R), atol=1e-10)
    assert_allclose(found.xy, (A @ R).T @ B, atol=1e-10)
    assert_allclose(found.x_sum, (A @ R).sum(0), atol=1e-10)
    some = R[:4, :4]
    found = moments.rotated(some)
    A = np.hstack([A[:, :4] @ some, A[:, 4:]])
    for got, wanted in ((found.xx, A.T @ A), (found.xy, A.T @ B), (found.x_sum, A.sum(0))):
        assert_allclose(got, wanted, atol=1e-10)
