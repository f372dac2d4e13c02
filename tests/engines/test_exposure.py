"""Exposure: the rates, their priors and their M steps, and the mean of a Pólya–Gamma variable."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit

from tacit.backends import get_backend
from tacit.backends.block import Placement, place
from tacit.basics.numerics import eta
from tacit.blocks import MemoryBlocks, Rows
from tacit.engines.exposure import AllAsked, CovariateExposure, PerLabel
from tacit.engines.moments import Moments, Products
from tacit.labels import Labels

N, D, L, FEATURES = 25, 4, 6, 3


def rows(seed=0):
    """A block with a constant feature, and posteriors of it."""
    rng = np.random.default_rng(seed)
    Y = sp.csr_array(rng.random((N, L)) < 0.3)
    block = place(
        Rows(rng.standard_normal((N, D - 1)), Labels.positive_only(Y)),
        Placement(get_backend("cpu"), "float64", None, True),
    )
    return block, rng.random((N, L)), rng


@pytest.mark.parametrize("z", [1e-8, 1e-4, 9.9e-3, 1e-2, 1.01e-2, 0.1, 3.0, 50.0, 1e4])
def test_eta_is_the_mean_of_a_polya_gamma_variable(z):
    """Σ 1 / (2π²((i + ½)² + (z/2π)²)): the definition, whose sum is tanh(z/2) / 2z."""
    wanted = np.tanh(np.longdouble(z) / 2) / (2 * np.longdouble(z))
    assert_allclose(eta(np.array([z, -z])), float(wanted), rtol=1e-13)
    i = np.arange(200_000) + 0.5
    series = np.sum(1 / (2 * np.pi**2 * (i**2 + (z / (2 * np.pi)) ** 2)))
    assert_allclose(eta(np.array([z])), series, rtol=1e-2 if z > 10 else 1e-5)


def test_eta_of_zero_is_a_quarter_and_it_is_even_and_exact_near_zero():
    assert_array_equal(eta(np.zeros(2)), 0.25)
    assert eta(np.float32([0.0, 1e-2])).dtype == np.float32
    z = np.array([1e-300, 1e-12, 1e-6, 1e-2])
    assert_allclose(eta(z), 0.25 - z**2 / 48 + z**4 / 480, rtol=1e-13)
    assert_array_equal(eta(-z), eta(z))


def test_all_asked_is_one_and_learns_nothing():
    block, P, _ = rows()
    exposure = AllAsked(L)
    assert_array_equal(exposure.rates(block, exposure.start(P), P)(slice(0, 5)), np.ones((1, L)))
    assert exposure.log_prior({}) == 0


@pytest.mark.parametrize(("a1", "a2"), [(5.0, 1.0), (2.0, 3.0), (1.0, 1.0)])
def test_the_label_exposures_maximise_the_expected_log_posterior(a1, a2):
    _, P, _ = rows()
    exposure = PerLabel(L, a1, a2)
    mu = exposure.updated(P.sum(0), N, P)["mu"]
    for j in range(L):
        expected = lambda m, p=P[:, j]: (
            -(
                np.sum(p * np.log(m) + (1 - p) * np.log1p(-m))
                + (a1 - 1) * np.log(m)
                + (a2 - 1) * np.log1p(-m)
            )
        )
        best = minimize_scalar(expected, bounds=(1e-9, 1 - 1e-9), options={"xatol": 1e-10})
        assert_allclose(mu[j], best.x, atol=1e-6)


def test_the_prior_of_the_label_exposures_is_a_beta_density():
    exposure = PerLabel(3, 5.0, 2.0)
    mu, other = np.array([0.1, 0.5, 0.999]), np.array([0.3, 0.2, 0.6])
    density = lambda mu: stats.beta(5, 2).logpdf(mu).sum()
    got = exposure.log_prior({"mu": mu}) - exposure.log_prior({"mu": other})
    assert_allclose(got, density(mu) - density(other), rtol=1e-12)


def test_label_exposures_stay_inside_nought_and_one_in_either_precision():
    for dtype in ("float32", "float64"):
        like, exposure = np.zeros(1, dtype), PerLabel(2, 1.0, 1.0)
        mu = exposure.updated(np.array([0.0, 9.0]), 9, like)["mu"]
        assert mu.dtype == dtype
        assert 0 < mu[0] < 1e-5
        assert 1 - 1e-5 < mu[1] < 1
        assert np.isfinite(exposure.log_prior({"mu": mu}))


def covariates(seed=0):
    block, P, rng = rows(seed)
    F = np.hstack([rng.standard_normal((L, FEATURES)), np.ones((L, 1))])
    exposure = CovariateExposure(F, D, 0.7)
    beta, bias = rng.standard_normal((D, FEATURES + 1)), rng.standard_normal(L)
    state = {"beta": 0.5 * beta, "bias": bias}
    return block, P, exposure, state


def logits(block, exposure, beta, bias):
    """βᵀφ with φ = [x ⊗ f; the label's own 1], entry by entry."""
    X, F = np.asarray(block.X), exposure.features
    phi = lambda n, j: np.concatenate([np.kron(X[n], F[j]), np.eye(L)[j]])
    weights = np.concatenate([beta.ravel(), bias])
    return np.array([[weights @ phi(n, j) for j in range(L)] for n in range(N)])


def expected(P, block, exposure, beta, bias):
    """Minus the expected log-posterior of the exposures, posteriors P given."""
    z = logits(block, exposure, beta, bias)
    penalty = 0.5 * exposure.reg * ((beta**2).sum() + (bias**2).sum())
    return penalty + np.sum(np.logaddexp(0, z) - P * z)


def test_covariate_rates_are_the_logistic_function_of_the_joint_features():
    block, P, exposure, state = covariates()
    rates = exposure.rates(block, state, P)
    wanted = expit(logits(block, exposure, **state))
    assert_allclose(rates(slice(0, N)), wanted, rtol=1e-10)
    assert_allclose(rates(slice(3, 9)), wanted[3:9], rtol=1e-10)
    far = {"beta": 1e3 * state["beta"], "bias": state["bias"]}
    clipped = exposure.rates(block, far, P)(slice(0, N))
    assert ((clipped > 0) & (clipped < 1)).all()


def test_the_prior_of_covariates_is_gaussian():
    _, _, exposure, state = covariates()
    both = np.concatenate([state["beta"].ravel(), state["bias"]])
    gauss = stats.norm(scale=0.7**-0.5)
    wanted = gauss.logpdf(both).sum() - len(both) * gauss.logpdf(0)
    assert_allclose(exposure.log_prior(state), wanted, rtol=1e-12)


@pytest.mark.parametrize("by_passes", [False, True])
def test_covariate_steps_never_fall_and_end_at_the_logistic_regression(by_passes):
    block, P, exposure, state = covariates()
    blocks, X = MemoryBlocks((block,)), np.asarray(block.X)
    equations = Products(blocks, 1e-3, 20) if by_passes else Moments.of(blocks)
    values = []
    for _ in range(1500):
        M = exposure.rates(block, state, P)(slice(0, N))
        slopes = X.T @ (P - M) @ exposure.features, (P - M).sum(0)
        values.append(exposure.log_prior(state) + np.sum(P * np.log(M) + (1 - P) * np.log1p(-M)))
        state = exposure.stepped(state, slopes, N, equations)
    assert np.diff(values).min() > -1e-9
    shape = state["beta"].shape
    parts = lambda z: (z[: np.prod(shape)].reshape(shape), z[np.prod(shape) :])
    phi = np.array([np.concatenate([np.kron(x, f), np.eye(L)[j]]) for x in X
                    for j, f in enumerate(exposure.features)])  # fmt: skip
    slope = lambda z: exposure.reg * z + phi.T @ (expit(phi @ z) - P.ravel())
    function = lambda z: expected(P, block, exposure, *parts(z))
    best = minimize(function, np.zeros(phi.shape[1]), jac=slope, tol=1e-9)
    assert_allclose(-values[-1], best.fun, rtol=1e-7)
    assert_allclose(state["beta"], parts(best.x)[0], atol=1e-3)
    assert_allclose(state["bias"], parts(best.x)[1], atol=1e-3)


def test_exposures_start_even():
    like = np.zeros((L, 2), "float32")
    assert_array_equal(PerLabel(L, 5.0, 1.0).start(like)["mu"], np.full(L, 0.5, "float32"))
    block, P, exposure, _ = covariates()
    start = exposure.start(P)
    assert_allclose(exposure.rates(block, start, P)(slice(0, N)), 0.5)
