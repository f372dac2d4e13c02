"""The laws of GenEML's Gibbs sampler: Pólya-Gamma draws, and posteriors known another way."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.special import expit

from tacit.methods.geneml.gibbs import Draws, gibbs
from tacit.methods.geneml.polya_gamma import polya_gamma
from tacit.methods.geneml.polya_gamma_kernels import _accept as accept

# Two features that go together, three labels, and every kind of entry.
X = np.array([[0.5, 0.3], [-0.5, -0.8], [0.3, 0.5], [1.0, 0.8]])
Y = np.array([[1, 0, 0], [0, 1, 0], [1, 0, 0], [1, 0, 1]], bool)
EXPOSED = np.array([[1, -1, 1], [1, 1, -1], [-1, 0, -1], [1, -1, 0]], np.int8)
PRIOR = dict(rank=2, reg_u=0.6, reg_v=0.7, reg_w=0.5, alpha1=2.0, alpha2=1.5)


def sample(seed=0, exposed=EXPOSED, **changes) -> Draws:
    settings = PRIOR | dict(X=X, Y=Y, intercept=True, burn=10, draws=20, thin=1) | changes
    return gibbs(exposed=exposed, rng=np.random.RandomState(seed), **settings)


def scores_of(draws):
    """xᵀWv + b of every entry, which does not depend on how the codes are turned."""
    rank = draws.W.shape[2]
    V, b = draws.V[:, :, :rank], draws.V[:, None, :, rank:].sum(axis=3)
    return X @ draws.W @ V.swapaxes(1, 2) + b


def invariants(draws):
    """What the posterior is compared by: σ(xᵀWv + b) of every entry, and μ."""
    return np.hstack([expit(scores_of(draws)).reshape(len(draws.mu), -1), draws.mu])


def mean_and_error(chain, batches=40):
    """The mean along the chain and its standard error, by the means of batches."""
    means = np.array([part.mean(axis=0) for part in np.array_split(chain, batches)])
    return chain.mean(axis=0), means.std(axis=0, ddof=1) / np.sqrt(batches)


@pytest.mark.parametrize("c", [0.0, 0.1, 1.0, 3.0, 10.0, 50.0])
def test_polya_gamma_draws_have_the_mean_and_variance_of_theory(c):
    mean, variance = 1 / 4, 1 / 24
    if c > 0:
        mean = np.tanh(c / 2) / (2 * c)
        variance = (np.sinh(c) - c) / (4 * c**3 * np.cosh(c / 2) ** 2)
    omega = polya_gamma(np.full(1_000_000, c), np.random.RandomState(1))
    spread = (omega - mean) ** 2
    assert_allclose(omega.mean(), mean, rtol=0, atol=5 * omega.std() / 1000)
    assert_allclose(spread.mean(), variance, rtol=0, atol=5 * spread.std() / 1000)


@pytest.mark.parametrize("c", [0.0, 1.0, 2.5, 4.0, 12.0])
def test_polya_gamma_draws_are_distributed_as_their_sum_of_exponentials(c):
    terms, size = 300, 200_000
    scales = 1 / (2 * np.pi**2 * ((np.arange(terms) + 0.5) ** 2 + (c / (2 * np.pi)) ** 2))
    mean = np.tanh(c / 2) / (2 * c) if c else 1 / 4
    rng = np.random.default_rng(2)
    wanted = np.concatenate([rng.exponential(size=(1000, terms)) @ scales for _ in range(200)])
    wanted += mean - scales.sum()  # of all later terms the mean; their spread is 1e-5
    drawn = polya_gamma(np.full(size, c), np.random.RandomState(3))
    assert stats.ks_2samp(drawn, wanted).pvalue > 1e-3


def test_polya_gamma_proposals_are_kept_with_the_probability_of_the_whole_series():
    i, u = np.arange(50), np.linspace(0.0005, 0.9995, 1000)
    for decay in [1.0, 2.0, 3.2, 6.0]:
        series = np.sum((-1.0) ** i * (2 * i + 1) * np.exp(-i * (i + 1) * decay))
        assert_array_equal([accept(decay, level) for level in u], u < series)


def test_polya_gamma_draws_at_huge_tilts_are_their_inverse_gaussian_limit():
    for c in [1e3, 1e6]:
        omega = polya_gamma(np.full(100_000, c), np.random.RandomState(4))
        limit = stats.invgauss(2 / c, scale=1 / 4)  # of mean 1/(2c) and shape ¼
        assert stats.kstest(omega, limit.cdf).pvalue > 1e-3


def test_polya_gamma_draws_follow_the_seed_not_the_sign_or_the_layout_of_the_tilt():
    c = np.linspace(-5, 5, 12).reshape(3, 4)
    draw = lambda c, seed: polya_gamma(c, np.random.RandomState(seed))
    assert draw(c, 0).shape == (3, 4)
    assert_array_equal(draw(c, 0), draw(c, 0))
    assert_array_equal(draw(c, 0), draw(-c, 0))
    assert_array_equal(draw(c, 0), draw(np.asfortranarray(c), 0))
    assert not np.any(draw(c, 0) == draw(c, 1))
    rng = np.random.RandomState(0)
    assert not np.any(polya_gamma(c, rng) == polya_gamma(c, rng))


def test_polya_gamma_refuses_a_tilt_that_is_not_finite():
    with pytest.raises(ValueError, match="c must be finite"):
        polya_gamma(np.array([0.0, np.nan]), np.random.RandomState(0))


@pytest.mark.parametrize("intercept", [False, True])
def test_posterior_means_are_those_of_importance_sampling(intercept):
    """Two million draws from the prior, weighted with the likelihood with ξ summed out."""
    rng, weights, values = np.random.default_rng(5), [], []
    size, k = 50_000, PRIOR["rank"]
    normal = lambda precision, *shape: rng.standard_normal((size, *shape)) / precision**0.5
    for _ in range(40):
        W, V = normal(PRIOR["reg_w"], 2, k), normal(PRIOR["reg_v"], 3, k)
        if intercept:
            V = np.concatenate([V, normal(0.01, 3, 1)], axis=2)
        mu = rng.beta(PRIOR["alpha1"], PRIOR["alpha2"], (size, 1, 3))
        prior = Draws(W, V, mu[:, 0])
        psi = scores_of(prior) + normal(PRIOR["reg_u"], 4, k) @ V[:, :, :k].swapaxes(1, 2)
        seen = mu * expit(np.where(Y, psi, -psi))
        unsaid = seen + 1 - mu
        likelihood = np.where(EXPOSED == 0, 1 - mu, np.where((EXPOSED < 0) & ~Y, unsaid, seen))
        weights.append(likelihood.prod(axis=(1, 2)))
        values.append(invariants(prior))
    weight, value = np.concatenate(weights), np.concatenate(values)
    weight /= weight.sum()
    wanted = weight @ value
    wanted_error = np.sqrt(weight**2 @ (value - wanted) ** 2)

    mean, error = mean_and_error(invariants(sample(intercept=intercept, burn=500, draws=12_000)))
    assert error.max() < 0.015
    assert_allclose((mean - wanted) / np.hypot(error, wanted_error), 0, atol=5)


def test_with_nothing_known_the_draws_follow_the_prior():
    nothing = np.zeros_like(EXPOSED)
    draws = sample(6, nothing, draws=8000, burn=100)
    W, b = draws.W.reshape(8000, -1), draws.V[:, :, -1]
    V = draws.V[:, :, :-1].reshape(8000, -1)
    for factor, precision in [(W, PRIOR["reg_w"]), (V, PRIOR["reg_v"]), (b, 0.01)]:
        products = precision * factor[:, :, None] * factor[:, None, :]
        mean, error = mean_and_error(products)
        assert_allclose((mean - np.eye(factor.shape[1])) / error, 0, atol=5)
        assert error.max() < 0.08
    posterior = stats.beta(PRIOR["alpha1"], PRIOR["alpha2"] + 4)
    assert stats.kstest(draws.mu.ravel(), posterior.cdf).pvalue > 1e-3


def test_with_all_known_the_exposure_follows_its_beta_posterior():
    mu = sample(7, np.ones_like(EXPOSED), draws=5000).mu
    posterior = stats.beta(PRIOR["alpha1"] + 4, PRIOR["alpha2"])
    assert stats.kstest(mu.ravel(), posterior.cdf).pvalue > 1e-3


def test_labels_that_are_missing_are_not_read():
    flipped = sample(Y=Y ^ (EXPOSED == 0))
    for name in ["W", "V", "mu"]:
        assert_array_equal(getattr(flipped, name), getattr(sample(), name))


def test_a_yes_is_exposed_whether_it_says_so_or_not():
    silent = sample(exposed=np.where(Y & (EXPOSED == 1), -1, EXPOSED))
    assert_array_equal(silent.V, sample().V)


def test_the_seed_fixes_the_draws():
    assert_array_equal(sample(8).V, sample(8).V)
    assert not np.any(sample(8).V == sample(9).V)


def test_sparse_and_dense_features_give_the_same_draws():
    dense, sparse = sample(), sample(X=sp.csr_array(X))
    assert_allclose(sparse.W, dense.W, rtol=1e-8)
    assert_allclose(sparse.V, dense.V, rtol=1e-8)


@pytest.mark.parametrize("intercept", [False, True])
def test_sweeps_are_burnt_thinned_and_told(intercept):
    told = []
    every = sample(burn=0, draws=17, intercept=intercept, watch=told.append)
    some = sample(burn=5, draws=4, thin=3, intercept=intercept)
    assert told == list(range(1, 18))
    assert some.W.shape == (4, 2, 2)
    assert some.V.shape == (4, 3, 2 + intercept)
    for name in ["W", "V", "mu"]:
        assert_array_equal(getattr(some, name), getattr(every, name)[7::3])
