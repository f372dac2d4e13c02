"""Climbing many functions at once: none goes down, and all arrive."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from tacit.engines.solvers import Climbing, climb, shared_curvature

BOUND = 0.25


def logistic(m=12, n=60, k=4, seed=0):
    """m logistic ridge problems on shared rows: some rare, one with no yes, one with no no."""
    rng = np.random.default_rng(seed)
    A = np.hstack([rng.standard_normal((n, k - 1)), np.ones((n, 1))])
    rates = np.linspace(0.02, 0.6, m)
    Y = (rng.random((m, n)) < rates[:, None]).astype(float)
    Y[0], Y[1] = 0, 1
    reg = np.array([0.5] * (k - 1) + [0.05])

    def evaluate(x):
        Z = x @ A.T
        R = Y - expit(Z)
        value = log_expit(np.where(Y > 0, Z, -Z)).sum(1) - 0.5 * (reg * x * x).sum(1)
        return Climbing(value, R @ A - reg * x, abs(R).mean(1), 10 * value)

    return evaluate, A.T @ A, reg, rng.standard_normal((m, k))


def wavy(m=30, k=3, seed=0):
    """Sums of sines, neither concave nor bounded by the curvature that they tell."""
    rng = np.random.default_rng(seed)
    T, phase = rng.uniform(1, 4, (m, k)), rng.uniform(0, 6, (m, k))

    def evaluate(x):
        value = np.sin(T * x + phase).sum(1)
        return Climbing(value, T * np.cos(T * x + phase), np.full(m, 1e-3), value)

    return evaluate, np.eye(k), np.ones(k), rng.standard_normal((m, k))


def values_of_steps(evaluate, gram, reg, x, steps):
    values = [evaluate(x).value]
    solve = shared_curvature(gram, reg)
    for _ in range(steps):
        x, at = climb(evaluate, x, solve, BOUND, 1)
        values.append(at.value)
    return np.array(values), x


@pytest.mark.parametrize("functions", [logistic, wavy])
@pytest.mark.parametrize("seed", range(3))
def test_no_function_ever_goes_down(functions, seed):
    evaluate, gram, reg, x = functions(seed=seed)
    start = evaluate(x).value
    values, _ = values_of_steps(evaluate, gram, reg, 5 * x, 8)
    assert (np.diff(values, axis=0) >= 0).all()
    for steps in (1, 2, 7):
        _, at = climb(evaluate, x, shared_curvature(gram, reg), BOUND, steps)
        assert (at.value >= start).all()
    assert (at.value > start).any()


def test_one_step_down_does_not_hold_back_the_others():
    """A function that must go back stays; the rest move at once."""
    evaluate, gram, reg, x = wavy()
    new, at = climb(evaluate, x, shared_curvature(gram, reg), 1e9, 1)
    moved = (new != x).any(1)
    assert 0 < moved.sum() < len(x)
    assert (at.value > evaluate(x).value)[moved].all()


def test_a_function_that_went_back_tries_again_with_more_curvature():
    evaluate, gram, reg, x = wavy()
    solve = shared_curvature(gram, reg)
    stayed = (climb(evaluate, x, solve, 1e9, 1)[0] == x).all(1)
    later = (climb(evaluate, x, solve, 1e9, 12)[0] == x).all(1)
    assert stayed.any()
    assert not later.any()


@pytest.mark.parametrize("steps", [3, 400])
def test_logistic_ridge_problems_reach_the_maxima_that_scipy_finds(steps):
    """In one long climb, and in many short ones: no function may stand still for ever."""
    evaluate, gram, reg, x = logistic()
    solve = shared_curvature(gram, reg)
    for _ in range(400 // steps):
        x, at = climb(evaluate, x, solve, BOUND, steps)
    all_at = lambda z: np.tile(z, (len(x), 1))
    for i in range(len(x)):
        function = lambda z, i=i: -evaluate(all_at(z)).value[i]
        slope = lambda z, i=i: -evaluate(all_at(z)).slope[i]
        best = minimize(function, np.zeros(x.shape[1]), jac=slope, tol=1e-10)
        assert_allclose(x[i], best.x, atol=1e-4)
        assert_allclose(at.value[i], -best.fun, rtol=1e-9)


def test_what_it_gives_back_is_the_evaluation_where_each_function_stands():
    for functions in (logistic, wavy):
        evaluate, gram, reg, x = functions()
        x, at = climb(evaluate, x, shared_curvature(gram, reg), BOUND, 2)
        for got, wanted in zip(at, evaluate(x)):
            assert_allclose(got, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("rank", [2, 5])
def test_shared_curvature_is_the_dense_solve_of_each_row(rank):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((7, rank)) @ rng.standard_normal((rank, 5))  # singular for rank 2
    reg, S, c = rng.uniform(0.01, 2, 5), rng.standard_normal((9, 5)), rng.uniform(0, 0.3, 9)
    c[0] = 0
    wanted = [np.linalg.solve(ci * A.T @ A + np.diag(reg), s) for ci, s in zip(c, S)]
    assert_allclose(shared_curvature(A.T @ A, reg)(S, c), wanted, atol=1e-12)
    single = shared_curvature((A.T @ A).astype("f4"), reg.astype("f4"))(
        S.astype("f4"), c.astype("f4")
    )
    assert single.dtype == np.float32
    assert_allclose(single, wanted, rtol=1e-3, atol=1e-4)


def test_curvature_at_the_bound_cannot_go_down():
    """Böhning 1992: at c = ¼ a logistic function never has to go back, wherever it stands."""
    evaluate, gram, reg, x = logistic()
    for scale in (0, 1, 20):
        at = evaluate(scale * x)
        new = scale * x + shared_curvature(gram, reg)(at.slope, np.full(len(x), BOUND))
        assert (evaluate(new).value >= at.value - 1e-12 * abs(at.value)).all()
