"""Packed Grams and their solves on every backend against a float64 loop, over random shapes."""

import threading

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

packed_agrees = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
sizes = {"r": st.integers(0, 20), "k": st.integers(1, 14), "m": st.integers(1, 50)}
seeds = st.integers(0, 2**32 - 1)
dtypes = pytest.mark.parametrize("dtype", ["float32", "float64"])


def problem(r, k, m, seed, dtype):
    rng = np.random.default_rng(seed)
    A, weights = rng.standard_normal((r, k)), rng.random((r, m))
    B, reg = rng.standard_normal((m, k)), 1 + rng.random(k)
    return [a.astype(dtype) for a in (A, weights, B, reg)]


def close(backend, got, wanted, dtype):
    got = backend.to_numpy(got)
    assert got.dtype == dtype
    scale = np.abs(wanted).max(initial=1.0)
    assert_allclose(got, wanted, atol=scale * {"float32": 1e-4, "float64": 1e-11}[dtype])


def wide_grams(A, weights):
    """One Gram at a time, in float64."""
    A, weights = A.astype(float), weights.astype(float)
    return np.array([np.einsum("j,jp,jq->pq", w, A, A) for w in weights.T])


@dtypes
@packed_agrees
@given(**sizes, seed=seeds)
@example(r=5, k=1, m=1, seed=0)
@example(r=0, k=6, m=17, seed=0)
def test_packed_grams_are_the_lower_triangles_row_by_row(backend, r, k, m, seed, dtype):
    A, weights, _, _ = problem(r, k, m, seed, dtype)
    got = backend.packed_grams(backend.asarray(A), backend.asarray(weights))
    p, q = np.tril_indices(k)  # (0, 0), (1, 0), (1, 1), (2, 0), …
    assert_array_equal(p * (p + 1) // 2 + q, np.arange(len(p)))
    close(backend, got, wide_grams(A, weights)[:, p, q].T, dtype)


@dtypes
@packed_agrees
@given(**sizes, seed=seeds)
@example(r=9, k=1, m=1, seed=0)
@example(r=40, k=33, m=33, seed=0)  # several tiles, and one problem more than whole chunks
@example(r=40, k=32, m=16, seed=0)  # tiles and chunks come out even
def test_solve_packed_is_numpys_solve_of_each_problem(backend, r, k, m, seed, dtype):
    A, weights, B, reg = problem(r, k, m, seed, dtype)
    G = wide_grams(A, weights)
    p, q = np.tril_indices(k)
    packed = G[:, p, q].T.astype(dtype)
    got = backend.solve_packed(*map(backend.asarray, (packed, B, reg)))
    wanted = [np.linalg.solve(g + np.diag(reg), b) for g, b in zip(G, B.astype(float))]
    close(backend, got, np.array(wanted), dtype)


@dtypes
def test_without_rows_the_solution_is_b_over_reg(backend, dtype):
    A, weights, B, reg = problem(0, 5, 19, 0, dtype)
    G = backend.packed_grams(backend.asarray(A), backend.asarray(weights))
    got = backend.solve_packed(G, backend.asarray(B), backend.asarray(reg))
    close(backend, got, B.astype(float) / reg, dtype)


def test_packed_verbs_do_not_depend_on_the_size_of_their_blocks(backend, monkeypatch):
    arrays = [backend.asarray(a) for a in problem(9, 7, 21, 0, "float64")]
    A, weights, B, reg = arrays
    G = backend.packed_grams(A, weights)
    X = backend.solve_packed(G, B, reg)
    module = type(backend).__module__
    for name, size in (("_PRODUCT_BYTES", 9 * 8 * 11), ("_BLOCK_ENTRIES", 4 * 7 * 7 * 5)):
        monkeypatch.setattr(f"{module}.{name}", size, raising=False)
    close(backend, backend.packed_grams(A, weights), backend.to_numpy(G), "float64")
    close(backend, backend.solve_packed(G, B, reg), backend.to_numpy(X), "float64")


def test_packed_verbs_leave_their_arguments_alone(backend):
    arrays = problem(9, 7, 21, 0, "float64")
    A, weights, B, reg = (backend.asarray(a.copy()) for a in arrays)
    G = backend.packed_grams(A, weights)
    before = backend.to_numpy(G).copy()
    backend.solve_packed(G, B, reg)
    for after, given_ in zip((A, weights, B, reg, G), (*arrays, before)):
        assert_array_equal(backend.to_numpy(after), given_)


@pytest.mark.parametrize("pivot", [0.0, -1.0])
@pytest.mark.parametrize("place", [0, 3, 5])
def test_a_matrix_that_is_not_positive_definite_is_one_clear_sentence(backend, pivot, place):
    G = np.zeros((21, 20))
    reg = np.ones(6)
    G[place * (place + 3) // 2, 18] = pivot - 1  # one problem's pivot, after reg: `pivot`
    args = [backend.asarray(a) for a in (G, np.ones((20, 6)), reg)]
    with pytest.raises(np.linalg.LinAlgError, match=r"not positive definite; use a larger reg$"):
        backend.solve_packed(*args)


def test_over_keeps_the_order_of_the_items_and_hands_on_errors(backend, monkeypatch):
    from tacit.backends import numpy as module

    monkeypatch.setattr(module._scope, "threads", 2, raising=False)  # one in all other tests
    started = threading.Barrier(2, timeout=20) if type(backend).__name__ == "NumpyBackend" else None

    def work(i):
        if started is not None and i < 2:
            started.wait()  # only side by side do the first two get past each other
        return i * i

    assert backend.parallel_map(work, range(7)) == [i * i for i in range(7)]
    with pytest.raises(ZeroDivisionError):
        backend.parallel_map(lambda i: 1 / i, [2, 1, 0])
