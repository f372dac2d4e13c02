"""`softmax`, `log_sum_exp`, `adagrad` and `Sparse.occupied` on every backend, against SciPy."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from scipy.special import softmax as softmax_of

agrees = settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
dtypes = pytest.mark.parametrize("dtype", ["float32", "float64"])
maybe_masked = pytest.mark.parametrize("masked", [False, True], ids=["complete", "masked"])
weights = pytest.mark.parametrize("by_count", [False, True], ids=["uniform", "label count"])


def problem(n, n_labels, start, masked, seed, dtype="float64", scale=3.0):
    """Scores of n rows, the first of which is row `start` of the labels; some rows have none."""
    rng = np.random.default_rng(seed)
    shape = (start + n + 2, n_labels)
    Y, observed = rng.random(shape) < 0.3, rng.random(shape) < 0.5
    for pattern in (Y, observed):
        pattern[rng.random(len(pattern)) < 0.3] = False
    F, offset = scale * rng.standard_normal((n, n_labels)), rng.standard_normal(n_labels)
    Y, observed = (Y & observed, observed) if masked else (Y, None)
    return F.astype(dtype), offset.astype(dtype), Y, observed


def run(backend, F, offset, Y, observed, start, by_count):
    """The verb, on a copy of F: it may write there."""
    to = lambda a: backend.asarray(a.copy())
    pattern = lambda a: backend.sparse(sp.csr_array(a), pattern=True)
    omega = None if observed is None else pattern(observed)
    rows = slice(start, start + len(F))
    got = backend.softmax(to(F), to(offset), pattern(Y), omega, rows, by_count)
    return [backend.to_numpy(part) for part in got]


def dense(F, offset, Y, observed, start, by_count):
    """R and the losses, row by row, in float64."""
    H, rows = F.astype(float) + offset.astype(float), range(start, start + len(F))
    R, losses = np.zeros_like(H), np.zeros(len(H))
    for i, row in enumerate(rows):
        known = np.ones(H.shape[1], bool) if observed is None else observed[row]
        count = np.count_nonzero(Y[row])
        if count:
            weight = count if by_count else 1
            R[i, known] = weight * softmax_of(H[i, known])
            R[i, Y[row]] -= weight / count
            losses[i] = weight * (logsumexp(H[i, known]) - H[i, Y[row]].mean())
    return R, losses


def close(got, wanted, dtype):
    for part, truth in zip(got, wanted, strict=True):
        assert part.shape == truth.shape
        assert part.dtype == dtype
        scale = np.abs(truth).max(initial=1.0)
        tolerance = {"float32": 2e-6, "float64": 1e-12}[dtype]
        assert_allclose(part, truth, rtol=0, atol=scale * tolerance)


@dtypes
@agrees
@given(
    n=st.integers(0, 40),
    n_labels=st.integers(1, 20),
    start=st.integers(0, 5),
    masked=st.booleans(),
    by_count=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
@example(n=33, n_labels=17, start=4, masked=False, by_count=True, seed=1)
@example(n=33, n_labels=17, start=4, masked=True, by_count=True, seed=1)
def test_softmax_is_the_dense_loss_and_its_slope(
    backend, n, n_labels, start, masked, by_count, seed, dtype
):
    case = problem(n, n_labels, start, masked, seed, dtype)
    close(run(backend, *case, start, by_count), dense(*case, start, by_count), dtype)


@maybe_masked
@weights
def test_the_slope_of_softmax_is_the_derivative_of_its_loss(backend, masked, by_count):
    F, *rest = problem(6, 5, 1, masked, 0)
    R, _ = run(backend, F, *rest, 1, by_count)
    loss = lambda F: run(backend, F, *rest, 1, by_count)[1].sum()
    for place in np.ndindex(F.shape):
        step = np.zeros_like(F)
        step[place] = 1e-5
        assert_allclose(R[place], (loss(F + step) - loss(F - step)) / 2e-5, atol=1e-8)


@dtypes
@maybe_masked
@weights
def test_a_row_of_slopes_sums_to_nothing_and_a_row_without_labels_has_none(
    backend, masked, by_count, dtype
):
    F, offset, Y, observed = problem(30, 8, 2, masked, 0, dtype)
    R, losses = run(backend, F, offset, Y, observed, 2, by_count)
    assert_allclose(R.sum(1), 0, atol=1e-5 if dtype == "float32" else 1e-13)
    silent = ~Y[2:32].any(1)
    assert 0 < silent.sum() < 30
    assert_array_equal(R[silent], 0)
    assert_array_equal(losses[silent], 0)
    if masked:
        assert_array_equal(R[~observed[2:32]], 0)


@dtypes
@maybe_masked
def test_scores_of_a_thousand_either_way_still_share_out_one(backend, masked, dtype):
    F, offset, Y, observed = problem(30, 8, 2, masked, 0, dtype)
    F = np.where(F > 0, 1000, -1000).astype(dtype)
    R, losses = run(backend, F, offset, Y, observed, 2, False)
    said = Y[2:32]
    P = R + said / np.maximum(said.sum(1, keepdims=True), 1)
    tolerance = 2e-4 if dtype == "float32" else 1e-12  # what is left of a score near 1000
    assert_allclose(P.sum(1), said.any(1), rtol=tolerance)
    wanted = dense(F, offset, Y, observed, 2, False)
    assert_allclose(R, wanted[0], atol=tolerance)
    assert_allclose(losses, wanted[1], rtol=tolerance, atol=tolerance)


@dtypes
def test_where_every_entry_is_known_masked_softmax_is_the_complete_one(backend, dtype):
    F, offset, Y, _ = problem(30, 8, 2, False, 0, dtype)
    complete = run(backend, F, offset, Y, None, 2, True)
    close(run(backend, F, offset, Y, np.ones_like(Y), 2, True), complete, dtype)


@maybe_masked
def test_softmax_leaves_all_but_the_scores_alone(backend, masked):
    F, offset, Y, observed = problem(9, 5, 0, masked, 0)
    patterns = [Y] if observed is None else [Y, observed]
    placed = [backend.sparse(sp.csr_array(p), pattern=True) for p in patterns]
    moved = backend.asarray(offset.copy())
    omega = placed[1] if masked else None
    backend.softmax(backend.asarray(F.copy()), moved, placed[0], omega, slice(0, 9), False)
    assert_array_equal(backend.to_numpy(moved), offset)
    for S, pattern in zip(placed, patterns):
        after = backend.dense(S, slice(0, len(Y)), moved.dtype)
        assert_array_equal(backend.to_numpy(after), pattern)


@dtypes
@agrees
@given(
    n=st.integers(0, 20),
    n_labels=st.integers(1, 20),
    scale=st.sampled_from([1.0, 30.0, 1000.0]),
    seed=st.integers(0, 2**32 - 1),
)
def test_log_sum_exp_is_scipys(backend, n, n_labels, scale, seed, dtype):
    F, offset, *_ = problem(n, n_labels, 0, False, seed, dtype, scale)
    got = backend.log_sum_exp(backend.asarray(F.copy()), backend.asarray(offset.copy()))
    wanted = logsumexp(F.astype(float) + offset.astype(float), axis=1)
    close([backend.to_numpy(got)], [wanted], dtype)


def stepped(theta, S, G, rate):
    S = S + G**2
    return theta - rate * G / (np.sqrt(S) + 1e-8), S


@dtypes
@pytest.mark.parametrize("some", [False, True], ids=["all rows", "some rows"])
def test_adagrad_steps_in_place_where_it_should_and_nowhere_else(backend, some, dtype):
    rng = np.random.default_rng(0)
    theta, S = rng.standard_normal((7, 3)).astype(dtype), rng.random((7, 3)).astype(dtype)
    S[2], S[4] = 0, 1e-18  # a first step, and one where ε matters
    rows = np.array([5, 2, 4]) if some else np.arange(7)
    G = rng.standard_normal((len(rows), 3)).astype(dtype)
    G[0, 0], G[rows == 2, 1], G[rows == 4] = 0, 0, 1e-9
    placed = [backend.asarray(a.copy()) for a in (theta, S, G)]
    backend.adagrad(*placed, 0.1, backend.asarray(rows) if some else None)
    got = [backend.to_numpy(a) for a in placed]
    wanted = stepped(theta[rows].astype(float), S[rows].astype(float), G.astype(float), 0.1)
    close([got[0][rows], got[1][rows], got[2]], [*wanted, G], dtype)
    others = np.setdiff1d(np.arange(7), rows)
    assert_array_equal(got[0][others], theta[others])
    assert_array_equal(got[1][others], S[others])


@dtypes
def test_adagrad_spmm_is_adagrad_with_the_product_as_gradient(backend, dtype):
    rng = np.random.default_rng(0)
    keep = np.array([1.0, 1, 1, 0, 1])[:, None]  # one row has no entries
    T = sp.csr_array(rng.random((5, 9)) * (rng.random((5, 9)) < 0.6) * keep, dtype=dtype)
    theta, S = rng.standard_normal((8, 3)).astype(dtype), rng.random((8, 3)).astype(dtype)
    D, decay = rng.standard_normal((9, 3)).astype(dtype), rng.random(5).astype(dtype)
    rows = np.array([6, 0, 3, 1, 7])
    placed = [backend.asarray(a.copy()) for a in (theta, S)]
    backend.adagrad_spmm(
        *placed, backend.sparse(T), backend.asarray(D), 0.1, backend.asarray(rows),
        backend.asarray(decay),
    )  # fmt: skip
    got = [backend.to_numpy(a) for a in placed]
    G = T.astype(float) @ D.astype(float) + decay[:, None] * theta[rows].astype(float)
    close([a[rows] for a in got], list(stepped(theta[rows], S[rows], G, 0.1)), dtype)
    others = np.setdiff1d(np.arange(8), rows)
    assert_array_equal(got[0][others], theta[others])
    assert_array_equal(got[1][others], S[others])


def test_adagrad_spmm_in_many_pieces_is_the_same(backend):
    rng = np.random.default_rng(0)
    T = sp.random_array((900, 400), density=0.2, rng=rng, format="csr")
    theta, D = rng.standard_normal((900, 40)), rng.standard_normal((400, 40))
    placed = [backend.asarray(a) for a in (theta.copy(), np.zeros_like(theta))]
    rows, decay = backend.asarray(np.arange(900)), backend.asarray(np.full(900, 0.5))
    backend.adagrad_spmm(*placed, backend.sparse(T), backend.asarray(D), 0.1, rows, decay)
    wanted = stepped(theta, 0, T @ D + 0.5 * theta, 0.1)
    close([backend.to_numpy(a) for a in placed], list(wanted), "float64")


@pytest.mark.parametrize("pattern", [False, True], ids=["values", "pattern"])
def test_some_rows_of_a_matrix_are_a_matrix(backend, pattern):
    S = sp.random_array((20, 6), density=0.4, rng=np.random.default_rng(0), format="csr")
    B = np.random.default_rng(1).standard_normal((6, 3))
    part = backend.sparse(S, pattern=pattern).some(slice(3, 11))
    wanted = (S.astype(bool).astype(float) if pattern else S)[3:11] @ B
    assert part.shape == (8, 6)
    assert_allclose(backend.to_numpy(backend.spmm(part, backend.asarray(B))), wanted)
    turned = backend.spmm_t(part, backend.asarray(wanted))
    assert_allclose(
        backend.to_numpy(turned), (S.astype(bool).astype(float) if pattern else S)[3:11].T @ wanted
    )


@pytest.mark.parametrize("pattern", [False, True], ids=["values", "pattern"])
def test_a_matrix_goes_to_scipy_as_it_came(backend, pattern):
    S = sp.random_array((20, 6), density=0.4, rng=np.random.default_rng(0), format="csr")
    got = backend.sparse(S, pattern=pattern).scipy()
    wanted = S.astype(bool) if pattern else S
    assert got.dtype == wanted.dtype
    assert_array_equal(got.toarray(), wanted.toarray())


def test_weights_are_kept_where_they_are_needed(backend):
    """Moved once; a part of them is another array, though it begins at the same place."""
    W = np.arange(12.0).reshape(6, 2)
    for part in (W, W[:3], W[3:]):
        assert_array_equal(backend.to_numpy(backend.kept(part)), part)
        assert backend.kept(part) is backend.kept(part)


def test_adagrad_of_no_rows_does_nothing(backend):
    arrays = [backend.asarray(np.ones(shape)) for shape in ((4, 3), (4, 3), (0, 3))]
    backend.adagrad(*arrays, 0.1, backend.asarray(np.empty(0, np.int64)))
    assert_array_equal(backend.to_numpy(arrays[0]), 1)
    assert_array_equal(backend.to_numpy(arrays[1]), 1)


@pytest.mark.parametrize("pattern", [False, True], ids=["values", "pattern"])
@pytest.mark.parametrize("density", [0.0, 0.1, 0.4])
def test_occupied_is_the_matrix_of_the_rows_that_have_entries(backend, density, pattern):
    S = sp.random_array((20, 6), density=density, rng=np.random.default_rng(0), format="csr")
    B = np.random.default_rng(1).standard_normal((6, 3))
    rows, alone = backend.sparse(S, pattern=pattern).occupied
    wanted = S.toarray() != 0 if pattern else S.toarray()
    has = wanted.any(1)
    assert_array_equal(backend.to_numpy(rows), np.flatnonzero(has))
    assert alone.shape == (has.sum(), 6)
    assert_allclose(
        backend.to_numpy(backend.spmm(alone, backend.asarray(B))), wanted[has] @ B, atol=1e-14
    )
