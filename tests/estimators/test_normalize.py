"""normalize="auto": columns of dense features are standardised, whoever learns from them."""

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import PLACES
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

import tacit
from tacit import LEML, MPU, SEM, FaIE, GenEML, Labels
from tacit.baselines import Ridge
from tacit.basics.files import read_arrays, write_arrays
from tacit.saved import METHODS

FAST = {"max_iter": 3, "rank": 3, "random_state": 0, "holdout": 0.3}


@pytest.fixture(scope="module")
def dense():
    """Measurements: columns of different means and spreads, one of them constant."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((90, 6))
    Y = (Z @ rng.standard_normal((6, 5)) > 0.3).astype(np.int8)
    X = Z * [1, 10, 100, 1, 0.1, 0] + [0, 5, -70, 1, 3, 2]
    return X, Y


def with_normalize():
    return [name for name, method in METHODS.items() if "normalize" in method().get_params()]


def made(name, **params):
    has = METHODS[name]().get_params()
    return METHODS[name](**{k: v for k, v in FAST.items() if k in has}, **params)


@pytest.mark.parametrize("name", with_normalize())
def test_every_method_does_so_by_default_as_if_the_columns_had_been_standardised(dense, name):
    X, Y = dense
    model = made(name).fit(X[:70], Y[:70])
    scaler = StandardScaler().fit(X[:70])
    wanted = made(name, normalize="l2").fit(scaler.transform(X[:70]), Y[:70])
    got = model.decision_function(X[70:])
    assert_allclose(got, wanted.decision_function(scaler.transform(X[70:])), atol=1e-6)
    other = made(name, normalize="l2").fit(X[:70], Y[:70])
    assert np.abs(got - other.decision_function(X[70:])).max() > 1e-3


@pytest.mark.parametrize("where", PLACES)
def test_the_scaling_is_the_same_wherever_the_rows_live(blocks_of, dense, where, device):
    X, Y = dense
    model = Ridge(device=device).fit(blocks_of(X, Labels.complete(Y), where))
    assert_allclose(model.scaling_.shift, X.mean(axis=0), atol=1e-12)
    assert_allclose(model.scaling_.weight[:5], 1 / X[:, :5].std(axis=0))
    wanted = Ridge().fit(X, Y).decision_function(X)
    assert_allclose(model.decision_function(X), wanted, atol=1e-9)


def test_dense_features_kept_as_sparse_ones_are_standardised_too(dense):
    X, Y = dense
    got = Ridge().fit(sp.csr_array(X), Y)
    wanted = Ridge().fit(X, Y).decision_function(X)
    for rows in (X, sp.csr_array(X)):
        assert_allclose(got.decision_function(rows), wanted, atol=1e-12)


def test_sparse_features_get_rows_of_unit_length_and_nothing_else(toy):
    X, Y, _ = toy
    wanted = Ridge(normalize="l2").fit(X, Y).decision_function(X)
    for rows in (X, X.toarray()):
        model = Ridge().fit(rows, Y)
        assert model.scaling_ is None
        assert_allclose(model.decision_function(rows), wanted, atol=1e-12)


def test_float32_stays_float32(dense):
    X, Y = dense
    model = Ridge().fit(X.astype(np.float32), Y)
    got = model.decision_function(X.astype(np.float32))
    assert got.dtype == np.float32
    assert_allclose(got, Ridge().fit(X, Y).decision_function(X), atol=1e-4)


def test_a_file_keeps_the_scaling(dense, tmp_path):
    X, Y = dense
    model = Ridge().fit(X, Y)
    model.save(tmp_path / "model.tacit")
    loaded = tacit.load(tmp_path / "model.tacit")
    assert_array_equal(loaded.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize("broken", [None, np.ones(5), np.ones(6, int)])
def test_a_file_with_half_a_scaling_is_refused(dense, tmp_path, broken):
    X, Y = dense
    path = tmp_path / "model.tacit"
    Ridge().fit(X, Y).save(path)
    header, arrays = read_arrays(path)
    del header["format"]
    arrays = {**arrays, "scaling.weight": broken}
    if broken is None:
        del arrays["scaling.weight"]
    write_arrays(path, header, arrays)
    with pytest.raises(ValueError, match=r"its scaling\.weight"):
        tacit.load(path)


@pytest.mark.parametrize(
    "model",
    [
        GenEML(rank=3, random_state=0),
        SEM(rank=3, updates="one-pass", random_state=0),
        MPU(1, c=0.5, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_updates_go_on_with_the_scaling_of_the_first_rows(dense, model):
    X, Y = dense
    wanted = clone(model).set_params(normalize="l2")
    scaled = StandardScaler().fit(X[:40]).transform(X)
    for rows in (slice(40), slice(40, 90)):
        model.partial_fit(X[rows], Y[rows])
        wanted.partial_fit(scaled[rows], Y[rows])
    assert_allclose(model.decision_function(X), wanted.decision_function(scaled), atol=1e-6)


@pytest.mark.parametrize("model", [LEML(2, random_state=0), FaIE(2)], ids=["LEML", "FaIE"])
def test_a_path_scales_its_points_and_leaves_a_fitted_model_its_own(dense, model):
    X, Y = dense
    before = model.fit(X, Y).decision_function(X)
    path = model.fit_path(3 * X + 1, Y, ranks=[2], regs=[0.1, 1.0], cv=3)
    assert_array_equal(model.decision_function(X), before)
    assert_allclose(path.best.model.scaling_.shift, 3 * model.scaling_.shift + 1)
