"""Laws of the rates at which true labels are said: limits, closed forms, and likelihoods."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, log_expit, logit
from scipy.stats import bootstrap, sem

from tacit.missing import HeldOut, Rates, profile_rates

law = settings(max_examples=30, deadline=None)  # a busy machine must not break a law
GRID = np.array([0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])


def said_with(P, c, seed):
    """Truth drawn from P, and what is said of it with probability c."""
    rng = np.random.default_rng(seed)
    true = rng.random(P.shape) < P
    return true, true & (rng.random(P.shape) < c)


def held_out(n=400, seed=0):
    """Five labels, the last never said, and g that is not exact."""
    rng = np.random.default_rng(seed)
    P = expit(rng.normal(-1, 2, size=(n, 5)))
    _, said = said_with(P, 0.6, seed)
    said[:, 4] = False
    return said, np.clip(0.6 * P + rng.normal(0, 0.05, P.shape), 0, 1)


# ---- held-out rows


def test_all_three_estimators_find_c_where_classes_are_separable():
    P = (np.random.default_rng(0).random((2000, 3)) < 0.3).astype(float)
    true, said = said_with(P, 0.4, 1)
    sums = HeldOut.of(sp.csr_array(said), 0.4 * P)
    assert_allclose(sums.c("e1").c, 0.4)
    assert_allclose(sums.c("e2").c, said.sum() / true.sum())
    assert_allclose(sums.c("e3").c, 0.4)


def test_e1_and_e2_tend_to_c_times_the_mean_of_p_among_the_true():
    P = expit(np.random.default_rng(0).normal(-1, 1.5, size=(100_000, 3)))
    _, said = said_with(P, 0.5, 1)
    limit = 0.5 * (P * P).sum() / P.sum()  # E[P | true] weighs each row by P
    for estimator in ("e1", "e2"):
        c, low, high = HeldOut.of(sp.csr_array(said), 0.5 * P).c(estimator).overall
        assert low < limit < high < 0.5
        assert_allclose(c, limit, rtol=0.01)


@law
@given(st.lists(st.integers(0, 400), max_size=4), st.sampled_from(["e1", "e2", "e3"]))
def test_any_cut_of_the_rows_gives_the_same_rates(cuts, estimator):
    said, g = held_out()
    said = sp.csr_array(said)
    edges = [0, *sorted(cuts), 400]
    parts = [HeldOut.of(said[a:b], g[a:b]) for a, b in pairwise(edges)]
    whole, summed = HeldOut.of(said, g), sum(parts[1:], parts[0])
    for by in ("global", "labels"):
        ours, wanted = summed.c(estimator, by), whole.c(estimator, by)
        for name in ("c", "low", "high", "overall", "identifiable"):
            assert_allclose(getattr(ours, name), getattr(wanted, name), rtol=1e-12)


def test_without_a_pull_e1_is_the_mean_of_g_where_said_and_its_standard_error():
    said, g = held_out()
    rates = HeldOut.of(sp.csr_array(said), g).c("e1", "labels", kappa=1e-9)
    for j in range(4):
        at = g[said[:, j], j]
        error = 1.96 * sem(at, ddof=0)
        assert_allclose([rates.c[j], rates.high[j] - at.mean()], [at.mean(), error], rtol=1e-6)
    at = g[said]
    wanted = at.mean() + 1.96 * sem(at, ddof=0) * np.array([0, -1, 1])
    assert_allclose(rates.overall, wanted)


def test_e2_has_the_standard_error_of_a_bootstrap_over_rows():
    said, g = held_out()
    said, g = said[:, :1], g[:, :1]
    c, low, high = HeldOut.of(sp.csr_array(said), g).c("e2").overall
    ratio = lambda s, p, axis: (s * p).sum(axis=axis) / p.sum(axis=axis)
    drawn = bootstrap(
        (said[:, 0], g[:, 0]), ratio, paired=True, vectorized=True, n_resamples=2000,
        method="basic", rng=np.random.default_rng(0),
    )  # fmt: skip
    assert_allclose((high - low) / (2 * 1.96), drawn.standard_error, rtol=0.08)
    assert_allclose(c, g[said].sum() / g.sum())


@pytest.mark.parametrize("estimator", ["e1", "e2", "e3"])
def test_a_label_is_pulled_to_all_labels_as_by_kappa_more_said_entries(estimator):
    said, g = held_out()
    rates = HeldOut.of(sp.csr_array(said), g).c(estimator, "labels", kappa=30.0)
    each = [
        {
            "e1": lambda j: g[said[:, j], j].sum() / max(said[:, j].sum(), 1),
            "e2": lambda j: g[said[:, j], j].sum() / g[:, j].sum(),
            "e3": lambda j: g[:, j].max(),
        }[estimator](j)
        for j in range(5)
    ]
    n = said.sum(axis=0)
    pooled = {
        "e1": g[said].mean(),
        "e2": g[said].sum() / g.sum(),
        "e3": np.average(g.max(axis=0), weights=n),
    }[estimator]
    assert_allclose(rates.overall[0], pooled)
    assert_allclose(rates.c, [(n[j] * each[j] + 30 * pooled) / (n[j] + 30) for j in range(5)])
    assert np.isnan(rates.low).all() == np.isnan(rates.overall[1]) == (estimator == "e3")


def test_fewer_said_entries_give_wider_intervals_and_never_said_labels_the_widest():
    said, g = held_out(n=2000)
    said[:, 1] &= np.arange(2000) % 10 == 0
    rates = HeldOut.of(sp.csr_array(said), g).c("e1", "labels")
    width = rates.high - rates.low
    assert width[0] < width[1] < width[4]


# ---- profiles


def quadratic(at, sharpness):
    """J = ½ sharpness (logit c - logit at)² on the grid, 1.0 read as 0.999."""
    z = logit(np.minimum(GRID, 0.999))
    return 0.5 * sharpness * (z - logit(at)) ** 2


def test_a_quadratic_profile_gives_its_minimum_and_1_96_standard_errors_in_the_logit():
    at, sharpness = np.array([0.33, 0.62, 0.45]), np.array([8.0, 30.0, 400.0])
    J = np.stack([quadratic(a, s) for a, s in zip(at, sharpness)], axis=1)
    rates = profile_rates(GRID, J, np.full(3, 100), kappa=1e-9)
    assert_allclose(rates.c, at, rtol=1e-6)
    assert_allclose(logit(rates.high), logit(at) + 1.96 / np.sqrt(sharpness), rtol=1e-6)
    assert_allclose(logit(rates.low), logit(at) - 1.96 / np.sqrt(sharpness), rtol=1e-6)
    centre = (sharpness * logit(at)).sum() / sharpness.sum()
    ends = centre + 1.96 / np.sqrt(sharpness.sum()) * np.array([0, -1, 1])
    assert_allclose(rates.overall, expit(ends), rtol=1e-6)


@pytest.mark.parametrize("kappa", [1.0, 10.0, 100.0])
def test_a_labels_rate_minimises_its_profile_and_kappa_entries_at_the_pooled_rate(kappa):
    grid = expit(np.linspace(-4, 4, 161))
    curve = lambda c: 6 * (logit(c) + 1) ** 2
    J = np.stack([curve(grid), 500 * (logit(grid) - 0.5) ** 2], axis=1)
    rates = profile_rates(grid, J, np.array([10, 1000]), kappa)
    pooled = rates.overall[0]
    lost = lambda c: curve(c) - kappa * (pooled * np.log(c) + (1 - pooled) * np.log1p(-c))
    wanted = minimize_scalar(lost, bounds=(0.02, 0.98), method="bounded", options={"xatol": 1e-9})
    assert_allclose(rates.c[0], wanted.x, atol=1e-4)
    assert rates.low[0] <= rates.c[0] <= rates.high[0]


def test_flat_profiles_are_not_identifiable_and_take_the_pooled_rate():
    J = np.stack([quadratic(0.5, 500.0), np.zeros(len(GRID)), quadratic(0.5, 500.0)], axis=1)
    rates = profile_rates(GRID, J, np.array([200, 200, 0]))
    assert_array_equal(rates.identifiable, [True, False, False])  # sharp, flat, never said
    assert_allclose(rates.c, 0.5, atol=0.01)
    assert_allclose([rates.low[1], rates.high[1]], [GRID[0], 1.0])


@pytest.mark.parametrize(("slope", "end"), [(3.0, 0.05), (-3.0, 1.0)])
def test_a_profile_that_only_falls_ends_with_the_grid(slope, end):
    J = (slope * logit(np.minimum(GRID, 0.999)))[:, None]
    rates = profile_rates(GRID, J, np.array([50]), kappa=1e-9)
    assert_allclose([rates.overall[0], rates.c[0]], end, rtol=1e-12)
    assert_allclose(rates.high[0] if slope < 0 else rates.low[0], end, rtol=1e-12)
    assert rates.low[0] < rates.high[0]


def test_the_profile_of_a_logistic_pu_model_covers_the_true_rate():
    rng = np.random.default_rng(0)
    x = rng.normal(size=5000)
    true = rng.random(5000) < expit(4 * x - 1)
    said = true & (rng.random(5000) < 0.5)

    def loss(w, c):
        f = w[0] + w[1] * x
        return -(np.log(c) + log_expit(f[said])).sum() - np.log1p(-c * expit(f[~said])).sum()

    J = [minimize(loss, [0.0, 1.0], args=(min(c, 1 - 1e-9),)).fun for c in GRID]
    rates = profile_rates(GRID, np.array(J)[:, None], np.array([said.sum()]))
    c, low, high = rates.overall
    assert low < 0.5 < high
    assert low < c < high < 1.2 * low
    assert rates.identifiable.all()


# ---- rates


def test_a_rate_is_identifiable_if_said_and_known_within_a_factor_of_three():
    low, high = np.array([0.3, 0.3, 0.3, np.nan, 0.0]), np.array([0.89, 0.91, 0.4, np.nan, 1.0])
    rates = Rates.of(0.35, low, high, (0.35, 0.3, 0.9), "by hand", np.array([1, 9, 0, 9, 9]))
    assert_array_equal(rates.identifiable, [True, False, False, False, False])
    assert rates.low[4] == 1e-3  # kept within [0.001, 1]


def test_the_rate_of_labels_together_is_what_was_said_of_all_that_is_true():
    n, c = np.array([10, 200, 0]), np.array([0.1, 0.8, 0.5])
    rates = Rates.of_labels(c, c / 1.1, np.minimum(c * 1.1, 1), "by hand", n)
    assert_allclose(rates.overall[0], 210 / (10 / 0.1 + 200 / 0.8))
    one = Rates.of_labels(c[:1], c[:1] / 1.1, c[:1] * 1.1, "by hand", n[:1])
    assert_allclose(one.overall, [0.1, 0.1 / 1.1, 0.1 * 1.1])
    narrower = rates.overall[0] / rates.overall[1]
    assert 1 < narrower < 1.1  # independent errors average out


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: HeldOut.of(sp.csr_array((3, 2), dtype=bool), np.ones((3, 1))), r"g has shape \(3"),
        (lambda: _nothing().c(), "no label was said in the held-out rows"),
        (lambda: _something().c("e4"), "estimator must be one of 'e1'.*got 'e4'"),
        (lambda: _something().c(by="row"), "by must be one of 'global', 'labels'; got 'row'"),
        (lambda: _something().c(kappa=0), "kappa must be a finite number above 0; got 0"),
        (lambda: profile_rates([0.1, 0.5], np.ones((2, 1)), [1]), "grid must hold three or more"),
        (lambda: profile_rates(GRID[::-1], np.ones((11, 1)), [1]), "grid must hold three or more"),
        (lambda: profile_rates([0.1, 0.5, 1.1], np.ones((3, 1)), [1]), "grid must hold three or"),
        (lambda: profile_rates(GRID, np.ones((1, 11)), [1]), r"11 rates and 1 labels; got shape"),
        (lambda: profile_rates(GRID, np.full((11, 1), np.nan), [1]), "J must hold one finite"),
        (lambda: profile_rates(GRID, np.ones((11, 1)), [1], -1), "kappa must be .*got -1"),
    ],
)
def test_bad_input_is_one_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


def _nothing():
    return HeldOut.of(sp.csr_array((3, 2), dtype=bool), np.ones((3, 2)))


def _something():
    return HeldOut.of(sp.csr_array(np.eye(2, dtype=bool)), np.ones((2, 2)))
