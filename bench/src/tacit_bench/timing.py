"""What a machine can do at most, and what our kernels make of it.

A kernel that does little with each number it reads is held up by memory, whose limit is the rate of
a plain copy; one that does much is held up by arithmetic, whose limit is the rate of BLAS on a
large square product. Seconds mean little on a machine that others use too, so a kernel and its
limit run in turn, in one process and with as many threads, the quickest of each counts, and the
ratio of the two is what to read.

Bytes are those a kernel must ask for: every entry's index and value, the row of the dense factor it
points to, and the result once. Where that factor stays in the cache, a rate above the copy's is
possible. Operations are those that the cheapest way known would need: k³/3 to factorise, and half
of a symmetric matrix.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from tacit.backends.numpy import NumpyBackend
from tacit.engines.solvers import cholesky
from tacit.labels import Labels

__all__ = [
    "KERNELS",
    "TimedRun",
    "copying",
    "kernel",
    "multiplying",
    "passes_timed",
    "quickest",
    "rates",
]

_PIECES = 16  # of a copy, for threads to even out
_ROUNDS = 7
_ROWS, _WORDS, _WORDS_A_ROW = 500_000, 50_000, 8
_RANK, _SOLVES = 100, 512  # columns of a dense factor; matrices of a batch
_RIDGE = 2000, 1000  # features and labels of one large solve
_TOP = 4096, 20_000  # rows and labels


@dataclass(frozen=True)
class TimedRun:
    """Something to run, and how many bytes it must move or operations it must do."""

    run: Callable[[], Any]
    amount: float
    unit: Literal["GB/s", "GFLOP/s"]


@dataclass(frozen=True)
class Kernel:
    """A kernel of ours, what limits it and, where they have one, NumPy's or SciPy's."""

    ours: Callable[[], Any]
    amount: float
    limit: Callable[[], TimedRun]
    theirs: Callable[[], Any] | None = None


def copying(n_bytes: int = 2**28) -> TimedRun:
    """A copy of an array far larger than any cache: each byte is read once and written once."""
    source, target = np.ones(n_bytes, np.uint8), np.empty(n_bytes, np.uint8)
    cuts = np.linspace(0, n_bytes, _PIECES + 1).astype(int)
    parts = [slice(a, b) for a, b in pairwise(cuts)]

    def run() -> None:
        NumpyBackend().parallel_map(lambda part: np.copyto(target[part], source[part]), parts)

    return TimedRun(run, 2 * n_bytes, "GB/s")


def multiplying(dtype: str = "float32", size: int = 2048) -> TimedRun:
    """The product of two square matrices: 2 size³ operations."""
    A = np.random.default_rng(0).random((size, size)).astype(dtype)
    return TimedRun(lambda: A @ A, 2 * size**3, "GFLOP/s")


def quickest(run: Callable[[], Any], least: float = 0.5) -> float:
    """Seconds of the quickest of some runs: one, or as many as begin within `least` seconds."""
    best, begun = np.inf, time.perf_counter()
    while best == np.inf or time.perf_counter() - begun < least:
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


def passes_timed(model: Any, X: Any, Y: Labels) -> list[float]:
    """Fit `model` with all of its passes, whatever the objective does; the seconds of each.

    What comes before the first pass does not count.
    """
    blocks, known = model._rows(X, Y)
    loop = _TimedLoop(model.max_iter)
    problem = replace(model._problem(blocks, known), loop=loop)
    model.adopt(model._fit(problem), known)
    return loop.seconds


@dataclass(frozen=True)
class _TimedLoop:
    """In the place of `tacit.engines.descend.Loop`."""

    passes: int
    seconds: list[float] = field(default_factory=list)

    def descend(
        self, backend: Any, start: Callable[[], Any], step: Callable[[Any], Any], until: None
    ) -> tuple[Any, list[float]]:
        state, history = start(), []
        for _ in range(self.passes):
            begun = time.perf_counter()
            state, objective = step(state)
            history.append(float(objective))  # waits for a GPU
            self.seconds.append(time.perf_counter() - begun)
        return state, history


def rates(works: Mapping[str, TimedRun], rounds: int = _ROUNDS) -> dict[str, float]:
    """The best rate of each in some rounds that alternate between them, in GB/s or GFLOP/s."""
    best = dict.fromkeys(works, np.inf)
    with threadpool_limits(limits=_threads()):  # BLAS with as many as Numba
        for work in works.values():
            work.run()  # compile, and touch the memory
        for _ in range(rounds):
            for name, work in works.items():
                best[name] = min(best[name], quickest(work.run, least=0.0))
    return {name: work.amount / best[name] / 1e9 for name, work in works.items()}


def kernel(name: str) -> dict[str, float]:
    """The rate of one of `KERNELS`, that of its limit, and the share of the one in the other."""
    made = KERNELS[name]()
    limit = made.limit()
    runs = {"ours": made.ours} | ({"theirs": made.theirs} if made.theirs else {})
    works = {who: TimedRun(run, made.amount, limit.unit) for who, run in runs.items()}
    rate = rates(works | {"limit": limit})
    found = {
        limit.unit: round(rate["ours"], 2),
        "limit": round(rate["limit"], 2),
        "share of limit": round(100 * rate["ours"] / rate["limit"], 2),
        "threads": _threads(),
    }
    if "theirs" in rate:
        found["their time / ours"] = round(rate["ours"] / rate["theirs"], 2)
    return found


def _threads() -> int:
    import numba

    return int(numba.get_num_threads())


def _spmm() -> Kernel:
    X, W, A = _features()
    S, backend = NumpyBackend().sparse(X), NumpyBackend()
    return Kernel(lambda: backend.spmm(S, W), _gathered(X) + A.nbytes, copying, lambda: X @ W)


def _spmm_t() -> Kernel:
    X, W, A = _features()
    S, backend = NumpyBackend().sparse(X), NumpyBackend()
    return Kernel(lambda: backend.spmm_t(S, A), _gathered(X) + W.nbytes, copying, lambda: X.T @ A)


def _sddmm() -> Kernel:
    X, W, A = _features()
    S, backend = NumpyBackend().sparse(X, pattern=True), NumpyBackend()
    return Kernel(lambda: backend.sddmm(S, A, W), _gathered(X) + A.nbytes, copying)


def _features() -> tuple[sp.csr_array, np.ndarray, np.ndarray]:
    """Rows of few words, skewed as words are, and dense factors for words and for rows."""
    rng = np.random.default_rng(0)
    words = (_WORDS * rng.random(_ROWS * _WORDS_A_ROW) ** 3).astype(np.int32)
    pointer = np.arange(0, len(words) + 1, _WORDS_A_ROW)
    X = sp.csr_array((np.ones(len(words), np.float32), words, pointer), shape=(_ROWS, _WORDS))
    X.sum_duplicates()
    return X, _normal(rng, _WORDS, _RANK), _normal(rng, _ROWS, _RANK)


def _gathered(X: sp.csr_array) -> int:
    """Bytes of the entries: an index, a value and a row of the dense factor each."""
    return X.nnz * (4 + 4 + 4 * _RANK)


def _grams() -> Kernel:
    rng, backend = np.random.default_rng(0), NumpyBackend()
    Y = sp.random_array((40_000, _SOLVES), density=0.01, format="csr", rng=rng, dtype=np.float32)
    S, A, every = (
        backend.sparse(Y, pattern=True),
        _normal(rng, len(Y.indptr) - 1, _RANK),
        Y.shape[1],
    )
    flops = S.nnz * _RANK * (_RANK + 1)
    return Kernel(lambda: backend.grams(S, A, slice(0, every), Y.data), flops, multiplying)


def _packed_grams() -> Kernel:
    rng, backend = np.random.default_rng(0), NumpyBackend()
    A, weights = _normal(rng, 1024, _RANK), rng.random((1024, _SOLVES), np.float32)
    return Kernel(
        lambda: backend.packed_grams(A, weights),
        weights.size * _RANK * (_RANK + 1),
        multiplying,
        lambda: (A.T * weights.T[:, None, :]) @ A,
    )


def _solve_spd() -> Kernel:
    G, B = _definite()
    backend, flops = NumpyBackend(), _SOLVES * _solve_flops(_RANK, 1)
    theirs = lambda: np.linalg.solve(G, B[..., None])
    return Kernel(lambda: backend.solve_spd(G, B), flops, multiplying, theirs)


def _solve_packed() -> Kernel:
    G, B = _definite()
    backend, flops = NumpyBackend(), _SOLVES * _solve_flops(_RANK, 1)
    packed = np.ascontiguousarray(G[:, *np.tril_indices(_RANK)].T)
    none, theirs = np.zeros(_RANK, np.float32), lambda: np.linalg.solve(G, B[..., None])
    return Kernel(lambda: backend.solve_packed(packed, B, none), flops, multiplying, theirs)


def _definite() -> tuple[np.ndarray, np.ndarray]:
    """Positive definite matrices, and a right-hand side each."""
    rng = np.random.default_rng(0)
    A = _normal(rng, _SOLVES, _RANK, _RANK)
    return A @ A.mT + _RANK * np.eye(_RANK, dtype=np.float32), _normal(rng, _SOLVES, _RANK)


def _ridge() -> Kernel:
    rng, (size, columns) = np.random.default_rng(0), _RIDGE
    A = rng.standard_normal((2 * size, size))
    G, B = A.T @ A, rng.standard_normal((size, columns))
    limit = lambda: multiplying("float64")
    theirs = lambda: np.linalg.solve(G, B)
    return Kernel(lambda: cholesky(G)(B), _solve_flops(size, columns), limit, theirs)


def _solve_flops(size: int, columns: int) -> float:
    """A Cholesky factor, and two triangular solves a column."""
    return size**3 / 3 + 2 * size**2 * columns


def _top_k() -> Kernel:
    rng, backend, k = np.random.default_rng(0), NumpyBackend(), 5
    A, B = (_normal(rng, size, _RANK) for size in _TOP)
    theirs = lambda: np.argpartition(A @ B.T, -k, axis=1)
    return Kernel(lambda: backend.top_k(A, B, k), 2 * len(A) * len(B) * _RANK, multiplying, theirs)


def _normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape, np.float32)


KERNELS: dict[str, Callable[[], Kernel]] = {
    "spmm": _spmm,
    "spmm_t": _spmm_t,
    "sddmm": _sddmm,
    "grams": _grams,
    "packed_grams": _packed_grams,
    "solve_spd": _solve_spd,
    "solve_packed": _solve_packed,
    "ridge solve": _ridge,
    "top_k": _top_k,
}
