"""LEML at a tenth of the rows of the paper's largest data: memory, and where the time goes.

    python benchmarks/wikipedia.py

88,181 rows, 366,932 features at 147 a row, 213,707 labels at 7 a row, drawn with the long tails of
text; complete labels, squared loss, rank 100, conjugate gradients. A step of conjugate gradients
is two sparse products, X V and XᵀB, and the arithmetic around them; its share of the rate that the
two products reach alone is what the benchmark is about. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import resource
import time

import numpy as np
import scipy.sparse as sp

from tacit import LEML, Labels
from tacit.backends import get_backend
from tacit.backends.block import Placement, place
from tacit.blocks import MemoryBlocks, Rows
from tacit.engines.moments import Products

SHAPE = dict(n=88_181, d=366_932, n_labels=213_707)


def synthetic(n: int, d: int, n_labels: int) -> tuple[sp.csr_array, Labels]:
    rng = np.random.default_rng(0)

    def matrix(width: int, per_row: int) -> sp.csr_array:
        columns = (width * rng.random(n * per_row, dtype=np.float32) ** 3).astype(np.int32)
        columns = np.minimum(columns, width - 1)
        pointer = np.arange(0, n * per_row + 1, per_row)
        S = sp.csr_array((np.ones(n * per_row, np.float32), columns, pointer), shape=(n, width))
        S.sum_duplicates()
        S.data[:] = 1
        return S

    return matrix(d, 147), Labels.complete(matrix(n_labels, 7))


def seconds(f, repeats: int = 3) -> float:
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        f()
        best = min(best, time.perf_counter() - start)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rank", type=int, default=100)
    parser.add_argument("--max-iter", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    X, Y = synthetic(**SHAPE)

    start = time.perf_counter()
    model = LEML(
        rank=options.rank, max_iter=options.max_iter, tol=0, device=options.device,
        random_state=0, verbose=True,
    ).fit(X, Y)  # fmt: skip
    fit = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20

    backend = get_backend(options.device)
    block = place(Rows(X, Y), Placement(backend, "float32", "l2", True))
    V = backend.asarray(model.model_.W)
    ones = backend.asarray(np.ones(options.rank, np.float32))
    B = block.project(V)
    block.project_t(B)
    products = seconds(lambda: block.project(V)) + seconds(lambda: block.project_t(B))
    solve = lambda steps: Products(MemoryBlocks((block,)), 0.0, steps).solve(V, ones, 1.0)
    solve(1)
    step = (seconds(lambda: solve(6)) - seconds(lambda: solve(1))) / 5
    flops = 4 * block.X.nnz * options.rank
    result = {
        "device": options.device,
        "rank": options.rank,
        "nnz": block.X.nnz,
        "fit seconds": round(fit, 1),
        "passes": model.n_iter_,
        "peak GiB": round(peak, 2),
        "products GFLOP/s": round(flops / products / 1e9, 2),
        "CG step GFLOP/s": round(flops / step / 1e9, 2),
        "CG step / products": round(products / step, 3),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
