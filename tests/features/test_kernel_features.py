"""Kernel features: inner products that are kernels, and kernel methods that come out of them."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import tacit.features.kernel_features
import tacit.labels
from tacit import LEML, KernelFeatures
from tacit.baselines import Ridge
from tacit.testing import problem

KERNELS = {
    "rbf": {"gamma": 0.7},
    "laplacian": {"gamma": 0.4},
    "polynomial": {"gamma": 0.5, "degree": 2, "coef0": 0.3},
    "cosine": {},
    "linear": {},
    "chi2": {"gamma": 0.6},
}
PLAIN = dict(normalize=None, fit_intercept=False)


@pytest.fixture(scope="module")
def data():
    """Training rows, dense and with a row of zeros, their labels, and rows never seen."""
    X, Y = problem("complete")
    return X.toarray(), Y.to_sparse().toarray(), problem("complete", seed=1)[0].toarray()


# ---- inner products are kernels


@pytest.mark.parametrize(
    ("kernel", "layout"),
    [(k, f) for k in KERNELS for f in (np.asarray, sp.csr_array, sp.csc_matrix)
     if k != "chi2" or f is np.asarray],
)  # fmt: skip
def test_inner_products_of_exact_features_are_the_kernel(data, kernel, layout):
    X, _, fresh = data
    features = KernelFeatures(kernel, **KERNELS[kernel]).fit(layout(X))
    Phi, Phi_fresh = features.transform(layout(X)), features.transform(layout(fresh))
    assert features.approximation_ == "exact"
    K = lambda A: pairwise_kernels(A, X, metric=kernel, **KERNELS[kernel])
    assert_allclose(Phi @ Phi.T, K(X), atol=1e-9)
    assert_allclose(Phi_fresh @ Phi.T, K(fresh), atol=1e-9)
    assert sp.issparse(features.landmarks_) == (layout is not np.asarray)


@pytest.mark.parametrize("kernel", KERNELS)
def test_frobenius_features_are_gram_columns(data, kernel):
    X, _, fresh = data
    features = KernelFeatures(kernel, penalty="frobenius", **KERNELS[kernel]).fit(X)
    wanted = pairwise_kernels(fresh, X, metric=kernel, **KERNELS[kernel])
    assert_allclose(features.transform(fresh), wanted, atol=1e-12)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "polynomial", "chi2"])
def test_without_gamma_the_kernel_is_that_of_scikit_learn(data, kernel):
    X, _, _ = data
    Phi = KernelFeatures(kernel).fit_transform(X)
    assert_allclose(Phi @ Phi.T, pairwise_kernels(X, metric=kernel), atol=1e-9)


def test_nystroem_with_every_row_as_a_landmark_is_exact(data):
    X, _, fresh = data
    nystroem = KernelFeatures(gamma=0.7, approximation="nystroem", n_components=10**6).fit(X)
    exact = KernelFeatures(gamma=0.7, approximation="exact").fit(X)
    assert nystroem.landmarks_.shape == exact.landmarks_.shape
    inner = lambda features: features.transform(fresh) @ features.transform(X).T
    assert_allclose(inner(nystroem), inner(exact), atol=1e-9)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_nystroem_is_that_of_scikit_learn(data, layout):
    X, _, fresh = data
    options = dict(gamma=0.7, n_components=20, random_state=3)
    ours = KernelFeatures(approximation="nystroem", **options).fit(layout(X))
    theirs = Nystroem(**options).fit(X)
    inner = lambda features, to: features.transform(to(fresh)) @ features.transform(to(X)).T
    assert_allclose(inner(ours, layout), inner(theirs, np.asarray), atol=1e-9)
    assert ours.landmarks_.shape[0] == 20


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_fourier_features_are_those_of_scikit_learn(data, layout):
    X, _, fresh = data
    ours = KernelFeatures(gamma=0.7, approximation="fourier", n_components=30, random_state=3)
    theirs = RBFSampler(gamma=0.7, n_components=30, random_state=3).fit(X)
    assert_allclose(ours.fit(layout(X)).transform(layout(fresh)), theirs.transform(fresh))


def test_fourier_features_near_the_gaussian_kernel_as_they_grow_in_number(data):
    X, _, _ = data
    errors = []
    for n_components in (10, 1000, 100_000):
        Phi = KernelFeatures(
            gamma=0.7, approximation="fourier", n_components=n_components, random_state=0
        ).fit_transform(X)
        errors.append(np.abs(Phi @ Phi.T - rbf_kernel(X, gamma=0.7)).mean())
    assert errors[1] < errors[0] / 5, "a hundred times more features: a tenth of the error"
    assert errors[2] < errors[1] / 5


def test_eigenvalues_that_are_rounding_give_no_features():
    X = np.random.default_rng(0).standard_normal((50, 4))
    Phi = KernelFeatures("linear").fit_transform(np.vstack([X, X]))
    assert Phi.shape == (100, 4), "the rank of the linear kernel is that of X"
    assert np.isfinite(KernelFeatures("linear").fit_transform(np.zeros((3, 2)))).all()


# ---- what a linear method on the features minimises


@pytest.mark.parametrize("kernel", KERNELS)
def test_ridge_on_exact_features_is_kernel_ridge(data, kernel):
    X, Y, fresh = data
    model = make_pipeline(KernelFeatures(kernel, **KERNELS[kernel]), Ridge(reg=0.3, **PLAIN))
    theirs = KernelRidge(alpha=0.3, kernel=kernel, **KERNELS[kernel]).fit(X, Y)
    assert_allclose(model.fit(X, Y).decision_function(fresh), theirs.predict(fresh), atol=1e-6)


def test_ridge_on_frobenius_features_penalises_the_coefficients_of_the_columns(data):
    X, Y, fresh = data
    model = make_pipeline(
        KernelFeatures(gamma=0.7, penalty="frobenius"), Ridge(reg=0.3, **PLAIN)
    ).fit(X, Y)
    K = rbf_kernel(X, gamma=0.7)
    W = np.linalg.solve(K.T @ K + 0.3 * np.eye(len(X)), K.T @ Y)
    wanted = rbf_kernel(fresh, X, gamma=0.7) @ W
    assert_allclose(model.decision_function(fresh), wanted, atol=1e-8)


def test_ridge_on_the_linear_kernel_is_ridge(data):
    X, Y, fresh = data
    model = make_pipeline(KernelFeatures("linear"), Ridge(reg=0.3, **PLAIN)).fit(X, Y)
    wanted = Ridge(reg=0.3, **PLAIN).fit(X, Y).decision_function(fresh)
    assert_allclose(model.decision_function(fresh), wanted, atol=1e-9)


@pytest.mark.parametrize("kind", ["complete", "masked"])
def test_leml_on_the_linear_kernel_reaches_the_objective_of_leml(kind):
    X, Y = problem(kind)
    leml = LEML(8, reg=0.3, tol=0, max_iter=30, cg_tol=1e-10, random_state=0, **PLAIN)
    wanted = leml.fit(X, Y).history_[-1]
    leml.fit(KernelFeatures("linear").fit_transform(X), Y)
    assert_allclose(leml.history_[-1], wanted, rtol=1e-4)


def test_leml_on_rbf_features_learns_what_no_linear_model_can():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 2))
    Y = np.column_stack([X[:, 0] * X[:, 1] > 0, (X**2).sum(axis=1) < 0.5])
    right = lambda model: (model.fit(X, Y).predict(X).toarray() == Y).mean()
    leml = LEML(2, reg=0.01, normalize=None, random_state=0)
    assert right(leml) < 0.75
    assert right(make_pipeline(KernelFeatures(gamma=2.0), leml)) > 0.95


# ---- how


@pytest.mark.parametrize(("n", "wanted"), [(2048, "exact"), (2049, "nystroem")])
def test_auto_says_what_it_did(n, wanted):
    X = np.random.default_rng(0).standard_normal((n, 3))
    features = KernelFeatures("linear", penalty="frobenius", n_components=7).fit(X)
    assert features.approximation_ == wanted
    assert features.landmarks_.shape[0] == (n if wanted == "exact" else 7)


@pytest.mark.parametrize("options", [{}, {"penalty": "frobenius"}, {"approximation": "fourier"}])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_a_cut_into_blocks_changes_nothing(data, monkeypatch, layout, options):
    X, _, fresh = data
    features = KernelFeatures(gamma=0.7, random_state=0, n_components=40, **options).fit(layout(X))
    whole = features.transform(layout(fresh))
    monkeypatch.setattr(tacit.features.kernel_features, "_BLOCK_ENTRIES", 7 * 60)
    assert_allclose(features.transform(layout(fresh)), whole, atol=1e-9)


@pytest.mark.parametrize("approximation", ["exact", "nystroem", "fourier"])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_float32_stays_float32_and_near_float64(data, layout, approximation):
    X, _, fresh = data
    features = KernelFeatures(
        gamma=0.7, approximation=approximation, n_components=40, random_state=0
    )
    inner = lambda dtype: (
        features.fit(layout(X.astype(dtype))).transform(layout(fresh.astype(dtype)))
        @ features.transform(layout(X.astype(dtype))).T
    )
    assert inner(np.float32).dtype == np.float32
    assert_allclose(inner(np.float32), inner(np.float64), atol=1e-4)


def test_a_model_does_not_follow_what_becomes_of_its_training_rows(data):
    X, _, fresh = data
    for layout in (np.array, sp.csr_array):
        mine = layout(X)
        features = KernelFeatures(gamma=0.7).fit(mine)
        before = features.transform(fresh)
        mine *= 3
        assert_array_equal(features.transform(fresh), before)


def test_features_have_names(data):
    X, _, _ = data
    features = KernelFeatures(approximation="nystroem", n_components=5, random_state=0).fit(X)
    assert list(features.get_feature_names_out()) == [f"kernelfeatures{j}" for j in range(5)]
    assert features.transform(X).shape[1] == 5


def test_more_than_may_be_laid_out_is_refused(data, monkeypatch):
    X, _, _ = data
    features = KernelFeatures(approximation="nystroem", n_components=10, random_state=0).fit(X)
    monkeypatch.setattr(tacit.labels, "DENSE_LIMIT", 500)
    with pytest.raises(ValueError, match=r"transform would lay out 60 × 10 .* fewer n_components"):
        features.transform(X)
    with pytest.raises(ValueError, match=r"Gram matrix would lay out 60 × 60 .*nystroem"):
        KernelFeatures().fit(X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": "sigmoid"}, "kernel must be one of 'rbf', .*; got 'sigmoid'"),
        ({"gamma": 0}, "gamma must be None or a finite number above 0; got 0"),
        ({"degree": 2.5}, "degree must be an int of at least 1; got 2.5"),
        ({"coef0": -1}, "coef0 must be a finite number of at least 0; got -1"),
        ({"penalty": "l1"}, "penalty must be one of 'rkhs', 'frobenius'; got 'l1'"),
        ({"approximation": "nystrom"}, "approximation must be one of .*; got 'nystrom'"),
        ({"n_components": 0}, "n_components must be an int of at least 1; got 0"),
        ({"approximation": "fourier", "penalty": "frobenius"}, 'needs penalty="rkhs", .*Gram'),
        ({"approximation": "fourier", "kernel": "cosine"}, 'needs kernel="rbf", .*got "cosine"'),
    ],
)
def test_a_parameter_that_cannot_be_is_refused_in_one_sentence(data, options, message):
    with pytest.raises(ValueError, match=message):
        KernelFeatures(**options).fit(data[0])


def test_chi2_takes_dense_histograms_only(data):
    X, _, _ = data
    with pytest.raises(ValueError, match=r'Negative values .* kernel="chi2"'):
        KernelFeatures("chi2", penalty="frobenius").fit(X - 1)
    with pytest.raises(TypeError, match="toarray"):
        KernelFeatures("chi2").fit(sp.csr_array(X))


@parametrize_with_checks(
    [
        KernelFeatures(),
        KernelFeatures("laplacian", approximation="nystroem", n_components=5),
        KernelFeatures(approximation="fourier", n_components=5),
    ]
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)
