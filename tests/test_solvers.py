import numpy as np
import pytest
from numpy.testing import assert_allclose

from tacit.solvers import cg, leading_subspace


def spd(eigenvalues, rng):
    Q, _ = np.linalg.qr(rng.standard_normal((len(eigenvalues),) * 2))
    return Q * eigenvalues @ Q.T


def test_cg_needs_one_product_per_distinct_eigenvalue():
    """A cost, not only an answer: steepest descent also reaches x, but far later."""
    rng = np.random.default_rng(0)
    A, b = spd(np.repeat([1.0, 10.0, 100.0], 4), rng), rng.standard_normal(12)
    x, n_products = cg(lambda v: A @ v, b, rtol=1e-10, max_iter=50)
    assert_allclose(x, np.linalg.solve(A, b), rtol=1e-8)
    assert n_products == 3


def test_columns_take_as_many_products_as_the_hardest_one_alone():
    rng = np.random.default_rng(0)
    A, b = spd(np.linspace(1, 10, 12), rng), rng.standard_normal((12, 4))
    m = np.array([1.0, 1e-3, 1e-6, 0.0])  # ever better conditioned: A m + I
    apply = lambda V: (A @ V) * m + V
    wanted = np.stack([np.linalg.solve(m[j] * A + np.eye(12), b[:, j]) for j in range(4)], axis=1)
    together = cg(apply, b, rtol=1e-10, max_iter=50, columns=True)
    alone = cg(lambda v: A @ v + v, b[:, 0], rtol=1e-10, max_iter=50)
    assert_allclose(together.x, wanted, rtol=1e-8)
    assert together.n_products == alone.n_products


def test_columns_that_start_solved_stay_put():
    A = np.diag([1.0, 2.0])
    x, n_products = cg(
        lambda V: A @ V, A @ np.ones((2, 3)), np.ones((2, 3)), rtol=0, max_iter=5, columns=True
    )
    assert_allclose(x, 1.0)
    assert n_products == 1


@pytest.mark.parametrize("max_iter", [1, 3, 6])
def test_cg_lowers_the_quadratic_with_every_step_from_a_warm_start(max_iter):
    rng = np.random.default_rng(1)
    A, b, x0 = spd(np.logspace(0, 4, 20), rng), rng.standard_normal(20), rng.standard_normal(20)
    value = lambda x: 0.5 * x @ A @ x - b @ x
    shorter = cg(lambda v: A @ v, b, x0, rtol=0, max_iter=max_iter - 1).x
    assert value(cg(lambda v: A @ v, b, x0, rtol=0, max_iter=max_iter).x) < value(shorter)


def test_leading_subspace_finds_the_top_eigenvectors_in_order():
    rng = np.random.default_rng(0)
    A = spd(np.array([9.0, 7.0, 5.0, 1.0, 0.5, 0.1, 0.0, 0.0]), rng)
    V = leading_subspace(lambda V: A @ V, rng.standard_normal((8, 4)), n_iter=30)[:, :3]
    wanted = np.linalg.eigh(A)[1][:, ::-1][:, :3]
    assert_allclose(np.abs(np.sum(V * wanted, axis=0)), 1.0, rtol=1e-8)
