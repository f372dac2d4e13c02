import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse.linalg import LinearOperator
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from tacit.engines.losses import LOSSES
from tacit.engines.solvers import cg, inverse, leading, leading_eigenpairs, leading_subspace, tron


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
    together = cg(apply, b, rtol=1e-10, max_iter=50, axis=0)
    alone = cg(lambda v: A @ v + v, b[:, 0], rtol=1e-10, max_iter=50)
    assert_allclose(together.x, wanted, rtol=1e-8)
    assert together.n_products == alone.n_products


def test_columns_that_start_solved_stay_put():
    A = np.diag([1.0, 2.0])
    x, n_products = cg(
        lambda V: A @ V, A @ np.ones((2, 3)), np.ones((2, 3)), rtol=0, max_iter=5, axis=0
    )
    assert_allclose(x, 1.0)
    assert n_products == 1


def test_a_column_with_a_loose_tolerance_of_its_own_holds_up_no_other():
    hard, easy = np.logspace(0, 4, 12), np.ones(12)
    scale, b = np.stack([hard, easy], axis=1), np.ones((12, 2))
    rtol = np.array([[1e6, 1e-10]])
    assert cg(lambda V: scale * V, b, rtol=rtol, max_iter=50, axis=0).n_products == 1
    assert cg(lambda V: scale * V, b, rtol=1e-10, max_iter=50, axis=0).n_products > 5


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


def symmetric(n=30):
    """Eigenvalues of both signs, the largest in size negative."""
    return spd(np.linspace(-20, 10, n), np.random.default_rng(0))


def pairs_by_numpy(A, k):
    w, V = np.linalg.eigh(A)
    return w[::-1][:k], V[:, ::-1][:, :k]


def assert_pairs(found, wanted):
    """Eigenvectors have either sign."""
    (w, V), (wanted_w, wanted_V) = found, wanted
    assert_allclose(w, wanted_w, rtol=1e-9, atol=1e-12)
    assert_allclose(V * np.sign(np.sum(V * wanted_V, axis=0)), wanted_V, atol=1e-8)


@pytest.mark.parametrize("k", [1, 4, 30])
def test_leading_eigenpairs_are_numpys_largest_first(k):
    A = symmetric()
    assert_pairs(leading_eigenpairs(A, k), pairs_by_numpy(A, k))


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("form", ["array", "operator"])
def test_leading_eigenpairs_by_products_are_numpys_and_the_same_on_every_run(k, form, monkeypatch):
    monkeypatch.setattr(leading, "_DENSE", 10)
    A, products = symmetric(), []
    operator = LinearOperator((30, 30), matvec=lambda v: products.append(1) or A @ v, dtype=A.dtype)
    T = operator if form == "operator" else A
    first = leading_eigenpairs(T, k)
    assert_pairs(first, pairs_by_numpy(A, k))
    for one, other in zip(first, leading_eigenpairs(T, k)):
        assert_array_equal(one, other)
    assert (len(products) > 0) == (form == "operator")


@pytest.mark.parametrize("k", [1, 4, 30])
def test_leading_eigenpairs_are_the_same_with_pytorch(k):
    torch = pytest.importorskip("torch")
    A = symmetric()
    w, V = leading_eigenpairs(torch.asarray(A), k)
    assert_pairs((w.numpy(), V.numpy()), pairs_by_numpy(A, k))


@pytest.mark.parametrize(("rows", "k", "times"), [(10, 3, 1), (10, 4, 0), (30, 3, 0)])
def test_leading_eigenpairs_are_by_lanczos_where_little_of_a_large_array_is_asked(
    rows, k, times, monkeypatch
):
    calls, eigsh = [], leading.eigsh
    monkeypatch.setattr(leading, "_DENSE", rows)
    counted = lambda *args, **params: calls.append(1) or eigsh(*args, **params)
    monkeypatch.setattr(leading, "eigsh", counted)
    leading_eigenpairs(symmetric(), k)
    assert len(calls) == times


class DenseRisk:
    """Σ_i ℓ(y_ij, x_iᵀ w_j) + ½ λ ‖w_j‖² with w_j a column of w, or a row of it where axis is 1."""

    def __init__(self, X, Y, loss, reg, axis=0):
        self.X, self.Y, self.loss, self.reg, self.axis = X, Y, LOSSES[loss], reg, axis

    def _upright(self, w):
        return w if self.axis == 0 else w.T

    def values(self, w):
        w = self._upright(w)
        losses = self.loss.value(self.Y, self.X @ w).sum(0, keepdims=True, dtype=np.float64)
        return self._upright(losses + 0.5 * self.reg * (w**2).sum(0, keepdims=True))

    def grad(self, w):
        slopes = self.loss.grad(self.Y, self.X @ self._upright(w))
        return self._upright(self.X.T @ slopes) + self.reg * w

    def hessp(self, w):
        bend = self.loss.hess(self.Y, self.X @ self._upright(w))
        return lambda v: (
            self._upright(self.X.T @ (bend * (self.X @ self._upright(v)))) + self.reg * v
        )


def labelled(n_labels=5, dtype=np.float64):
    """Features of very different sizes, and labels from common to rare."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((80, 6)) * np.logspace(0, -1.5, 6)
    Z = X @ rng.standard_normal((6, n_labels)) + rng.standard_normal((80, n_labels))
    Y = np.quantile(Z, np.linspace(0.5, 0.95, n_labels), axis=0).diagonal() < Z
    return X.astype(dtype), Y.astype(dtype)


def norms(g, axis=0):
    return np.sqrt((g**2).sum(axis, keepdims=True))


TIGHT = dict(gtol=1e-9, max_iter=100, cg_max_iter=50)


def test_tron_minimises_the_logistic_risk_as_scikit_learn_does():
    X, Y = labelled()
    got = tron(DenseRisk(X, Y, "logistic", reg=0.3), np.zeros((6, 5)), **TIGHT).w
    theirs = LogisticRegression(
        C=1 / 0.3, fit_intercept=False, solver="newton-cholesky", tol=1e-10, max_iter=1000
    )
    wanted = [theirs.fit(X, Y[:, j]).coef_[0].copy() for j in range(5)]
    assert_allclose(got.T, wanted, rtol=1e-6, atol=1e-8)


def test_tron_minimises_the_squared_hinge_as_liblinear_does():
    """LIBLINEAR's ½‖w‖² + C Σ max(0, 1 - t z)² is ours over λ where C = 1 / 2λ."""
    X, Y = labelled()
    got = tron(DenseRisk(X, Y, "squared_hinge", reg=0.3), np.zeros((6, 5)), **TIGHT).w
    theirs = LinearSVC(C=1 / 0.6, dual=False, fit_intercept=False, tol=1e-12, max_iter=10_000)
    wanted = [theirs.fit(X, Y[:, j]).coef_[0].copy() for j in range(5)]
    assert_allclose(got.T, wanted, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
@pytest.mark.parametrize("axis", [0, 1])
def test_many_problems_at_once_take_the_steps_that_each_takes_alone(axis, loss):
    """Stopped early and loosely, so that a step size or a region shared by two would show."""
    X, Y = labelled()
    start = np.random.default_rng(4).standard_normal((6, 5))
    turned = lambda w: w if axis == 0 else w.T
    limits = dict(gtol=0.5, max_iter=3, cg_max_iter=3)
    together = tron(DenseRisk(X, Y, loss, 0.01, axis), turned(start), **limits)
    for j in range(5):
        f = DenseRisk(X, Y[:, j : j + 1], loss, 0.01, axis)
        alone = tron(f, turned(start[:, j : j + 1]), **limits)
        assert_allclose(turned(together.w)[:, j : j + 1], turned(alone.w), rtol=1e-9)
        assert_allclose(together.values.ravel()[j], alone.values.ravel()[0], rtol=1e-12)


def test_tron_started_at_the_solution_takes_no_product_and_stays():
    f = DenseRisk(*labelled(), "logistic", reg=0.3)
    limits = dict(gtol=1e-5, max_iter=100, cg_max_iter=50)
    first = tron(f, np.zeros((6, 5)), **limits)
    again = tron(f, first.w, **limits)
    assert first.n_products > 0
    assert again.n_products == 0
    assert_array_equal(again.w, first.w)


def test_gtol_is_absolute_and_each_problem_may_have_its_own():
    f = DenseRisk(*labelled(), "logistic", reg=0.3)
    near = tron(f, np.zeros((6, 5)), **TIGHT).w + 1e-4
    size, limits = norms(f.grad(near)), dict(max_iter=20, cg_max_iter=20)
    assert tron(f, near, gtol=1.01 * size, **limits).n_products == 0
    one = size * np.array([[1.01, 1.01, 0.5, 1.01, 1.01]])
    moved = (tron(f, near, gtol=one, **limits).w != near).any(axis=0)
    assert_array_equal(moved, [False, False, True, False, False])
    assert (norms(f.grad(tron(f, near, gtol=one, **limits).w)) <= one).all()


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_no_step_of_tron_raises_a_value(loss):
    f = DenseRisk(*labelled(), loss, reg=1e-3)
    w = 5 * np.random.default_rng(0).standard_normal((6, 5))
    limits = dict(gtol=0.0, cg_max_iter=20)
    runs = [tron(f, w, max_iter=m, **limits) for m in range(12)]
    for run in runs:
        assert_allclose(run.values, f.values(run.w), rtol=1e-14)
    values = np.concatenate([run.values for run in runs])
    assert (np.diff(values, axis=0) <= 0).all()
    assert (values[-1] < values[0]).all()


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_in_float32_tron_ends_where_rounding_does_and_stays_float32(loss):
    """No gradient ever meets gtol = 0: only the rounding of f ends it."""
    f = DenseRisk(*labelled(dtype=np.float32), loss, reg=np.float32(0.3))
    w, _, n_products = tron(
        f, np.zeros((6, 5), np.float32), gtol=0.0, max_iter=10_000, cg_max_iter=20
    )
    wanted = tron(DenseRisk(*labelled(), loss, reg=0.3), np.zeros((6, 5)), **TIGHT).w
    assert w.dtype == np.float32
    assert n_products < 1000
    assert_allclose(w, wanted, atol=2e-3)


def test_the_first_step_is_no_longer_than_the_gradient():
    """A Newton step would be 100 times longer: it is cut where the first region ends."""
    f = DenseRisk(np.zeros((1, 3)), np.zeros((1, 2)), "squared", reg=0.01)
    start = np.array([[3.0, 0.0], [0.0, 4.0], [4.0, 3.0]])
    step = tron(f, start, gtol=0.0, max_iter=1, cg_max_iter=10).w - start
    assert_allclose(norms(step), norms(f.grad(start)), rtol=1e-12)


class Cone:
    """100 √(1 + w²), whose Newton step overshoots from beyond 1: w - f'/f'' = -w³."""

    axis = 0

    def __init__(self):
        self.seen = []

    def values(self, w):
        self.seen.append(w.item())
        return 100 * np.sqrt(1 + w**2)

    def grad(self, w):
        return 100 * w / np.sqrt(1 + w**2)

    def hessp(self, w):
        return lambda v: 100 * v / (1 + w**2) ** 1.5


def test_a_step_that_the_model_over_promises_is_refused_and_the_region_shrinks():
    start, f = np.array([[2.0]]), Cone()
    assert_array_equal(tron(f, start, gtol=1e-6, max_iter=1, cg_max_iter=5).w, start)
    assert_allclose(f.seen, [2, -8])
    f = Cone()
    w = tron(f, start, gtol=1e-6, max_iter=30, cg_max_iter=5).w
    assert_allclose(f.seen[:2], [2, -8])
    assert 0 < 2 - f.seen[2] <= 0.5 * (2 - f.seen[1])  # from 2 again, at most half as far
    assert_allclose(w, 0, atol=1e-8)


def by_lin_and_more(f, w, n_steps):
    """The points that LIBLINEAR's rules try for a function of one variable, written as it does."""
    value, slope, bend = lambda w: 100 * (1 + w * w) ** 0.5, f.grad, lambda w: f.hessp(w)(1.0)
    radius, tried = abs(slope(w)), []
    for step in range(n_steps):
        g, h = slope(w), bend(w)
        s = -g / h if abs(g / h) <= radius else -np.sign(g) * radius
        tried.append(w + s)
        foretold, actual = -(g * s + 0.5 * h * s * s), value(w) - value(w + s)
        if step == 0:
            radius = min(radius, abs(s))
        excess = value(w + s) - value(w) - g * s
        alpha = 4 if excess <= 0 else max(0.25, -0.5 * g * s / excess)
        if actual < 1e-4 * foretold:
            radius = min(max(alpha, 0.25) * abs(s), 0.5 * radius)
        elif actual < 0.25 * foretold:
            radius = max(0.25 * radius, min(alpha * abs(s), 0.5 * radius))
        elif actual < 0.75 * foretold:
            radius = max(0.25 * radius, min(alpha * abs(s), 4 * radius))
        else:
            radius = max(radius, min(alpha * abs(s), 4 * radius))
        if actual > 1e-4 * foretold:
            w = w + s
    return tried


@pytest.mark.parametrize("start", [0.9, 1.02, 1.3, 2.0, 5.0, 30.0, -400.0])
def test_in_one_variable_the_points_tried_are_those_of_lin_and_more(start):
    f = Cone()
    tron(f, np.array([[start]]), gtol=1e-9, max_iter=30, cg_max_iter=5)
    tried = f.seen[1:]
    assert_allclose(tried, by_lin_and_more(f, start, len(tried)), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_inverse_is_that_of_the_matrix_and_symmetric_to_the_last_bit(dtype):
    A = spd(np.linspace(1, 10, 12), np.random.default_rng(0)).astype(dtype)
    A = (A + A.T) / 2
    B = inverse(A)
    assert B.dtype == dtype
    assert_allclose(B, np.linalg.inv(A), rtol=1e3 * np.finfo(dtype).eps, atol=np.finfo(dtype).eps)
    assert_array_equal(B, B.T)


def test_the_inverse_is_the_same_with_pytorch():
    torch = pytest.importorskip("torch")
    A = spd(np.linspace(1, 10, 12), np.random.default_rng(0))
    assert_allclose(inverse(torch.asarray(A)).numpy(), inverse(A), rtol=1e-10, atol=1e-14)
