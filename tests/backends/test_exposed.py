"""`exposed` on every backend against dense NumPy in float64: likelihood, posterior and slope."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, log_expit

exposed_agrees = settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
dtypes = pytest.mark.parametrize("dtype", ["float32", "float64"])
cases = given(
    n=st.integers(0, 40),
    n_labels=st.integers(1, 20),
    start=st.integers(0, 5),
    mu=st.sampled_from(["one row", "every row", "all asked"]),
    masked=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)


def problem(n, n_labels, start, mu, masked, seed, dtype, scale=3.0):
    """Scores of n rows, the first of which is row `start` of the labels, and empty rows there."""
    rng = np.random.default_rng(seed)
    shape = (start + n + 2, n_labels)
    Y = rng.random(shape) < 0.3
    observed = rng.random(shape) < 0.5
    for pattern in (Y, observed):
        pattern[rng.random(len(pattern)) < 0.3] = False
    rates = {
        "one row": lambda: rng.uniform(0.01, 0.99, (1, n_labels)),
        "every row": lambda: rng.uniform(0.01, 0.99, (n, n_labels)),
        "all asked": lambda: np.ones((1, n_labels)),
    }[mu]()
    F = scale * rng.standard_normal((n, n_labels))
    weights = rng.random(n), rng.random(n_labels)
    floats = [a.astype(dtype) for a in (F, rates, *weights)]
    return *floats, Y & observed if masked else Y, observed if masked else None


def run(backend, F, mu, row_weights, label_weights, Y, observed, start):
    """The verb, on a copy of F: it may write there."""
    to = lambda a: None if a is None else backend.asarray(a.copy())
    rows = slice(start, start + len(F))
    pattern = sp.csr_array(Y if observed is None else observed)
    S = backend.sparse(pattern, pattern=True)
    y = None
    if observed is not None:
        y = to(Y[observed].astype(F.dtype))
    got = backend.exposed(to(F), to(mu), S, y, rows, to(row_weights), to(label_weights))
    return [None if part is None else backend.to_numpy(part) for part in got]


def dense(F, mu, row_weights, label_weights, Y, observed, start):
    """The same three arrays, one formula after the other, in float64."""
    F, mu, row_weights, label_weights = (
        a.astype(float) for a in (F, mu, row_weights, label_weights)
    )
    y = Y[start : start + len(F)]
    if observed is None:
        with np.errstate(divide="ignore"):  # μ = 1: nobody was not asked
            unasked = np.log1p(-mu)
        p = np.where(y, 1.0, expit(np.log(mu) - unasked - np.logaddexp(0, F)))
        silence = np.logaddexp(np.log(mu) + log_expit(-F), unasked)
        value = np.where(y, np.log(mu) + log_expit(F), silence)
    else:
        p = observed[start : start + len(F)].astype(float)
        value = p * np.where(y, log_expit(F), log_expit(-F))
    R = p * (y - expit(F))
    by_row = np.array([value.sum(1), abs(R) @ label_weights])
    return R, by_row, np.array([value.sum(0), p.sum(0), row_weights @ abs(R)])


def close(got, wanted, dtype):
    for part, truth in zip(got, wanted, strict=True):
        assert part.shape == truth.shape
        scale = np.abs(truth).max(initial=1.0)
        assert_allclose(
            part, truth, rtol=0, atol=scale * {"float32": 1e-6, "float64": 1e-12}[dtype]
        )


@dtypes
@exposed_agrees
@cases
@example(n=3, n_labels=2, start=0, mu="every row", masked=False, seed=0)
@example(n=33, n_labels=17, start=4, mu="every row", masked=False, seed=1)
@example(n=33, n_labels=17, start=4, mu="one row", masked=True, seed=1)
def test_exposed_is_the_dense_likelihood_posterior_and_slope(
    backend, n, n_labels, start, mu, masked, seed, dtype
):
    case = problem(n, n_labels, start, mu, masked, seed, dtype)
    got = run(backend, *case, start)
    assert got[0].dtype == got[1].dtype == dtype
    assert got[2].dtype == np.float64
    close(got, dense(*case, start), dtype)


@dtypes
@pytest.mark.parametrize("masked", [False, True])
def test_exposed_of_scores_in_the_tails_is_the_dense_slope(backend, masked, dtype):
    """At ±30 in float32, 1 - μσ(ψ) and σ(-ψ) are where a careless formula loses its digits."""
    F, *rest = problem(30, 8, 2, "one row", masked, 0, dtype, scale=15.0)
    F = F.clip(-30, 30)
    close(run(backend, F, *rest, 2), dense(F, *rest, 2), dtype)


@dtypes
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("mu", ["one row", "every row", "all asked"])
def test_scores_of_a_thousand_either_way_are_finite_and_their_slopes_exact(
    backend, masked, mu, dtype
):
    F, *rest = problem(30, 8, 2, mu, masked, 0, dtype)
    F = np.where(F > 0, 1000, -1000).astype(dtype)
    got = run(backend, F, *rest, 2)
    assert all(np.isfinite(part).all() for part in got)
    close(got[:1], dense(F, *rest, 2)[:1], dtype)


@dtypes
def test_what_was_said_was_asked(backend, dtype):
    F, mu, *weights, Y, _ = problem(12, 5, 0, "one row", False, 0, dtype)
    _, _, sums = run(backend, F, mu, *weights, np.ones_like(Y), None, 0)
    assert_allclose(sums[1], 12, rtol=1e-6)


@dtypes
def test_where_all_are_asked_it_is_the_plain_logistic_likelihood(backend, dtype):
    F, mu, *weights, Y, _ = problem(12, 5, 1, "all asked", False, 0, dtype)
    y = np.where(Y[1:13], 1, -1)
    R, by_row, by_label = run(backend, F, mu, *weights, Y, None, 1)
    close([R, by_row[0]], [y * expit(-y * F.astype(float)), log_expit(y * F).sum(1)], dtype)
    assert_allclose(by_label[1], 12, rtol=1e-6)
    everything = np.ones_like(Y)
    close(run(backend, F, mu, *weights, Y, everything, 1), [R, by_row, by_label], dtype)


@dtypes
@pytest.mark.parametrize("masked", [False, True])
def test_sums_that_nobody_weighs_are_left_out_and_the_others_stay(backend, masked, dtype):
    F, mu, rows, labels, *known = problem(12, 5, 1, "every row", masked, 0, dtype)
    R, by_row, by_label = run(backend, F, mu, rows, labels, *known, 1)
    likelihoods = np.array([by_row[0], 0 * by_row[0]])
    for row_weights, label_weights in ((None, labels), (rows, None), (None, None)):
        got = run(backend, F, mu, row_weights, label_weights, *known, 1)
        close(got[:2], [R, likelihoods if label_weights is None else by_row], dtype)
        assert (got[2] is None) == (row_weights is None)
        if row_weights is not None:
            close(got[2:], [by_label], dtype)


@pytest.mark.parametrize("c", [0.05, 0.5, 0.95])
def test_with_one_exposure_for_all_it_is_the_positive_unlabelled_loss(backend, c):
    """MPU's: -y log cσ - (1 - y) log(1 - cσ), and R is minus its derivative."""
    F, mu, *weights, Y, _ = problem(12, 5, 1, "one row", False, 0, "float64")
    y, mu = Y[1:13], np.full_like(mu, c)
    loss = lambda F: -(y * np.log(c * expit(F)) + (1 - y) * np.log(1 - c * expit(F)))
    R, by_row, by_label = run(backend, F, mu, *weights, Y, None, 1)
    assert_allclose(by_row[0], -loss(F).sum(1), rtol=1e-12)
    assert_allclose(by_label[0], -loss(F).sum(0), rtol=1e-12)
    assert_allclose(R, -(loss(F + 1e-5) - loss(F - 1e-5)) / 2e-5, atol=1e-9)


@pytest.mark.parametrize("masked", [False, True])
def test_exposed_leaves_all_but_the_scores_alone(backend, masked):
    F, mu, *weights, Y, observed = problem(9, 5, 0, "one row", masked, 0, "float64")
    S = backend.sparse(sp.csr_array(Y if observed is None else observed), pattern=True)
    y = None if observed is None else backend.asarray(Y[observed].astype(float))
    arrays = [backend.asarray(a.copy()) for a in (mu, *weights)]
    backend.exposed(backend.asarray(F.copy()), arrays[0], S, y, slice(0, 9), *arrays[1:])
    for after, before in zip(arrays, (mu, *weights)):
        assert_array_equal(backend.to_numpy(after), before)
    if y is not None:
        assert_array_equal(backend.to_numpy(y), Y[observed])
