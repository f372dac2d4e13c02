"""Every kernel of every backend against dense NumPy in float64, over random shapes."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from tacit.backends import get_backend

kernels_agree = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@st.composite
def matrices(draw):
    """A sparse S with empty rows and columns, dense A (rows of S) and B (columns of S)."""
    n, d, k = draw(st.integers(0, 12)), draw(st.integers(1, 12)), draw(st.integers(1, 9))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    S = rng.standard_normal((n, d)) * (rng.random((n, d)) < draw(st.sampled_from([0.0, 0.2, 0.9])))
    S[rng.random(n) < 0.3] = 0
    S[:, rng.random(d) < 0.3] = 0
    return S, rng.standard_normal((n, k)), rng.standard_normal((d, k)), rng


def close(backend, got, wanted):
    got = backend.to_numpy(got)
    assert got.dtype == np.float64
    assert_allclose(got, wanted, rtol=1e-10, atol=1e-12)


@kernels_agree
@given(case=matrices())
def test_spmm_and_its_transpose_are_the_dense_products(backend, case):
    S, A, B, _ = case
    sparse, to = backend.sparse(sp.csr_array(S)), backend.asarray
    close(backend, backend.spmm(sparse, to(B)), S @ B)
    close(backend, backend.spmm_t(sparse, to(A)), S.T @ A)
    close(backend, backend.spmm(to(S), to(B)), S @ B)
    close(backend, backend.spmm_t(to(S), to(A)), S.T @ A)


@kernels_agree
@given(case=matrices())
def test_a_product_of_two_sparse_matrices_is_laid_out(backend, case):
    S, _, B, rng = case
    B = B * (rng.random(B.shape) < 0.5)
    close(backend, backend.spmm(*(backend.sparse(sp.csr_array(M)) for M in (S, B))), S @ B)


@kernels_agree
@given(case=matrices())
def test_values_given_take_the_place_of_a_patterns_ones(backend, case):
    S, A, B, rng = case
    pattern, to = sp.csr_array(S != 0), backend.asarray
    values = rng.standard_normal(pattern.nnz)
    filled = sp.csr_array((values, pattern.indices, pattern.indptr), shape=S.shape).toarray()
    sparse = backend.sparse(pattern, pattern=True)
    close(backend, backend.spmm(sparse, to(B)), (S != 0) @ B)
    close(backend, backend.spmm_t(sparse, to(A)), (S != 0).T @ A)
    close(backend, backend.spmm(sparse, to(B), to(values)), filled @ B)
    close(backend, backend.spmm_t(sparse, to(A), to(values)), filled.T @ A)


@kernels_agree
@given(case=matrices())
def test_sddmm_is_the_dense_product_read_on_the_pattern(backend, case):
    S, A, B, _ = case
    pattern = sp.csr_array(S != 0)
    got = backend.sddmm(
        backend.sparse(pattern, pattern=True), backend.asarray(A), backend.asarray(B)
    )
    close(backend, got, (A @ B.T)[S != 0])


@kernels_agree
@given(case=matrices())
def test_cross_is_the_dense_product_of_the_transpose(backend, case):
    S, A, _, rng = case
    T = (rng.random((len(S), 5)) < 0.3).astype(float)
    placed = {
        "sparse": (backend.sparse(sp.csr_array(S)), S),
        "dense": (backend.asarray(A), A),
        "pattern": (backend.sparse(sp.csr_array(T), pattern=True), T),
    }
    for left, left_dense in placed.values():
        for right, right_dense in placed.values():
            close(backend, backend.cross(left, right), left_dense.T @ right_dense)


@kernels_agree
@given(case=matrices())
def test_grams_are_the_weighted_sums_of_outer_products(backend, case):
    S, A, _, rng = case
    pattern = sp.csr_array(S != 0)
    values = rng.random(pattern.nnz)
    weights = sp.csr_array((values, pattern.indices, pattern.indptr), shape=S.shape).toarray()
    sparse, to, d = backend.sparse(pattern, pattern=True), backend.asarray, S.shape[1]
    for columns in (slice(0, d), slice(d // 3, d // 2 + 1)):
        plain = np.einsum("ij,ip,iq->jpq", (S != 0)[:, columns], A, A)
        close(backend, backend.grams(sparse, to(A), columns), plain)
        weighted = np.einsum("ij,ip,iq->jpq", weights[:, columns], A, A)
        close(backend, backend.grams(sparse, to(A), columns, to(values)), weighted)


def test_solve_spd_solves_each_system_of_the_batch(backend):
    rng = np.random.default_rng(0)
    root, b = rng.standard_normal((7, 4, 6)), rng.standard_normal((7, 4))
    G = root @ root.transpose(0, 2, 1)
    got = backend.solve_spd(backend.asarray(G), backend.asarray(b))
    assert_allclose(np.einsum("jpq,jq->jp", G, backend.to_numpy(got)), b, rtol=1e-8)


@kernels_agree
@given(case=matrices(), k=st.integers(1, 15), ties=st.booleans())
def test_top_k_is_a_stable_sort_without_the_entries_to_skip(backend, case, k, ties):
    S, A, B, _ = case
    if ties:
        A, B = np.sign(A), np.sign(B)
    skip = backend.sparse(sp.csr_array(S != 0), pattern=True)
    got = backend.top_k(backend.asarray(A), backend.asarray(B), k, skip)
    scores = np.where(S != 0, -np.inf, A @ B.T)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    best = np.take_along_axis(scores, order, 1)
    assert_array_equal(got.indices, np.where(best == -np.inf, -1, order))
    assert_allclose(got.scores, best, rtol=1e-12)
    whole = backend.top_k(backend.asarray(A @ B.T), None, k, None)
    assert_array_equal(whole.indices, np.argsort(-(A @ B.T), axis=1, kind="stable")[:, :k])


def test_blocked_top_k_does_not_depend_on_the_size_of_its_blocks(backend, monkeypatch):
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((50, 3)), rng.standard_normal((20, 3))
    skip = backend.sparse(sp.csr_array(rng.random((50, 20)) < 0.3), pattern=True)
    run = lambda: backend.top_k(backend.asarray(A), backend.asarray(B), 4, skip)
    whole = run()
    monkeypatch.setattr(f"{type(backend).__module__}._BLOCK_ENTRIES", 7 * 20)
    assert_array_equal(run().indices, whole.indices)


def test_float32_stays_float32(backend):
    S = sp.csr_array(np.eye(3, dtype=np.float32))
    B = backend.asarray(np.ones((3, 2), np.float32))
    for got in (
        backend.spmm(backend.sparse(S), B),
        backend.spmm_t(backend.sparse(S), B),
        backend.sddmm(backend.sparse(S, pattern=True), B, B),
        backend.grams(backend.sparse(S, pattern=True), B, slice(0, 3)),
    ):
        assert backend.to_numpy(got).dtype == np.float32


def test_the_transpose_is_made_once(backend):
    S = backend.sparse(sp.csr_array(np.eye(3)))
    assert S.transposed is S.transposed


def test_an_unknown_device_is_one_clear_sentence():
    with pytest.raises(ValueError, match=r'device must be "cpu".*got \'tpu\''):
        get_backend("tpu")


@pytest.mark.parametrize("absent", ["torch", "numba"])
def test_either_library_may_be_absent(absent):
    """Importing needs neither; a product that needs the absent one says what to install."""
    other = {"torch": "cpu", "numba": "torch"}[absent]
    own = {"torch": "torch", "numba": "cpu"}[absent]
    if absent == "numba":
        pytest.importorskip("torch")
    code = f"""
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == {absent!r}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
import numpy as np
from tacit import LEML
X, Y = np.eye(4), np.eye(4, 2, dtype=int)
LEML(rank=1, device={other!r}).fit(X, Y)
try:
    LEML(rank=1, device={own!r}).fit(X, Y)
except ModuleNotFoundError as error:
    assert "not installed" in str(error) and "pip install" in str(error), error
else:
    raise AssertionError("fitted without the library")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
