"""The sparse kernels against SciPy and against the machine's memory bandwidth, in one run.

    python benchmarks/kernels.py [--rank 100] [--repeats 7]

The matrix is the features of yso_finna_en (573k × 46k) where TACIT_DATA has it, else a
synthetic one of that shape. Rounds alternate between the contestants and the best of each is
kept, because machines are noisy: read the ratios, not the seconds. Rates count the bytes a
kernel must ask for: every entry's index and value, the row of the dense factor it points to,
and the result once. Where that factor fits the last cache, a rate above the memory's copy
bandwidth is possible and good.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numba
import numpy as np
import scipy.sparse as sp
from rich.console import Console
from rich.table import Table

from tacit.backends.numpy import NumpyBackend


def features() -> tuple[str, sp.csr_array]:
    path = Path(os.environ.get("TACIT_DATA", "")) / "yso_finna_en" / "X_train.npz"
    if path.exists():
        return "yso_finna_en", sp.csr_array(sp.load_npz(path))
    rng = np.random.default_rng(0)
    n, d, per_row = 572_649, 46_227, 8
    columns = (d * rng.random(n * per_row) ** 3).astype(np.int32)  # skewed, as words are
    pointer = np.arange(0, n * per_row + 1, per_row)
    X = sp.csr_array((np.ones(n * per_row, np.float32), columns, pointer), shape=(n, d))
    X.sum_duplicates()
    return "synthetic", X


def best_of(contestants: dict, repeats: int) -> dict[str, float]:
    for run in contestants.values():
        run()  # compile, and touch the memory
    best = dict.fromkeys(contestants, np.inf)
    for _ in range(repeats):
        for name, run in contestants.items():
            start = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


@numba.njit(parallel=True)
def copy(source, target):
    for i in numba.prange(source.shape[0]):
        target[i] = source[i]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rank", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()

    name, X = features()
    rng, k, backend = np.random.default_rng(0), options.rank, NumpyBackend()
    W = rng.standard_normal((X.shape[1], k)).astype(np.float32)
    A = rng.standard_normal((X.shape[0], k)).astype(np.float32)
    S, X_t = backend.sparse(X), sp.csr_array(X.T)
    pattern = backend.sparse(X, pattern=True)
    stream = np.ones(2**26, np.float32)
    target = np.empty_like(stream)

    seconds = best_of(
        {
            "copy": lambda: copy(stream, target),
            "SpMM tacit": lambda: backend.spmm(S, W),
            "SpMM SciPy": lambda: X @ W,
            "SpMMᵀ tacit": lambda: backend.spmm_t(S, A),
            "SpMMᵀ SciPy": lambda: X.T @ A,
            "SpMMᵀ SciPy, transpose in CSR": lambda: X_t @ A,
            "SDDMM tacit": lambda: backend.sddmm(pattern, A, W),
        },
        options.repeats,
    )
    gather = X.nnz * (4 * k + 8)
    moved = {
        "copy": 2 * stream.nbytes,
        "SpMM": gather + A.nbytes,
        "SpMMᵀ": gather + W.nbytes,
        "SDDMM": X.nnz * (4 * k + 8) + A.nbytes,
    }
    bandwidth = moved["copy"] / seconds["copy"] / 1e9
    table = Table("kernel", "seconds", "GB/s", "of copy bandwidth", "SciPy / tacit")
    for label, taken in seconds.items():
        kernel, who = label.split(" ", 1) if " " in label else (label, "")
        rate = moved[kernel] / taken / 1e9
        ratio = f"{taken / seconds[f'{kernel} tacit']:.2f}" if "SciPy" in who else ""
        table.add_row(label, f"{taken:.3f}", f"{rate:.1f}", f"{rate / bandwidth:.0%}", ratio)
    console = Console()
    size = f"{X.shape[0]:,} × {X.shape[1]:,}, {X.nnz:,} entries, float32"
    console.print(f"{name}: {size}, rank {k}, {numba.get_num_threads()} threads")
    console.print(table)


if __name__ == "__main__":
    main()
