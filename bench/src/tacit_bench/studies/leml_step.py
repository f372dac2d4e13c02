"""A step of LEML's conjugate gradients beside its two sparse products alone, X V and XᵀB.

A tenth of the rows of the largest data of LEML's paper, drawn with long tails: 147 features and 7
labels a row, complete labels, squared loss. The arithmetic around the two products makes a step
slower than they are; the share of their rate that is left is what to read. The peak memory is that
of the fit and of the steps.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from tacit import LEML, Labels
from tacit.backends.block import Placement, place
from tacit.backends.numpy import NumpyBackend
from tacit.blocks import MemoryBlocks, Rows
from tacit.engines.moments import Products
from tacit_bench.board import Cell
from tacit_bench.study import Study
from tacit_bench.timing import quickest

__all__ = ["STUDY"]

WORDS, SAID = 147, 7  # a row
STEPS, ROUNDS = 5, 3


def cells() -> list[Cell]:
    return [{"rows": 88_181, "features": 366_932, "labels": 213_707, "rank": 100}]


def measure(cell: Cell) -> dict[str, Any]:
    """A fit of two passes; then the products, and a step, one after the other."""
    rng, n = np.random.default_rng(0), cell["rows"]
    X = _long_tailed(rng, n, cell["features"], WORDS)
    Y = Labels.complete(_long_tailed(rng, n, cell["labels"], SAID))
    start = time.perf_counter()
    model = LEML(cell["rank"], max_iter=2, tol=0, solver="cg", random_state=0).fit(X, Y)
    fit = time.perf_counter() - start

    block = place(Rows(X, Y), Placement(NumpyBackend(), "float32", "l2", True))
    V, ones = model.model_.W, np.ones(cell["rank"], np.float32)
    B = block.project(V)
    block.project_t(B)  # compiled by now, and transposed

    def solve(steps: int) -> Any:
        return Products(MemoryBlocks((block,)), 0.0, steps).solve(V, ones, 1.0)

    products = _best(lambda: block.project(V)) + _best(lambda: block.project_t(B))
    solve(1)
    step = (_best(lambda: solve(1 + STEPS)) - _best(lambda: solve(1))) / STEPS
    gflop = 4 * block.X.nnz * cell["rank"] / 1e9
    return {
        "nnz": block.X.nnz,
        "fit s": round(fit, 2),
        "products GFLOP/s": round(gflop / products, 2),
        "step GFLOP/s": round(gflop / step, 2),
        "share of their rate": round(products / step, 3),
    }


def _best(run: Callable[[], Any]) -> float:
    return min(quickest(run, least=0) for _ in range(ROUNDS))


def _long_tailed(rng: np.random.Generator, n: int, width: int, per_row: int) -> sp.csr_array:
    columns = (width * rng.random(n * per_row, dtype=np.float32) ** 3).astype(np.int32)
    columns = np.minimum(columns, width - 1)
    pointer = np.arange(0, n * per_row + 1, per_row)
    S = sp.csr_array((np.ones(n * per_row, np.float32), columns, pointer), shape=(n, width))
    S.sum_duplicates()
    S.data[:] = 1
    return S


STUDY = Study(
    "leml_step",
    "How near does a step of LEML's conjugate gradients come to its sparse products alone?",
    cells,
    measure,
    tiny=[{"rows": 2_000, "features": 5_000, "labels": 500, "rank": 20}],
)
