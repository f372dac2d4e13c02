"""Scaling against scikit-learn's transformers, on every backend and wherever the rows live."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import PLACES
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler, normalize

from tacit.backends import Sparse, get_backend
from tacit.backends.block import Placement, place
from tacit.features.scaling import KINDS, Scaling, choices
from tacit.labels import Labels

FORMS = pytest.mark.parametrize("form", [sp.csr_array, sp.csr_array.toarray])


@pytest.fixture
def placed(blocks_of):
    def make(X, backend, where="three blocks", dtype="float64"):
        labels = Labels.complete(np.ones((X.shape[0], 1)))
        return blocks_of(X, labels, where).map(place, Placement(backend, dtype, None, True))

    return make


def learned(kind, blocks, **more):
    return Scaling.of(kind, blocks, np.random.RandomState(0), **more)


def features(block):
    """[X] in NumPy: lists add up to the list of all blocks."""
    X, numbers = block.X, block.backend.to_numpy
    return [X.scipy().toarray() if isinstance(X, Sparse) else numbers(X)]


def scaled(scaling, blocks):
    return np.vstack(blocks.map(scaling).sum(features))


def with_one(X):
    return np.hstack([X, np.ones((len(X), 1))])


WANTED = {
    "none": lambda X: X.toarray(),
    "unit": lambda X: normalize(X).toarray(),
    "idf": lambda X: TfidfTransformer(smooth_idf=True, norm="l2").fit_transform(X).toarray(),
    "standard": lambda X: StandardScaler().fit_transform(X.toarray()),
}


@FORMS
@pytest.mark.parametrize("kind", WANTED)
def test_each_kind_is_scikit_learns_and_the_constant_stays_one(backend, placed, toy, kind, form):
    """The toy has a row of zeros, and a feature that is never there."""
    X = toy[0]
    blocks = placed(form(X), backend)
    got = scaled(learned(kind, blocks), blocks)
    assert_allclose(got, with_one(WANTED[kind](X)), atol=1e-12)
    assert_array_equal(got[:, -1], 1)


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("kind", KINDS)
def test_where_the_rows_live_changes_nothing(device, placed, toy, kind, where):
    blocks, X = placed(toy[0], get_backend(device), where), toy[0]
    got = learned(kind, blocks, n_components=20)
    if kind != "fourier":
        assert_allclose(scaled(got, blocks), with_one(WANTED[kind](X)), atol=1e-12)
        return
    # The width is that of the first block's rows; all else is drawn alike.
    whole = learned(kind, placed(X, get_backend(device), "memory"), n_components=20)
    assert_allclose(got.draws / got.draws[0, 0], whole.draws / whole.draws[0, 0])
    Z = StandardScaler().fit_transform(X.toarray())
    wanted = np.sqrt(2 / 20) * np.cos(Z @ got.draws + got.phase)
    assert_allclose(scaled(got, blocks), with_one(wanted), atol=1e-12)


@FORMS
@pytest.mark.parametrize("kind", KINDS)
def test_float32_stays_float32_and_rows_lose_nothing_else(backend, placed, toy, kind, form):
    blocks = placed(form(toy[0]), backend, dtype="float32")
    scaling, double = (
        learned(kind, rows, n_components=20) for rows in (blocks, placed(toy[0], backend))
    )
    got = scaled(scaling, blocks)
    assert got.dtype == np.float32
    assert_allclose(got, scaled(double, placed(toy[0], backend)), atol=1e-5)
    assert_array_equal(got[:, -1], 1)
    assert scaling.n_features(13) == got.shape[1]
    if kind == "fourier":  # the arrays that are large, and are saved with a model
        assert scaling.draws.dtype == scaling.phase.dtype == np.float32


def pattern(block):
    X = block.X.scipy()
    transposed = block.X.transposed.scipy()
    assert_array_equal(transposed.toarray(), X.toarray().T)
    return [(X.indptr, X.indices)]


@pytest.mark.parametrize("kind", ["none", "unit", "idf"])
def test_sparse_rows_keep_their_pattern_and_their_transpose_follows(backend, placed, toy, kind):
    blocks = placed(toy[0], backend, "disk")  # shards bring a transpose, of the values before
    before, after = blocks.sum(pattern), blocks.map(learned(kind, blocks)).sum(pattern)
    for a, b in zip(before, after, strict=True):
        assert_array_equal(a[0], b[0])
        assert_array_equal(a[1], b[1])


@FORMS
def test_scaling_leaves_the_rows_it_was_given_as_they_were(backend, placed, toy, form):
    blocks = placed(form(toy[0]), backend)
    for kind in KINDS:
        blocks.map(learned(kind, blocks, n_components=3))
    assert_array_equal(np.vstack(blocks.sum(features)), with_one(toy[0].toarray()))


def test_a_stored_zero_is_no_occurrence(backend, placed):
    X = sp.csr_array(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    X.data[[1, 3]] = 0
    assert_allclose(learned("idf", placed(X, backend)).weight, np.log(4 / np.array([4, 2])) + 1)


@pytest.mark.parametrize("value", [0.1, 1e9 / 3, 0.0])
def test_a_feature_of_no_variance_becomes_zero_and_not_rounding(backend, placed, value):
    X = np.random.default_rng(0).random((1000, 2))
    X[:, 0] = value
    blocks = placed(X, backend)
    scaling = learned("standard", blocks)
    assert scaling.weight[0] == 1
    assert_allclose(scaled(scaling, blocks)[:, 0], 0, atol=1e-15 * 1000 * value)


def test_a_small_variance_about_a_large_mean_is_not_lost(backend, placed):
    X = 1e7 + np.random.default_rng(0).random((300, 3))
    blocks = placed(X, backend)
    wanted = (X - X.mean(0)) / X.std(0)
    assert_allclose(scaled(learned("standard", blocks), blocks)[:, :-1], wanted, atol=1e-6)


def test_tiny_and_huge_rows_of_float32_have_unit_length(backend, placed):
    X = np.array([[3e-30, 4e-30], [3e30, 4e30]], np.float32)
    blocks = placed(X, backend, dtype="float32")
    assert_allclose(scaled(learned("unit", blocks), blocks)[:, :-1], [[0.6, 0.8]] * 2, rtol=1e-6)


def test_fourier_features_have_the_gaussian_kernel_of_the_median_distance(backend, placed):
    X = np.random.default_rng(0).random((60, 5)) * [1, 10, 100, 1, 1] + 7
    blocks = placed(X, backend, "memory")
    Phi = scaled(learned("fourier", blocks, n_components=40_000), blocks)[:, :-1]
    Z = StandardScaler().fit_transform(X)
    apart = np.linalg.norm(Z[:, None] - Z, axis=2)[np.triu_indices(60, 1)]
    # 40,000 draws: each mean of products has a standard error of at most 0.005, m one of 0.02.
    wanted = rbf_kernel(Z, gamma=1 / (2 * np.median(apart) ** 2))
    assert_allclose(Phi @ Phi.T, wanted, atol=0.04)
    assert learned("fourier", blocks).n_features(6) == 2001


def beside(block):
    return [block.backend.to_numpy(part) for part in block.more]


@FORMS
@pytest.mark.parametrize("where", ["memory", "three blocks"])
def test_products_have_the_squared_inner_product_along_the_leading_directions(
    backend, placed, form, where
):
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.random((60, 12)) * (rng.random((60, 12)) < 0.4) * 2.0 ** -np.arange(12))
    blocks = placed(form(X), backend, where)
    unit = learned("unit", blocks)
    U = normalize(X).toarray()
    Q = np.linalg.svd(U)[2][:3].T
    scaling = replace(unit, directions=np.vstack([Q, np.zeros((1, 3))]))
    Phi = np.vstack(blocks.map(scaling).sum(beside))
    assert_allclose(Phi @ Phi.T, (U @ Q @ Q.T @ U.T) ** 2, atol=1e-6)
    assert_array_equal(scaled(scaling, blocks), scaled(unit, blocks))
    assert scaling.n_features(13) == 13 + Phi.shape[1] == 13 + 6


def test_the_width_is_that_of_the_first_blocks_rows(backend, placed):
    X = np.random.default_rng(0).random((30, 2))
    X[10:] = 0  # the second and third block, whose rows have no distance
    Z = StandardScaler().fit_transform(X)[:10]
    m = np.median(np.linalg.norm(Z[:, None] - Z, axis=2)[np.triu_indices(10, 1)])
    assert_allclose(learned("fourier", placed(X, backend)).draws.std(), 1 / m, rtol=0.1)


def test_rows_that_are_all_the_same_have_finite_fourier_features(backend, placed):
    blocks = placed(np.ones((1, 3)), backend, "memory")
    assert np.isfinite(scaled(learned("fourier", blocks, n_components=4), blocks)).all()


def test_a_block_without_rows_is_no_harm(backend, placed):
    X = np.array([[1.0, 2.0], [3.0, 5.0]])  # of three blocks, one is empty, and it is the first
    for kind in KINDS:
        blocks, whole = placed(X, backend), placed(X, backend, "memory")
        got, wanted = (
            scaled(learned(kind, rows, n_components=4), rows) for rows in (blocks, whole)
        )
        assert got.shape == wanted.shape
        if kind != "fourier":
            assert_allclose(got, wanted)


def test_what_is_worth_trying_goes_by_density_and_width(backend, placed, toy):
    rng = np.random.default_rng(0)
    of = lambda X: choices(placed(X, backend))
    half = sp.csr_array(np.tile([[1.0, 0.0]], (6, 2)))
    assert of(toy[0]) == of(half) == ("unit", "idf")
    assert of(toy[0].toarray()) == ("unit", "idf")  # as they are, not as they are kept
    denser = half.tolil()
    denser[0, 1] = 1
    assert of(denser.tocsr()) == ("standard", "fourier")
    assert of(rng.random((3, 1000))) == ("standard", "fourier")
    assert of(rng.random((3, 1001))) == of(sp.csr_array(rng.random((3, 1001)))) == ("standard",)


def test_an_unknown_kind_is_one_clear_sentence(placed, toy):
    with pytest.raises(ValueError, match=r"kind must be one of 'none', .*; got 'l2'"):
        learned("l2", placed(toy[0], get_backend("cpu")))
