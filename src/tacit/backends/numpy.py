"""The CPU backend: BLAS for dense products, Numba (`tacit.backends.compiled`) for sparse ones.

SciPy's sparse products run on one core with generic instructions; these run on all cores with the
machine's own. Numba is imported on the first sparse product, not before.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import ThreadpoolController

from tacit.backends import ADAGRAD_EPSILON, Exposed
from tacit.backends.sparse import Sparse
from tacit.labels import TopK

__all__ = ["NumpyBackend"]

_EMPTY = np.empty(0, np.int64)
_PIECES_PER_THREAD = 8  # enough for threads to even out, few enough to cost nothing
_PRODUCT_BYTES = 2**25  # products of columns laid out at a time by `packed_grams`
_PIECE_FLOPS = 2**18  # of a sparse product that are worth a thread of their own
_BLOCK_ENTRIES = 2**23  # scores laid out at a time by `top_k`: 32 MiB in float32


@dataclass(frozen=True)
class NumpyBackend:
    """NumPy arrays, BLAS and Numba."""

    # The codes of a block stay in the cache between a product and its adjoint, and are small enough
    # for the allocator to reuse; in one block of 573k rows, products took twice as long.
    block_rows = 2**16
    pieces = 8  # whatever the number of cores, so that sums are the same on all
    chunk = 2**21  # 8 MiB in float32: more would not stay in cache, less would starve the products

    def room(self) -> None:
        return None

    def asarray(self, x: Any) -> np.ndarray:
        return np.asarray(x)

    def kept(self, x: np.ndarray) -> np.ndarray:
        return x

    def to_numpy(self, x: Any) -> np.ndarray:
        return np.asarray(x)

    def sparse(self, S: Any, *, pattern: bool = False) -> Sparse:
        S = sp.csr_array(S)
        # One index type for all, so that each kernel is compiled once per float type.
        indptr, indices = S.indptr.astype(np.int64), S.indices.astype(np.int32, copy=False)
        return Sparse(S.shape, indptr, indices, None if pattern else S.data, self)

    def transpose(self, S: Sparse) -> Sparse:
        values = np.arange(S.nnz, dtype=np.int64) if S.data is None else S.data
        T = sp.csr_array(sp.csr_array((values, S.indices, S.indptr), shape=S.shape).T)
        data, order = (None, T.data) if S.data is None else (T.data, None)
        return Sparse(T.shape, T.indptr.astype(np.int64), T.indices, data, self, order)

    def spmm(self, S: Any, B: np.ndarray, values: np.ndarray | None = None) -> np.ndarray:
        if not isinstance(S, Sparse):
            return S @ B
        if isinstance(B, Sparse):
            out = np.zeros((S.shape[0], B.shape[1]), np.result_type(S.data, B.data))
            left, right = ((M.indptr, M.indices, M.data) for M in (S, B))
            _kernels().cross(*left, *right, _cuts(S.indptr), out)
            return out
        B = np.ascontiguousarray(B)
        data = values if values is not None else S.data
        data = _EMPTY.astype(B.dtype) if data is None else data
        order = S.order if values is not None and S.order is not None else _EMPTY
        out = np.empty((S.shape[0], B.shape[1]), np.result_type(data, B))
        _kernels().spmm(S.indptr, S.indices, data, order, B, _cuts(S.indptr), out)
        return out

    def spmm_t(self, S: Any, B: np.ndarray, values: np.ndarray | None = None) -> np.ndarray:
        return self.spmm(S.transposed if isinstance(S, Sparse) else S.T, B, values)

    def sddmm(self, S: Sparse, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        A, B = np.ascontiguousarray(A), np.ascontiguousarray(B)
        out = np.empty(S.nnz, np.result_type(A, B))
        _kernels().sddmm(S.indptr, S.indices, A, B, _cuts(S.indptr), out)
        return out

    def dense(self, S: Sparse, rows: slice, dtype: Any) -> np.ndarray:
        pointer = S.indptr[rows.start : rows.stop + 1]
        out = np.zeros((len(pointer) - 1, S.shape[1]), dtype)
        owner = np.repeat(np.arange(len(out)), np.diff(pointer))
        out[owner, S.indices[pointer[0] : pointer[-1]]] = 1
        return out

    def cross(self, S: Any, T: Any) -> np.ndarray:
        if not (isinstance(S, Sparse) and isinstance(T, Sparse)):
            wide: Any = lambda M: M if isinstance(M, Sparse) else M.astype(np.float64)
            if isinstance(T, Sparse):
                return self.spmm_t(T, wide(S)).T
            return self.spmm_t(wide(S), wide(T))
        left = S.transposed
        out = np.zeros((S.shape[1], T.shape[1]))
        data = lambda M: _EMPTY.astype(np.float32) if M.data is None else M.data
        _kernels().cross(
            left.indptr, left.indices, data(left), T.indptr, T.indices, data(T),
            _cuts(left.indptr), out,
        )  # fmt: skip
        return out

    def grams(
        self, S: Sparse, A: np.ndarray, columns: slice, values: np.ndarray | None = None
    ) -> np.ndarray:
        A, T = np.ascontiguousarray(A), S.transposed
        indptr = T.indptr[columns.start : columns.stop + 1]
        data = _EMPTY.astype(A.dtype) if values is None else values
        order = _EMPTY if values is None else T.order
        out = np.empty((len(indptr) - 1, A.shape[1], A.shape[1]), A.dtype)
        _kernels().grams(indptr, T.indices, data, order, A, _cuts(indptr), out)
        return out

    def solve_spd(self, G: np.ndarray, B: np.ndarray) -> np.ndarray:
        # BLAS would put all its threads on one small matrix after the other, and they would wait
        # for each other most of the time: here every thread has matrices of its own.
        solve = lambda part: np.linalg.solve(G[part], B[part][..., None])[..., 0]
        cuts = np.linspace(0, len(G), _threads() + 1).astype(int)
        parts = [slice(a, b) for a, b in pairwise(cuts) if a < b]
        return np.concatenate(self.parallel_map(solve, parts or [slice(None)]))

    def parallel_map(self, f: Callable, items: Sequence) -> list:
        # Each thread of ours takes items, with one thread for BLAS and one for Numba. Theirs would
        # spin for milliseconds after each call and keep the cores from the work between the calls.
        # A single item may share its own items out; those of many have a thread each already.
        threads = _threads()
        alone = len(items) < 2 or threads < 2
        results: list = [None] * len(items)
        todo = iter(range(len(items)))

        def work() -> None:
            for i in todo:
                results[i] = f(items[i])

        with _one_thread(threads if alone else 1):
            helpers = 0 if alone else min(threads, len(items)) - 1
            futures = [_pool(threads - 1).submit(work) for _ in range(helpers)]
            try:
                work()
            finally:
                wait(futures)
        for future in futures:
            future.result()  # raises what the helper raised
        return results

    def packed_grams(self, A: np.ndarray, weights: np.ndarray) -> np.ndarray:
        size = max(1, _PRODUCT_BYTES // max(A.shape[1] ** 2 * A.itemsize // 2, 1))
        parts = [slice(start, start + size) for start in range(0, max(len(A), 1), size)]
        return sum(_packed_products(A[part]) @ weights[part] for part in parts)

    def solve_packed(self, G: np.ndarray, B: np.ndarray, reg: np.ndarray) -> np.ndarray:
        G, B = np.ascontiguousarray(G), np.ascontiguousarray(B, G.dtype)
        out = np.empty_like(B)
        _kernels().solve_packed(G, B, np.ascontiguousarray(reg, G.dtype), out)
        if not np.isfinite(out).all():
            raise np.linalg.LinAlgError(
                "solve_packed: G + diag(reg) is not positive definite; use a larger reg"
            )
        return out

    def exposed(
        self,
        F: np.ndarray,
        mu: np.ndarray,
        S: Sparse,
        y: np.ndarray | None,
        rows: slice,
        row_weights: np.ndarray | None,
        label_weights: np.ndarray | None,
    ) -> Exposed:
        indptr = S.indptr[rows.start : rows.stop + 1]
        by_row = np.empty((2, len(F)), F.dtype)
        by_label = None if row_weights is None else np.zeros((3, F.shape[1]), F.dtype)
        rest = label_weights, row_weights, by_row, by_label
        if y is None:
            _kernels().exposed(F, mu, indptr, S.indices, *rest)
        else:
            _kernels().observed(F, indptr, S.indices, y[indptr[0] : indptr[-1]], *rest)
        return Exposed(F, by_row, None if by_label is None else by_label.astype(np.float64))

    def softmax(
        self,
        F: np.ndarray,
        offset: np.ndarray,
        S: Sparse,
        omega: Sparse | None,
        rows: slice,
        by_count: bool,
    ) -> tuple[np.ndarray, np.ndarray]:
        said = S.indptr[rows.start : rows.stop + 1], S.indices
        losses = np.empty(len(F), F.dtype)
        if omega is None:
            _kernels().softmax(F, offset, *said, by_count, losses)
        else:
            known = omega.indptr[rows.start : rows.stop + 1], omega.indices
            _kernels().softmax_known(F, offset, *said, *known, by_count, losses)
        return F, losses

    def log_sum_exp(self, F: np.ndarray, offset: np.ndarray) -> np.ndarray:
        out = np.empty(len(F), F.dtype)
        _kernels().log_sum_exp(F, offset, out)
        return out

    def adagrad(
        self,
        theta: np.ndarray,
        S: np.ndarray,
        G: np.ndarray,
        rate: float,
        rows: np.ndarray | None = None,
    ) -> None:
        _kernels().adagrad(theta, S, G, _EMPTY if rows is None else rows, rate, ADAGRAD_EPSILON)

    def adagrad_spmm(
        self,
        theta: np.ndarray,
        S: np.ndarray,
        T: Sparse,
        D: np.ndarray,
        rate: float,
        rows: np.ndarray,
        decay: np.ndarray,
    ) -> None:
        n_pieces = max(1, min(_PIECES_PER_THREAD * _threads(), T.nnz * D.shape[1] // _PIECE_FLOPS))
        work = T.indptr + np.arange(len(T.indptr))
        cuts = np.searchsorted(work, np.linspace(0, work[-1], n_pieces + 1))
        D = np.ascontiguousarray(D)

        def step(part: slice) -> None:
            _kernels().adagrad_spmm(
                theta, S, T.indptr[part.start : part.stop + 1], T.indices, T.data, D, rows[part],
                decay[part], rate, ADAGRAD_EPSILON,
            )  # fmt: skip

        self.parallel_map(step, [slice(a, b) for a, b in pairwise(cuts)])

    def top_k(
        self, A: np.ndarray, B: np.ndarray | None, k: int, skip: Sparse | None = None
    ) -> TopK:
        n_labels = A.shape[1] if B is None else B.shape[0]
        indices = np.empty((A.shape[0], min(k, n_labels)), np.int64)
        best = np.empty(indices.shape, A.dtype)
        size = max(1, _BLOCK_ENTRIES // max(n_labels, 1))
        for start in range(0, A.shape[0], size):
            rows = slice(start, start + size)
            scores = A[rows].copy() if B is None else A[rows] @ B.T
            if skip is not None:
                pointer = skip.indptr[start : start + size + 1]
                owner = np.repeat(np.arange(len(pointer) - 1), np.diff(pointer))
                scores[owner, skip.indices[pointer[0] : pointer[-1]]] = -np.inf
            _kernels().top_k(scores, indices[rows], best[rows])
        return TopK(indices, best)


def _packed_products(A: np.ndarray) -> np.ndarray:
    """a_j a_jᵀ of each row: lower triangles as columns."""
    columns, (r, k) = np.ascontiguousarray(A.T), A.shape
    out = np.empty((k * (k + 1) // 2, r), A.dtype)
    for p in range(k):  # row p of the triangle: the products of column p with 0, …, p
        start, stop = p * (p + 1) // 2, (p + 1) * (p + 2) // 2
        np.multiply(columns[p], columns[: p + 1], out=out[start:stop])
    return out


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


_scope = threading.local()  # .threads: how many `parallel_map` may use, inside of another


def _threads() -> int:
    import numba

    return getattr(_scope, "threads", 0) or numba.get_num_threads()


@contextmanager
def _one_thread(for_items: int) -> Iterator[None]:
    """BLAS and Numba with one thread; `parallel_map`, called in here, has `for_items`."""
    import numba

    before, outer = numba.get_num_threads(), getattr(_scope, "threads", 0)
    numba.set_num_threads(1)
    _scope.threads = for_items
    try:
        with _blas().limit(limits=1):
            yield
    finally:
        numba.set_num_threads(before)
        _scope.threads = outer


@cache
def _pool(helpers: int) -> ThreadPoolExecutor:
    """Threads that wait for work: to start them anew would take as long as a small batch."""

    def begin() -> None:
        import numba

        numba.set_num_threads(1)
        _scope.threads = 1

    return ThreadPoolExecutor(helpers, "tacit", initializer=begin)


os.register_at_fork(after_in_child=_pool.cache_clear)  # a child process has none of the threads


@cache
def _kernels() -> ModuleType:
    try:
        from tacit.backends import compiled
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            'device="cpu" needs Numba, which is not installed; pip install numba, or use '
            'device="torch" if PyTorch is there'
        ) from None
    return compiled


def _cuts(indptr: np.ndarray) -> np.ndarray:
    """Rows that split the entries, plus one apiece for the row itself, into even pieces."""
    import numba

    pieces = _PIECES_PER_THREAD * numba.get_num_threads()
    work = indptr + np.arange(len(indptr))
    return np.searchsorted(work, np.linspace(work[0], work[-1], pieces + 1)).astype(np.int64)
